import { describe, expect, test } from 'vitest';
import { importanceVerb, tokenWindows } from './importance';

const required = ['m', '--base', 'b', '--out', 'o'];

describe('the command line of importance', () => {
  test('reads a text, token ids, or what the model writes itself', () => {
    const calibration = (...more: string[]) =>
      importanceVerb.parse([...required, ...more]).recipe.models![0]!.parameters.calibration;
    expect(calibration()).toBe('self');
    expect(calibration('--text', 'a.txt')).toBe('a.txt');
    expect(calibration('--tokens', 'ids.json')).toBe('ids.json');
  });

  test.each([
    [['--text', 'a.txt', '--tokens', 'ids.json'], /either/],
    [['--tokens', 'ids.txt'], /ends in \.json/],
    [['--window', '4'], /--window is 4/],
  ])('refuses %j', (more, message) => {
    expect(() => importanceVerb.parse([...required, ...more])).toThrow(message);
  });
});

test('token ids are cut into as many windows as there are, unless some are asked for', () => {
  expect(tokenWindows(32_768, {})).toEqual({ windows: 128, window: 256 });
  expect(tokenWindows(600, {})).toEqual({ windows: 2, window: 256 });
  expect(tokenWindows(100, {})).toEqual({ windows: 1, window: 100 });
  expect(tokenWindows(100, { window: 30 })).toEqual({ windows: 3, window: 30 });
  expect(tokenWindows(100, { windows: 5, window: 50 })).toEqual({ windows: 5, window: 50 });
});
