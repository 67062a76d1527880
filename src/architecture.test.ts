/**
 * The shape of the house, checked on the syntax trees: imports between rooms run one way, each platform API has one
 * room, files stay small, and every dependency is one we agreed on.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { withRooms } from '../docs/rooms.mjs';

const root = normalize(join(dirname(fileURLToPath(import.meta.url)), '..'));

/** Options of the tools, of which the form, the flags and the help are made. */
const OPTIONS = ['compare', 'extract', 'evaluate', 'recipe', 'collapse'].map((room) => `${room}/options`);

/** What each room may import besides itself: a room, or single files of one. `errors` and the like are for all. */
const MAY_IMPORT: Record<string, string[]> = {
  formats: [],
  reports: 'formats'.split(' '),
  sources: 'formats reports'.split(' '),
  store: 'formats sources'.split(' '),
  models: 'formats'.split(' '),
  dataset: 'formats reports sources store'.split(' '),
  tasks: 'formats reports dataset linalg'.split(' '),
  backend: 'formats reports'.split(' '),
  linalg: [],
  adapters: 'formats backend linalg'.split(' '),
  inputs: 'formats reports sources models backend linalg'.split(' '),
  write: 'formats reports sources store'.split(' '),
  host: 'formats reports sources store backend inputs write'.split(' '),
  gguf: 'formats sources models backend'.split(' '),
  merge: 'formats reports sources store models backend inputs adapters gguf write host'.split(' '),
  forward: 'formats sources models backend'.split(' '),
  evaluate: 'formats reports store dataset tasks models backend linalg inputs host forward merge'.split(' '),
  calibration:
    'formats reports sources store models backend linalg inputs write host forward merge evaluate'.split(' '),
  compare: 'formats reports sources store models backend linalg inputs write host merge'.split(' '),
  extract: 'formats reports sources write models backend linalg inputs host merge evaluate compare'.split(
    ' ',
  ),
  collapse:
    'formats reports sources store models backend linalg inputs write host merge forward evaluate'.split(' '),
  push: 'formats reports sources write host'.split(' '),
  recipe:
    'formats reports sources store tasks backend linalg inputs gguf write host merge evaluate calibration'.split(
      ' ',
    ),
  worker:
    'formats reports sources store dataset tasks backend write host merge evaluate calibration compare extract collapse push recipe'.split(
      ' ',
    ),
  ui: [
    ...OPTIONS,
    ...'recipe conversations text-file chat-template card-results adapter-combination names hashes gguf-type quantity hub-id'
      .split(' ')
      .map((file) => `formats/${file}`),
    ...'worker/calls reports merge/method merge/methods merge/prediction tasks/harness-report tasks/metrics'.split(
      ' ',
    ),
    ...'tasks/statistics collapse/choose-layers'.split(' '),
  ],
  cli: [
    ...OPTIONS,
    ...'tasks/options worker reports formats sources write host/node host/threads evaluate/foreign-text'.split(
      ' ',
    ),
    'tasks/harness-report',
  ],
  main: ['ui', 'cli/page', 'worker/client'],
};

/**
 * The floors inside `merge`, from the ground up: values are imported from below only. Files at its root (`method`) are
 * for all floors.
 */
const MERGE_FLOORS = ['vocabulary', 'tensor', 'methods', 'plan', 'prediction', 'run'];

/** Files at the root of `src` that every room may use. */
const FOR_ALL = ['errors', 'trusted-worker-url'];

/** Where each platform API may be called: `room` or `room/file`. */
const API_ROOMS: Record<string, string[]> = {
  'navigator.gpu': ['backend/gpu'],
  'getDirectory()': ['store', 'write'],
  'createSyncAccessHandle()': ['store', 'write'],
  // The headless command's page sends its output to the command's own server.
  'fetch()': ['sources', 'write/served-destination', 'cli'],
  // Nothing else tells how much of a body is sent.
  XMLHttpRequest: ['sources/put-blob'],
  WebSocket: [],
  EventSource: [],
  eval: [],
  innerHTML: [],
  outerHTML: [],
  insertAdjacentHTML: [],
  dangerouslySetInnerHTML: [],
};

/** What runs in Node alone. */
const NODE_ONLY = /^(cli\/(?!page$|headless$)|host\/node\/|worker\/node-)/;

const RUNTIME_DEPENDENCIES = [
  '@huggingface/hub',
  '@huggingface/jinja',
  '@huggingface/tokenizers',
  '@tanstack/react-virtual',
  'comlink',
  'd3-scale',
  'd3-scale-chromatic',
  'hash-wasm',
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

interface Source {
  /** Path below `src` without extension, e.g. `merge/methods/ties`. */
  path: string;
  room: string;
  isTest: boolean;
  imports: { specifier: string; typeOnly: boolean }[];
  /** Platform APIs used, as spelled in {@link API_ROOMS}. */
  apis: string[];
}

const sources = filesBelow('src')
  .filter((path) => /\.tsx?$/.test(path) && !path.endsWith('.d.ts'))
  .map(readSource);
const production = sources.filter((source) => !source.isTest);

describe('rooms', () => {
  test('every room is known and imports run one way', () => {
    const wrong = production.flatMap((source) =>
      source.imports.flatMap(({ specifier }) => {
        const target = resolveImport(source, specifier);
        if (target === undefined || roomOf(target) === source.room) return [];
        if (isOneOf(target, FOR_ALL)) return [];
        return isOneOf(target, MAY_IMPORT[source.room] ?? []) ? [] : [`${source.path} imports ${target}`];
      }),
    );
    expect(wrong).toEqual([]);
    const rooms = new Set(production.map((source) => source.room));
    expect([...rooms].filter((room) => !(room in MAY_IMPORT) && !FOR_ALL.includes(room))).toEqual([]);
  });

  test('every permission is used', () => {
    const unused = Object.entries(MAY_IMPORT).flatMap(([room, entries]) => {
      const targets = production
        .filter((source) => source.room === room)
        .flatMap((source) => source.imports.map(({ specifier }) => resolveImport(source, specifier)));
      return entries
        .filter((entry) => !targets.some((target) => target !== undefined && isOneOf(target, [entry])))
        .map((entry) => `${room}: ${entry}`);
    });
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

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

function filesBelow(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name).slice(root.length).replaceAll('\\', '/').replace(/^\//, ''),
    );
}

function tooLong(paths: string[], limit: number): string[] {
  return paths
    .map((path) => ({ path, lines: read(path).trimEnd().split('\n').length }))
    .filter(({ lines }) => lines > limit)
    .map(({ path, lines }) => `${path}: ${lines} lines`);
}

function readSource(file: string): Source {
  const path = file.slice('src/'.length).replace(/\.tsx?$/, '');
  const tree = ts.createSourceFile(file, read(file), ts.ScriptTarget.Latest, true);
  const source: Source = {
    path,
    room: roomOf(path),
    isTest: /\.test(\.|$)/.test(path),
    imports: [],
    apis: [],
  };
  const visit = (node: ts.Node): void => {
    const found = importIn(node);
    if (found) source.imports.push(found);
    const api = apiIn(node);
    if (api) source.apis.push(api);
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return source;
}

function importIn(node: ts.Node): Source['imports'][number] | undefined {
  if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier)) {
    return { specifier: node.moduleSpecifier.text, typeOnly: node.importClause?.isTypeOnly ?? false };
  }
  if (ts.isExportDeclaration(node) && node.moduleSpecifier && ts.isStringLiteral(node.moduleSpecifier)) {
    return { specifier: node.moduleSpecifier.text, typeOnly: node.isTypeOnly };
  }
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
    const [argument] = node.arguments;
    if (argument && ts.isStringLiteral(argument)) return { specifier: argument.text, typeOnly: false };
  }
  if (
    ts.isImportTypeNode(node) &&
    ts.isLiteralTypeNode(node.argument) &&
    ts.isStringLiteral(node.argument.literal)
  ) {
    return { specifier: node.argument.literal.text, typeOnly: true };
  }
  return undefined;
}

function apiIn(node: ts.Node): string | undefined {
  if (ts.isCallExpression(node)) {
    const callee = node.expression;
    const name = ts.isPropertyAccessExpression(callee) ? callee.name.text : callee.getText();
    const called = `${name}()`;
    return Object.hasOwn(API_ROOMS, called) ? called : Object.hasOwn(API_ROOMS, name) ? name : undefined;
  }
  if (ts.isPropertyAccessExpression(node)) {
    const { text } = node.name;
    if (text === 'gpu' && /navigator$/.test(node.expression.getText())) return 'navigator.gpu';
    return text.endsWith('HTML') && Object.hasOwn(API_ROOMS, text) ? text : undefined;
  }
  if (ts.isNewExpression(node) || ts.isJsxAttribute(node) || ts.isPropertyAssignment(node)) {
    const name = (ts.isNewExpression(node) ? node.expression : node.name).getText();
    return Object.hasOwn(API_ROOMS, name) ? name : undefined;
  }
  return undefined;
}

/** The first folder below `src`, or the file's own name at the root. */
function roomOf(path: string): string {
  return path.split('/')[0]!;
}

/** The imported file below `src`, or undefined for a package, a shader or a file outside. */
function resolveImport(source: Source, specifier: string): string | undefined {
  if (!specifier.startsWith('.')) return undefined;
  const bare = specifier.replace(/\?.*$/, '').replace(/\.tsx?$/, '');
  const target = join(dirname(source.path), bare).replaceAll('\\', '/');
  return target.startsWith('..') ? undefined : target;
}

/** Whether `path` is one of the entries, lies below one, or shares its beginning up to a `-` (`formats/recipe-yaml`). */
function isOneOf(path: string, entries: readonly string[]): boolean {
  return entries.some(
    (entry) =>
      path === entry || path.startsWith(`${entry}/`) || (entry.includes('/') && path.startsWith(`${entry}-`)),
  );
}

function packageOf(specifier: string): string {
  const parts = specifier.split('/');
  return specifier.startsWith('@') ? parts.slice(0, 2).join('/') : parts[0]!;
}
