/** Words that docs/glossary.md has taken out of use stay out of the code. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
const page = readFileSync(join(ROOT, 'docs/glossary.md'), 'utf8');
const rows = [...page.split('## Words out of use')[1]!.matchAll(/^\| `([^`]+)` \|([^|]*)\|([^|]*)\|$/gm)];

const files = ['src', 'e2e', 'assembly']
  .flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
  )
  .map((path) => path.replaceAll('\\', '/'))
  .filter(
    (path) => /\.(tsx?|m?js|css)$/.test(path) && !/node_modules|fixtures|^src\/glossary\.test/.test(path),
  );

test('the page names words and where they may still stand', () => {
  expect(rows.length).toBeGreaterThan(5);
  expect(files.length).toBeGreaterThan(500);
});

test.each(rows.map(([, word, , still]) => [word!, still!.trim()] as const))('no %s', (word, still) => {
  const allowed = [...still.matchAll(/`([^`]+)`/g)].map(([, path]) => path!);
  const pattern = new RegExp(
    `(?<![a-zA-Z])${word}s?(?![a-z])|(?<![A-Z])${word[0]!.toUpperCase()}${word.slice(1)}s?(?![a-z])`,
  );
  const found = files
    .filter((path) => !allowed.some((start) => path.startsWith(start)))
    .flatMap((path) =>
      [path, ...readFileSync(join(ROOT, path), 'utf8').split('\n')].flatMap((line, i) =>
        pattern.test(line) ? [`${path}:${i} ${line.trim().slice(0, 100)}`] : [],
      ),
    );
  expect(found).toEqual([]);
});

/** British spellings; what names a file of somebody else, or stands for a misspelling, is no word of ours. */
const BRITISH =
  /colour|cancell(?:ed|ing)|neighbour|behaviour|labelled(?!by)|licence|\bcentre\b|\w+(?:al|an|ial|im|ogn)is(?:ed|ing|ation)\b|analyse\b|\blearnt\b|\btowards\b/i;

test('US spelling, in code, comments and docs', () => {
  const pages = ['docs', 'shaders', 'public', 'hosting']
    .flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map(
        (name) => `${folder}/${name.replaceAll('\\', '/')}`,
      ),
    )
    .filter((path) => /\.(md|wgsl|html)$/.test(path));
  const found = [...files, ...pages, 'README.md', 'CONTRIBUTING.md', 'CHANGELOG.md']
    .filter((path) => !/^src\/(messages\.test|dataset\/text-kind)/.test(path))
    .flatMap((path) =>
      readFileSync(join(ROOT, path), 'utf8')
        .split('\n')
        .flatMap((line, i) => (BRITISH.test(line) ? [`${path}:${i + 1} ${line.trim().slice(0, 100)}`] : [])),
    );
  expect(found).toEqual([]);
});
