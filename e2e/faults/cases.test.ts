/** docs/reliability.md lists every fault case, and every listed case has a test of its number in the file named there. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const CASES = 65;

/** File name without its endings → numbers in the titles of its tests. */
function numberedTests(): Map<string, Set<number>> {
  const found = new Map<string, Set<number>>();
  for (const folder of ['src', 'e2e']) {
    for (const entry of readdirSync(join(root, folder), { recursive: true, withFileTypes: true })) {
      const name = /^(.+?)\.(test|spec)\.tsx?$/.exec(entry.name)?.[1];
      if (!entry.isFile() || name === undefined) continue;
      const text = readFileSync(join(entry.parentPath, entry.name), 'utf8');
      const numbers = found.get(name) ?? new Set();
      for (const [, title] of text.matchAll(/['"`]((?:R\d+[ –])*R\d+):/g)) {
        for (const [first, last] of ranges(title!)) {
          for (let n = first; n <= last; n++) numbers.add(n);
        }
      }
      found.set(name, numbers);
    }
  }
  return found;
}

/** `R1 R3–R5` → [1, 1], [3, 5]. */
function ranges(title: string): [number, number][] {
  return [...title.matchAll(/R(\d+)(?:–R(\d+))?/g)].map(([, first, last]) => [
    Number(first),
    Number(last ?? first),
  ]);
}

test('every case has its tests', () => {
  const rows = [
    ...readFileSync(join(root, 'docs/reliability.md'), 'utf8').matchAll(/^- R(\d+): .* \(([^()]+)\)$/gm),
  ];
  expect(rows.map(([, number]) => Number(number))).toEqual(Array.from({ length: CASES }, (_, i) => i + 1));
  const tests = numberedTests();
  const missing = rows.flatMap(([, number, where]) =>
    [...where!.matchAll(/`([^`]+)`/g)]
      .filter(([, file]) => !tests.get(file!)?.has(Number(number)))
      .map(([, file]) => `R${number} in ${file}`),
  );
  expect(missing).toEqual([]);
});
