/** The files of `src` as syntax trees have them: what each imports and which platform APIs it uses. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync, Visitor } from 'vite';
import { importsIn, roomOf } from '../docs/rooms.mjs';

const root = normalize(join(dirname(fileURLToPath(import.meta.url)), '..'));

/** Rooms in which each platform API may be called: `room` or `room/file`. */
export const API_ROOMS: Record<string, string[]> = {
  'navigator.gpu': ['backend/gpu'],
  // Awaited calls must be reachable from a root until they have settled, and these are not by themselves.
  'getDirectory()': ['platform'],
  'getDirectoryHandle()': ['platform', 'host/node'],
  'getFileHandle()': ['platform'],
  'getFile()': ['platform'],
  'createSyncAccessHandle()': ['platform'],
  'createWritable()': ['platform'],
  '.removeEntry()': ['platform'],
  '.move()': ['platform'],
  'arrayBuffer()': ['platform'],
  'getReader()': ['platform'],
  'pipeTo()': ['platform', 'ui/parts/SavedFiles'],
  'awaited entries()': ['platform'],
  Worker: ['platform', 'host/node'],
  MessageChannel: ['platform'],
  BroadcastChannel: ['platform'],
  onmessage: ['platform', 'backend/cpu/thread-backend', 'host/node'],
  'expose()': ['platform', 'worker/node'],
  'fetch()': ['sources'],
  // The only way to know how much of a body is sent.
  XMLHttpRequest: ['sources/hub-upload'],
  WebSocket: [],
  EventSource: [],
  eval: [],
  innerHTML: [],
  outerHTML: [],
  insertAdjacentHTML: [],
  dangerouslySetInnerHTML: [],
};

interface Source {
  /** Path below `src` without extension, e.g. `merge/methods/ties`. */
  path: string;
  room: string;
  isTest: boolean;
  text: string;
  imports: { specifier: string; typeOnly: boolean }[];
  /** Platform APIs used, as spelled in {@link API_ROOMS}. */
  apis: string[];
}

const sources = filesBelow('src')
  .filter((path) => /\.tsx?$/.test(path) && !path.endsWith('.d.ts'))
  .map(readSource);
export const production = sources.filter((source) => !source.isTest);

export function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

export function filesBelow(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name).slice(root.length).replaceAll('\\', '/').replace(/^\//, ''),
    );
}

function readSource(file: string): Source {
  const path = file.slice('src/'.length).replace(/\.tsx?$/, '');
  const text = read(file);
  const { program } = parseSync(file, text);
  const source: Source = {
    path,
    room: roomOf(path),
    isTest: /\.test(\.|$)/.test(path),
    text,
    imports: importsIn(program),
    apis: [],
  };
  const used = (...names: string[]) => {
    const name = names.find((one) => Object.hasOwn(API_ROOMS, one));
    if (name) source.apis.push(name);
  };
  const written = ({ start, end }: { start: number; end: number }) => text.slice(start, end);
  new Visitor({
    CallExpression({ callee }) {
      if (callee.type !== 'MemberExpression') used(`${written(callee)}()`, written(callee));
      else {
        const name = written(callee.property);
        used(`.${name}()`, `${name}()`, name);
      }
    },
    ForOfStatement: (node) =>
      node.await && /\.(entries|keys|values)\(\)$/.test(written(node.right)) && used('awaited entries()'),
    MemberExpression({ object, property }) {
      const name = written(property);
      if (name === 'onmessage' || name.endsWith('HTML')) used(name);
      if (name === 'gpu' && /navigator$/.test(written(object))) used('navigator.gpu');
    },
    NewExpression: (node) => used(written(node.callee)),
    JSXAttribute: (node) => used(written(node.name)),
    Property: (node) => used(written(node.key)),
  }).visit(program);
  return source;
}

/** The imported file below `src`, or undefined for a package, a shader or a file outside. */
export function resolveImport(source: Source, specifier: string): string | undefined {
  if (!specifier.startsWith('.')) return undefined;
  const bare = specifier.replace(/\?.*$/, '').replace(/\.tsx?$/, '');
  const target = join(dirname(source.path), bare).replaceAll('\\', '/');
  return target.startsWith('..') ? undefined : target;
}

/** Whether `path` is one of the entries, lies below one, or shares its beginning up to a `-` (`formats/recipe-yaml`). */
export function isOneOf(path: string, entries: readonly string[]): boolean {
  return entries.some(
    (entry) =>
      path === entry || path.startsWith(`${entry}/`) || (entry.includes('/') && path.startsWith(`${entry}-`)),
  );
}

/** Whether a file at `path` or below it imports the target. */
export function imports(path: string, target: string): boolean {
  return production.some(
    (source) =>
      isOneOf(source.path, [path]) &&
      source.imports.some(({ specifier }) => {
        const found = resolveImport(source, specifier);
        return found !== undefined && isOneOf(found, [target]);
      }),
  );
}
