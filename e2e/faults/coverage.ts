/**
 * Counts which parts of our code an input reaches, for the fuzzer: the parsers are bundled with a counter at the beginning
 * of every branch, loop, case and right side of a logical operator. (`@jazzer.js/core` 4.0.0 would give the same;
 * its program needs a newer C library than Debian 12 has, and 2.1.0 is downloaded from elsewhere than npm when installed.)
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, type ESTree, parseSync, Visitor } from 'vite';
import { cpuKernels } from '../../assembly/vite-plugin.ts';
import type { FuzzTarget } from './fuzz-targets';

/** Where counters are put: what reads files of others. */
const COUNTED =
  /\/src\/(formats|dataset|gguf|adapters|inputs|models|recipe|sources|store|foreign|evaluate|tasks)\//;

export interface Counted {
  targets: FuzzTarget[];
  /** One count for each place in the code; set to 0 before an input. */
  counts: Uint8Array;
  /** Short texts and numbers that the parsers compare with: words for the fuzzer. */
  words: string[];
}

/** Bundles the fuzz targets with counters and loads them. */
export async function countedTargets(): Promise<Counted> {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const words = new Set<string>();
  let places = 0;
  const folder = mkdtempSync(join(root, 'node_modules/.cache', 'fuzz-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  await build({
    root,
    configFile: false,
    logLevel: 'error',
    plugins: [
      cpuKernels(),
      {
        name: 'counters',
        enforce: 'pre',
        transform(code, id) {
          if (!COUNTED.test(id) || !id.endsWith('.ts')) return undefined;
          const counted = withCounters(code, id, places, words);
          places = counted.places;
          return { code: counted.code, map: null };
        },
      },
      // files are read beside the module as it is in the sources
      {
        name: 'own-place',
        transform: (code, id) =>
          id.includes('/e2e/faults/')
            ? { code: code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href)), map: null }
            : undefined,
      },
    ],
    build: {
      ssr: true,
      outDir: folder,
      target: 'node20',
      rollupOptions: { input: { targets: join(root, 'e2e/faults/fuzz-targets.ts') } },
    },
  });
  const counts = new Uint8Array(places);
  (globalThis as { amalgamCounts?: Uint8Array }).amalgamCounts = counts;
  const { fuzzTargets } = await import(pathToFileURL(join(folder, 'targets.js')).href).catch(
    () => import(pathToFileURL(join(folder, 'targets.mjs')).href),
  );
  return { targets: fuzzTargets, counts, words: [...words] };
}

/** The code with a counter at every place, numbered from `first`; what it compares with goes into `words`. */
export function withCounters(
  code: string,
  fileName: string,
  first: number,
  words: Set<string>,
): { code: string; places: number } {
  let places = first;
  const inserts: { at: number; text: string }[] = [];
  const insert = (at: number, text: string) => inserts.push({ at, text });
  const bump = () => `globalThis.amalgamCounts[${places++}]++`;
  // what begins at the same character is opened from the outside in, as it is entered, and closed from the inside out
  const open = ({ start }: ESTree.Span) => insert(start, `{${bump()};`);
  const close = ({ end }: ESTree.Span) => insert(end, '}');
  const openValue = ({ start }: ESTree.Span) => insert(start, `(${bump()},`);
  const closeValue = ({ end }: ESTree.Span) => insert(end, ')');
  const loop = ({ body }: { body: ESTree.Span }) => open(body);
  const loopEnd = ({ body }: { body: ESTree.Span }) => close(body);
  /** Names of modules and types, which no input is compared with. */
  const names = new Set<unknown>();
  new Visitor({
    ImportDeclaration: (node) => names.add(node.source),
    TSImportType: (node) => names.add(node.source),
    TSLiteralType: (node) => names.add(node.literal),
    Literal(node) {
      const { value } = node;
      if (typeof value === 'string' && value.length > 0 && value.length <= 24 && !names.has(node))
        words.add(value);
    },
    IfStatement(node) {
      open(node.consequent);
      if (node.alternate) open(node.alternate);
    },
    'IfStatement:exit'(node) {
      close(node.consequent);
      if (node.alternate) close(node.alternate);
      else insert(node.end, ` else {${bump()}}`);
    },
    ConditionalExpression(node) {
      openValue(node.consequent);
      openValue(node.alternate);
    },
    'ConditionalExpression:exit'(node) {
      closeValue(node.consequent);
      closeValue(node.alternate);
    },
    LogicalExpression: (node) => openValue(node.right),
    'LogicalExpression:exit': (node) => closeValue(node.right),
    SwitchCase: (node) => node.test && insert(node.consequent[0]?.start ?? node.end, `${bump()};`),
    ForStatement: loop,
    'ForStatement:exit': loopEnd,
    ForOfStatement: loop,
    'ForOfStatement:exit': loopEnd,
    WhileStatement: loop,
    'WhileStatement:exit': loopEnd,
  }).visit(parseSync(fileName, code).program);
  let counted = '';
  let from = 0;
  for (const { at, text } of inserts.sort((a, b) => a.at - b.at)) {
    counted += code.slice(from, at) + text;
    from = at;
  }
  return { code: counted + code.slice(from), places };
}
