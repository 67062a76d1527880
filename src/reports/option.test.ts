import { expect, test } from 'vitest';
import { type Options, optionsProblem } from './option';

test('what is needed and empty is said, as is a number out of range; one of those that exclude each other is chosen elsewhere', () => {
  const options = {
    target: { kind: 'text', help: '', needed: true },
    names: { kind: 'list', help: '', needed: true },
    rank: { kind: 'integer', help: '', min: 1, either: 'size', needed: true },
    bins: { kind: 'integer', help: '', min: 2, default: 4 },
    bytes: { kind: 'integer', unit: 'bytes', label: 'size in MB', help: '', min: 1_000_000, default: 5e9 },
  } as const satisfies Options;
  const whole = { target: 'head', names: ['a'], bins: 4, bytes: 5e9 };
  expect(optionsProblem(options, whole)).toBeNull();
  expect(optionsProblem(options, { ...whole, target: '' })).toBe('Target: needed.');
  expect(optionsProblem(options, { ...whole, names: [] })).toBe('Names: needed.');
  expect(optionsProblem(options, { ...whole, bins: 1 })).toMatch(/^Bins: /);
  expect(optionsProblem(options, { ...whole, bytes: 5e5 })).toBe('Size in MB: a number from 1.');
});
