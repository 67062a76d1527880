/** Licenses of the packages in the page: every runtime package, its dependencies included, has a permissive license. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { shippedPackages, thirdPartyNotices } from '../licenses/vite-plugin';

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

const read = (path: string) => JSON.parse(readFileSync(join(root, path), 'utf8')) as Record<string, unknown>;

const shipped = shippedPackages();

test('every package that ships has a permissive license', () => {
  expect(shipped.length).toBeGreaterThan(20);
  const others = shipped
    .filter(({ license }) => !PERMISSIVE.has(license ?? 'none'))
    .map(({ name, license }) => `${name}: ${license}`);
  expect(others).toEqual([]);
});

test('docs/dependencies.md names the license each package states', () => {
  const table = readFileSync(join(root, 'docs/dependencies.md'), 'utf8');
  const rows = [...table.matchAll(/^\| `([^`]+)` \| \S+ \| ([^|]+) \|/gm)].map(([, name, license]) => ({
    name: name!,
    license: license!.trim(),
  }));
  expect(rows.length).toBeGreaterThan(20);
  for (const { name, license } of rows) {
    expect(read(`node_modules/${name}/package.json`).license, name).toBe(license);
  }
});

test('the notices name every package that ships, and hold its license', () => {
  const notices = thirdPartyNotices();
  for (const { name, version, license } of shipped)
    expect(notices).toContain(`${name} ${version} (${license})`);
  const parts = notices.split('-'.repeat(79)).slice(1);
  expect(parts).toHaveLength(shipped.length);
  const without = parts.filter(
    (part) => !/permission|licen[cs]e/i.test(part.trim().split('\n').slice(1).join()),
  );
  expect(without.map((part) => part.trim().split('\n')[0])).toEqual([]);
});
