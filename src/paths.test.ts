/** Paths in docs and comments: a file that moves takes its mentions along. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');
/** The worked example's, which the reader writes. */
const EXAMPLE = /\bmagmax\b/;
/** Other projects have folders of these names, too. */
const ELSEWHERE = /llama\.cpp|ggml|\bHub\b/;
const ENDINGS = ['', '.ts', '.tsx', '.wgsl', '.test.ts', '.browser.test.ts', '.cases.ts'];

test('every path of this repository that docs and comments name exists', () => {
  const inside = (folder: string) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`);
  const top = readdirSync(root).filter((file) => file.endsWith('.md'));
  const files = [...top, ...['src', 'e2e', 'shaders', 'docs', 'assembly'].flatMap(inside)];
  const lost: string[] = [];
  for (const file of files.filter((each) => /\.(tsx?|md|wgsl|mjs|css)$/.test(each))) {
    for (const line of readFileSync(join(root, file), 'utf8').split('\n')) {
      if (ELSEWHERE.test(line)) continue;
      for (const [path] of line.matchAll(
        /(?<![\w/.@-])(src|e2e|shaders|docs|assembly|public)\/[\w./*-]*\w\*?/g,
      )) {
        const isThere = ENDINGS.some((ending) => existsSync(join(root, path + ending)));
        if (!path.includes('*') && !EXAMPLE.test(path) && !isThere) lost.push(`${file}: ${path}`);
      }
    }
  }
  expect(lost).toEqual([]);
});

test('every source file that comments name by its end exists', () => {
  const files = ['src', 'e2e', 'assembly', 'offline'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`),
  );
  const lost: string[] = [];
  for (const file of files.filter((each) => /\.tsx?$/.test(each))) {
    for (const line of readFileSync(join(root, file), 'utf8').split('\n')) {
      if (!/^\s*(\/?\*|\/\/)/.test(line) || ELSEWHERE.test(line)) continue;
      for (const [path] of line.matchAll(/(?<![\w./*-])[a-z][\w-]*([/.][\w-]+)*\.tsx?\b/g)) {
        const isThere = files.some((each) => each === path || each.endsWith(`/${path}`));
        if (!EXAMPLE.test(path) && !isThere) lost.push(`${file}: ${path}`);
      }
    }
  }
  expect(lost).toEqual([]);
});

test('the linter looks at what is part of the project only: what its commands write beside is not its business', () => {
  const { files } = JSON.parse(readFileSync(join(root, 'biome.json'), 'utf8'));
  const wanted: string[] = files.includes.filter((pattern: string) => !pattern.startsWith('!'));
  expect(wanted.filter((pattern) => /^\*+(\/|$)/.test(pattern))).toEqual([]);
  const folders = new Set(wanted.flatMap((pattern) => pattern.match(/^(.+)\/\*\*$/)?.[1] ?? []));
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  const written = [...readme.matchAll(/ --(?:out|report) ([\w.-]+)/g)].map(([, name]) => name!);
  expect(written.length).toBeGreaterThan(5);
  expect(written.filter((name) => folders.has(name) || wanted.includes(name))).toEqual([]);
  // and at all that is: code lies in no other folder
  const isCode = (folder: string) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).some((file) =>
      /\.(tsx?|mjs|css)$/.test(file),
    );
  for (const folder of [
    '.ci',
    'assembly',
    'docs',
    'e2e',
    'hosting',
    'licenses',
    'offline',
    'shaders',
    'src',
  ]) {
    expect(folders.has(folder) || !isCode(folder), folder).toBe(true);
  }
});
