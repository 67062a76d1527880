/** What ships in the page may be shipped: every runtime package, also those that others bring, has a permissive licence. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');
const PERMISSIVE = new Set([
  'MIT',
  'ISC',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  '0BSD',
  'BlueOak-1.0.0',
]);

interface Locked {
  dev?: boolean;
  devOptional?: boolean;
  optional?: boolean;
}

const read = (path: string) => JSON.parse(readFileSync(join(root, path), 'utf8')) as Record<string, unknown>;

const shipped = Object.entries(read('package-lock.json').packages as Record<string, Locked>)
  .filter(([path, { dev, devOptional, optional }]) => path !== '' && !dev && !devOptional && !optional)
  .map(([path]) => ({ path, ...(read(`${path}/package.json`) as { name: string; license?: string }) }));

test('every package that ships has a permissive licence', () => {
  expect(shipped.length).toBeGreaterThan(20);
  const others = shipped
    .filter(({ license }) => !PERMISSIVE.has(license ?? 'none'))
    .map(({ name, license }) => `${name}: ${license}`);
  expect(others).toEqual([]);
});

test('docs/dependencies.md names the licence each package states', () => {
  const table = readFileSync(join(root, 'docs/dependencies.md'), 'utf8');
  const rows = [...table.matchAll(/^\| `([^`]+)` \| \S+ \| ([^|]+) \|/gm)].map(([, name, licence]) => ({
    name: name!,
    licence: licence!.trim(),
  }));
  expect(rows.length).toBeGreaterThan(20);
  for (const { name, licence } of rows) {
    expect(read(`node_modules/${name}/package.json`).license, name).toBe(licence);
  }
});
