/** The files of `src` as syntax trees have them: what each imports and which platform APIs it uses. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { roomOf } from '../docs/rooms.mjs';

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
  'pipeTo()': ['platform', 'ui/screens/OutputFiles'],
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
  const tree = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const source: Source = {
    path,
    room: roomOf(path),
    isTest: /\.test(\.|$)/.test(path),
    text,
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
    if (Object.hasOwn(API_ROOMS, `.${called}`)) return callee.getText() === name ? undefined : `.${called}`;
    return Object.hasOwn(API_ROOMS, called) ? called : Object.hasOwn(API_ROOMS, name) ? name : undefined;
  }
  if (ts.isForOfStatement(node) && node.awaitModifier)
    return /\.(entries|keys|values)\(\)$/.test(node.expression.getText()) ? 'awaited entries()' : undefined;
  if (ts.isPropertyAccessExpression(node)) {
    const { text } = node.name;
    if (text === 'onmessage') return text;
    if (text === 'gpu' && /navigator$/.test(node.expression.getText())) return 'navigator.gpu';
    return text.endsWith('HTML') && Object.hasOwn(API_ROOMS, text) ? text : undefined;
  }
  if (ts.isNewExpression(node) || ts.isJsxAttribute(node) || ts.isPropertyAssignment(node)) {
    const name = (ts.isNewExpression(node) ? node.expression : node.name).getText();
    return Object.hasOwn(API_ROOMS, name) ? name : undefined;
  }
  return undefined;
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
