import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { adapterKinds } from '../src/inputs/kinds';
import { adapterCases, expectPeft } from './adapter-cases';
import { goldenFolder } from './goldens';

const root = goldenFolder('adapters');

describe('adapters, merged as PEFT 0.21 merges them', () => {
  it.each(adapterCases(root))('%s', (kind) => expectPeft(root, kind));
});

it('the docs show every kind', () => {
  const docs = readFileSync(join(import.meta.dirname, '../docs/formats.md'), 'utf8');
  for (const { title, formula } of adapterKinds) expect(docs).toContain(`| ${title} | ${formula} |`);
});

it('every kind has a golden, or the docs say that it has none', () => {
  const docs = readFileSync(join(import.meta.dirname, '../docs/formats.md'), 'utf8');
  const types = adapterCases(root).map(
    (kind) => JSON.parse(readFileSync(join(root, kind, 'adapter_config.json'), 'utf8')).peft_type,
  );
  for (const { type, title } of adapterKinds) {
    const row = docs.split('\n').find((line) => line.startsWith(`| ${title} |`))!;
    expect(row.endsWith('† |'), title).toBe(!types.includes(type));
  }
});
