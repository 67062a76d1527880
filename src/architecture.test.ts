/**
 * The shape of the house, checked on the syntax trees: imports between rooms run one way, each platform API has one
 * room, files stay small, and every dependency is one we agreed on.
 */
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { roomOf, withRooms } from '../docs/rooms.mjs';
import {
  API_ROOMS,
  filesBelow,
  imports,
  isOneOf,
  production,
  read,
  resolveImport,
} from './syntax.test.support';

/**
 * Rooms that each room may import besides itself, or single files of one. `errors` and the like are for all, the `options` of a
 * room for a form and a verb, a room with a `job` for the worker, and the plain-data files of a tool ({@link isOfTool}). The
 * view of a tool belongs to the room `ui`, its verb to `cli`; its job and what that computes with to `tools`.
 */
const MAY_IMPORT: Record<string, string[]> = {
  formats: [],
  reports: 'formats'.split(' '),
  sources: 'formats reports'.split(' '),
  store: 'formats reports sources'.split(' '),
  models: 'formats'.split(' '),
  foreign: 'formats sources'.split(' '),
  dataset: 'formats reports sources store foreign'.split(' '),
  tasks: 'formats reports foreign linalg'.split(' '),
  backend: 'formats reports'.split(' '),
  linalg: [],
  adapters: 'formats backend linalg'.split(' '),
  inputs: 'formats reports sources models foreign backend linalg gguf'.split(' '),
  write: 'formats reports sources store'.split(' '),
  host: 'formats reports sources store backend inputs write'.split(' '),
  gguf: 'formats sources models backend'.split(' '),
  merge: 'formats reports sources store foreign models backend linalg inputs adapters gguf write host'.split(
    ' ',
  ),
  forward: 'formats reports sources models backend'.split(' '),
  evaluate:
    'formats reports sources store foreign dataset tasks models backend inputs host forward merge'.split(' '),
  calibration: 'formats reports sources store models backend linalg inputs host forward merge evaluate'.split(
    ' ',
  ),
  tools:
    'formats reports sources models foreign backend linalg inputs adapters write host merge forward evaluate calibration recipe'.split(
      ' ',
    ),
  push: 'formats reports sources write host'.split(' '),
  recipe:
    'formats reports sources store tasks dataset backend linalg inputs gguf write host merge forward evaluate calibration'.split(
      ' ',
    ),
  worker: 'formats reports sources store foreign tasks backend write host merge tools'.split(' '),
  ui: [
    ...'recipe conversations chat-template card-results adapter-combination names hashes gguf-type quantity hub-id html-page zip print-picture model-family'
      .split(' ')
      .map((file) => `formats/${file}`),
    ...'worker/client reports merge/method merge/methods merge/recipe-names merge/prediction tasks/harness-report tasks/metrics'.split(
      ' ',
    ),
    'tasks/objective',
  ],
  cli: 'worker reports formats sources write host/node host/threads foreign/foreign-text tasks/harness-report tasks/shipped'.split(
    ' ',
  ),
  main: ['ui', 'worker/client'],
};

/**
 * The floors inside `merge`, from the ground up: values are imported from below only. Files at its root (`method`) are
 * for all floors.
 */
const MERGE_FLOORS = ['vocabulary', 'tensor', 'methods', 'plan', 'prediction', 'run'];

/** Files at the root of `src` that every room may use. */
const FOR_ALL = ['errors', 'platform', 'trusted-worker-url'];

/** Files that run in Node only. */
const NODE_ONLY = /^(cli\/|host\/node\/|worker\/node-)/;

/** Files outside `src` that production code may import: never a test's or a build's own files. */
const OUTSIDE = /^docs\/\w+\.md$|^(shaders\/.*\.wgsl|package\.json)$/;

const RUNTIME_DEPENDENCIES = [
  '@huggingface/hub',
  '@huggingface/jinja',
  '@huggingface/tokenizers',
  '@tanstack/react-virtual',
  'comlink',
  'd3-scale',
  'd3-scale-chromatic',
  'hash-wasm',
  'hyparquet',
  'hyparquet-compressors',
  'idb',
  'radix-ui',
  'react',
  'react-dom',
  'valibot',
  'yaml',
  'zustand',
];

const MAX_SOURCE_LINES = 400;
const MAX_SHADER_LINES = 150;

describe('rooms', () => {
  test('every room is known and imports run one way', () => {
    const wrong = production.flatMap((source) =>
      source.imports.flatMap(({ specifier }) => {
        const target = resolveImport(source, specifier);
        if (target === undefined || roomOf(target) === source.room) return [];
        if (isOneOf(target, FOR_ALL) || isOfTool(source.room, target)) return [];
        return isOneOf(target, MAY_IMPORT[source.room] ?? []) ? [] : [`${source.path} imports ${target}`];
      }),
    );
    expect(wrong).toEqual([]);
    const rooms = new Set(production.map((source) => source.room));
    expect([...rooms].filter((room) => !(room in MAY_IMPORT) && !FOR_ALL.includes(room))).toEqual([]);
  });

  test('from outside of src come shaders, the version and pages that are served', () => {
    const wrong = production.flatMap((source) =>
      source.imports.flatMap(({ specifier }) => {
        if (!specifier.startsWith('.')) return [];
        const target = join('src', dirname(source.path), specifier.replace(/\?.*$/, ''));
        return target.startsWith('src/') || OUTSIDE.test(target) ? [] : [`${source.path} imports ${target}`];
      }),
    );
    expect(wrong).toEqual([]);
  });

  test('every permission is used', () => {
    const unused = Object.entries(MAY_IMPORT).flatMap(([room, entries]) =>
      entries.filter((entry) => !imports(room, entry)).map((entry) => `${room}: ${entry}`),
    );
    expect(unused).toEqual([]);
  });

  test('inside merge, values come from the floors below', () => {
    const floorOf = (path: string) =>
      path.startsWith('merge/') ? MERGE_FLOORS.indexOf(path.split('/')[1]!) : -1;
    const merge = production.filter(({ path }) => floorOf(path) >= 0 && !/\.cases$|\.oracle$/.test(path));
    expect(new Set(merge.map(({ path }) => floorOf(path))).size).toBe(MERGE_FLOORS.length);
    const wrong = merge.flatMap((source) =>
      source.imports.flatMap(({ specifier, typeOnly }) => {
        const target = typeOnly ? undefined : resolveImport(source, specifier);
        return target !== undefined && floorOf(target) > floorOf(source.path)
          ? [`${source.path} imports ${target}`]
          : [];
      }),
    );
    expect(wrong).toEqual([]);
  });

  test('no file needs itself: imports run in no circle, types included', () => {
    const paths = new Set(production.map(({ path }) => path));
    const needs = new Map(
      production.map((source) => [
        source.path,
        source.imports.flatMap(({ specifier }) => {
          const target = resolveImport(source, specifier);
          return target !== undefined && paths.has(target) ? [target] : [];
        }),
      ]),
    );
    const reaches = (from: string) => {
      const seen = new Set<string>();
      const open = [from];
      for (let path = open.pop(); path !== undefined; path = open.pop()) {
        for (const next of needs.get(path)!) if (!seen.has(next)) open.push(seen.add(next) && next);
      }
      return seen;
    };
    const inCircles = [...paths].filter((path) => reaches(path).has(path));
    expect(inCircles).toEqual([]);
  });

  test('docs/design.md says of each what it is', () => {
    const page = read('docs/design.md');
    const rooms = new Set(
      production
        .map(({ path }) => path)
        .filter((path) => path.includes('/'))
        .map(roomOf),
    );
    expect([...rooms].filter((room) => !page.includes(`\n    src/${room}/ `))).toEqual([]);
  });

  test('docs/design.md draws them as they are (npm run docs:rooms writes it)', () => {
    const page = read('docs/design.md');
    expect(page).toBe(withRooms(page));
  });

  test('each platform API is used in its own room only', () => {
    const wrong = production.flatMap((source) =>
      source.apis
        .filter((api) => !isOneOf(source.path, API_ROOMS[api]!))
        .map((api) => `${source.path}: ${api}`),
    );
    expect(wrong).toEqual([]);
  });

  test('the page imports runtime dependencies only; Node and tools stay in the command and the tests', () => {
    const wrong = production
      .filter((source) => !NODE_ONLY.test(source.path))
      .flatMap((source) =>
        source.imports
          .map(({ specifier }) => specifier)
          .filter(
            (name) => !/^(\.|\/|virtual:)/.test(name) && !RUNTIME_DEPENDENCIES.includes(packageOf(name)),
          )
          .map((name) => `${source.path} imports ${name}`),
      );
    expect(wrong).toEqual([]);
  });
});

describe('files', () => {
  test(`no source file is longer than ${MAX_SOURCE_LINES} lines`, () => {
    const paths = [...filesBelow('src'), ...filesBelow('e2e')].filter((path) =>
      /\.(tsx?|m?js|css)$/.test(path),
    );
    expect(tooLong(paths, MAX_SOURCE_LINES)).toEqual([]);
  });

  test('every class of a style sheet is named by the page', () => {
    const pages = filesBelow('src').filter((path) => /(?<!\.test)\.tsx?$/.test(path));
    const named = new Set(pages.flatMap((path) => read(path).match(/[\w-]+/g)));
    const unused = filesBelow('src')
      .filter((path) => path.endsWith('.css'))
      .flatMap((path) => {
        const selectors = read(path).replace(/\/\*.*?\*\/|\{[^{}]*\}/gs, '');
        return [...selectors.matchAll(/\.([a-z][\w-]*)/g)].map(([, name]) => `${path}: ${name}`);
      })
      .filter((line) => !named.has(line.split(' ')[1]!));
    expect(unused).toEqual([]);
  });

  test(`every shader is imported and at most ${MAX_SHADER_LINES} lines long`, () => {
    const shaders = filesBelow('shaders').filter((path) => path.endsWith('.wgsl'));
    expect(shaders.length).toBeGreaterThan(0);
    expect(tooLong(shaders, MAX_SHADER_LINES)).toEqual([]);
    const imported = new Set(
      production.flatMap((source) =>
        source.imports
          .filter(({ specifier }) => specifier.endsWith('.wgsl?raw'))
          .map(({ specifier }) => join('src', dirname(source.path), specifier.slice(0, -'?raw'.length))),
      ),
    );
    expect(shaders.filter((path) => !imported.has(path))).toEqual([]);
  });
});

describe('dependencies', () => {
  const manifest = JSON.parse(read('package.json')) as Record<string, Record<string, string>>;
  const { dependencies = {}, devDependencies = {}, optionalDependencies = {} } = manifest;

  test('the runtime dependencies are the agreed ones', () => {
    expect(Object.keys(dependencies).sort()).toEqual([...RUNTIME_DEPENDENCIES].sort());
  });

  test('each is pinned to one version and named, with that version, in docs/dependencies.md', () => {
    const rows = [
      ...read('docs/dependencies.md').matchAll(/^\| `([^`]+)` \| (\S+) \| ([^|]+) \| ([^|]+) \|$/gm),
    ];
    const documented = new Map(rows.map(([, name, version]) => [name, version]));
    for (const [name, version] of Object.entries({
      ...dependencies,
      ...devDependencies,
      ...optionalDependencies,
    })) {
      expect(version, name).toMatch(/^\d+\.\d+\.\d+$/);
      expect(documented.get(name), name).toBe(version);
      documented.delete(name);
    }
    expect([...documented.keys()]).toEqual([]);
  });

  test('the lock file names no registry', () => {
    expect(read('package-lock.json')).not.toMatch(/"resolved"/);
  });
});

function tooLong(paths: string[], limit: number): string[] {
  return paths
    .map((path) => ({ path, lines: read(path).trimEnd().split('\n').length }))
    .filter(({ lines }) => lines > limit)
    .map(({ path, lines }) => `${path}: ${lines} lines`);
}

/**
 * Whether files are open to a room by what they are: options to those who ask for them, a room's job to the worker; of a
 * tool what is plain to all, and its words to the verb.
 */
function isOfTool(room: string, target: string): boolean {
  if (room === 'worker') return production.some(({ path }) => path === `${roomOf(target)}/job`);
  if (room !== 'ui' && room !== 'cli') return false;
  if (target === `${roomOf(target)}/options` || target === 'tools') return true;
  return isPlain(target) || (room === 'cli' && /^tools\/[^/]+\/words$/.test(target));
}

/** A file of a tool that imports nothing but formats, reports and such files: what both sides may read. */
function isPlain(target: string): boolean {
  const source = production.find(({ path, room }) => path === target && room === 'tools');
  return (
    source?.imports.every(({ specifier }) => {
      const needed = resolveImport(source, specifier);
      return needed !== undefined && (isOneOf(needed, ['formats', 'reports', 'errors']) || isPlain(needed));
    }) ?? false
  );
}

function packageOf(specifier: string): string {
  const parts = specifier.split('/');
  return specifier.startsWith('@') ? parts.slice(0, 2).join('/') : parts[0]!;
}
