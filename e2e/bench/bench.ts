/**
 * Merges against the floor: generated checkpoints of real shapes are merged by the headless command from local folders, and by
 * the built studio in a browser from folders a user picked and from the browser's storage. Beside every merge stands a plain
 * copy of the same bytes in the same run and, where there is one, a mergekit on the same files. docs/benchmarks.md says what
 * each row counts.
 *
 *     npm run bench -- [--quick] [--case TEXT] [--engine cpu|webgpu] [--repeat 2] [--mergekit PROGRAM] [--gpu]
 *
 * `--gpu` measures the command alone, on the machine's own graphics device, and needs no browser; without it WebGPU is the
 * software adapter of the tests.
 *
 * Generated models and the browser's profile stay in node_modules/.cache/amalgam-bench. Memory and processor time of the
 * browser are read from /proc, on Linux only.
 */
import { mkdirSync, realpathSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Browser } from 'puppeteer-core';
import type { BackendKind } from '../../src/reports/backend';
import { type BuiltStudio, startBuiltStudio } from '../built-studio';
import { swiftShaderEnvironment } from '../setup-chromium.mjs';
import { buildCommand, lookByCommand, mergeByCommand, mergeByMergekit } from './by-command';
import { CASES, type Case, type Folders, QUICK_CASES, waysOf, weightFiles } from './cases';
import { adapter, checkpoint } from './checkpoints';
import { diskFloor, freshPageMicroseconds } from './disk-floor';
import { measureProducts } from './floor';
import { mergeFromFolder } from './from-folder';
import { type Stored, storeModels } from './from-storage';
import { bestOf, formatRow, HEADER, type Row, WAYS, type Way } from './rows';
import { startBrowser } from './studio';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const SAMPLES = join(PROJECT, 'public', 'samples');
const RANK = 16;
/** Of the hub; its download host and the studio have the next ones. Always the same: what is stored belongs to an address. */
const PORT = 47_311;

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    case: { type: 'string', default: '' },
    engine: { type: 'string' },
    repeat: { type: 'string', default: '2' },
    gpu: { type: 'boolean', default: false },
    mergekit: { type: 'string' },
  },
});
const engines = (['cpu', 'webgpu'] as const).filter((name) => name === (options.engine ?? name));
if (engines.length === 0) throw new Error(`--engine is ${options.engine}; it is cpu or webgpu.`);
const repeat = Number(options.repeat);
if (!Number.isSafeInteger(repeat))
  throw new Error(`--repeat is ${options.repeat}; it is a number of rounds.`);
const mergekit = options.mergekit === undefined ? undefined : resolve(options.mergekit);
mkdirSync(join(PROJECT, 'node_modules', '.cache', 'amalgam-bench'), { recursive: true });
const cache = realpathSync(join(PROJECT, 'node_modules', '.cache', 'amalgam-bench'));

/** Folders of a case's models, generated where they are missing. */
async function foldersOf({ shape, contributors: { kind, count } }: Case): Promise<Folders> {
  if (shape === 'sample') return [join(SAMPLES, 'base'), join(SAMPLES, 'kitchen'), join(SAMPLES, 'harbour')];
  const folders: [string, ...string[]] = [await checkpoint(cache, shape, 0)];
  for (let i = 1; i <= count; i++)
    folders.push(await (kind === 'lora' ? adapter(cache, shape, RANK, i) : checkpoint(cache, shape, i)));
  return folders;
}

/** The ways of a case that are asked for. */
const chosenWays = (c: Case, engine: BackendKind): Way[] =>
  waysOf(c, engine).filter(
    (way) => `${c.name}, ${WAYS[way]}`.includes(options.case) && (!options.gpu || way === 'command'),
  );

interface Measured {
  c: Case;
  engine: BackendKind;
  ways: readonly Way[];
}

/** A case on one engine, every way and mergekit in turn; the best round of each is printed. */
async function measure({ c, engine, ways }: Measured, opened?: Opened): Promise<void> {
  const folders = await foldersOf(c);
  // the first of the ways finds its files in the cache of the system too
  diskFloor(weightFiles(c, folders), 0, join(cache, 'floor'));
  let stored: Stored | undefined;
  try {
    if (opened && ways.includes('storage')) {
      const { browser, studio, flops } = opened;
      stored = await storeModels(browser, studio, c, engine, folders, PORT, flops);
    }
    const act: Record<Way, () => Promise<Row>> = {
      command: () =>
        c.job === 'merge' ? mergeByCommand(c, engine, folders, cache) : lookByCommand(c, folders, cache),
      folder: () => mergeFromFolder(opened!.browser, opened!.studio, c, engine, folders, cache),
      storage: () => stored!.measure(),
    };
    const compared =
      mergekit !== undefined &&
      c.job === 'merge' &&
      waysOf(c, engine).length > 1 &&
      c.contributors.kind === 'tuned';
    const rows = new Map(ways.map((way) => [way, [] as Row[]]));
    const times: number[] = [];
    // masks are made once: it takes long, and is the same work every time
    const rounds = c.masks === 'cold' ? Math.min(1, repeat) : repeat;
    for (let round = 0; round < rounds; round++) {
      for (const way of ways) rows.get(way)!.push(await act[way]());
      if (compared) {
        const seconds = await mergeByMergekit(mergekit, c, folders, cache).catch((thrown: Error) => thrown);
        if (typeof seconds === 'number') times.push(seconds);
        else console.error(`${c.name}: ${seconds.message}`);
      }
    }
    const onDisk = [...(rows.get('command') ?? []), ...(rows.get('folder') ?? [])];
    if (new Set(onDisk.map((row) => row.output)).size > 1) {
      console.error(`${c.name}: merges of the same files wrote different bytes.`);
      process.exitCode = 1;
    }
    for (const measured of rows.values()) if (measured.length > 0) print(bestOf(measured), times);
  } finally {
    await stored?.close();
  }
}

function print(row: Row, mergekitSeconds: readonly number[]): void {
  const least = mergekitSeconds.length > 0 ? Math.min(...mergekitSeconds) : undefined;
  console.log(formatRow(row, least, availableParallelism()));
}

/** The browser that is measured, and the studio in it. */
interface Opened {
  browser: Browser;
  studio: BuiltStudio;
  /** Floating point operations a second of one thread there. */
  flops: number;
}

async function open(): Promise<Opened> {
  const hosts = [`http://127.0.0.1:${PORT}`, `http://127.0.0.1:${PORT + 1}`];
  const studio = await startBuiltStudio(hosts, PORT + 2);
  const browser = await startBrowser(join(cache, 'profile'), new URL(studio.url).origin);
  const flops = await measureProducts(browser, studio.url);
  console.log(
    `${await browser.version()}; one thread: ${(flops / 1e9).toFixed(1)} GFLOP/s in products of matrices, ` +
      `${freshPageMicroseconds().toFixed(2)} µs for a fresh page of memory.`,
  );
  return { browser, studio, flops };
}

if (!options.gpu) Object.assign(process.env, swiftShaderEnvironment());
await buildCommand(cache);
const all = (options.quick ? QUICK_CASES : CASES).flatMap((c) =>
  (options.engine ? engines : c.engines).map((engine) => ({
    c,
    engine,
    ways: chosenWays(c, engine),
  })),
);
const opened = all.some(({ ways }) => ways.some((way) => way !== 'command')) ? await open() : undefined;
try {
  console.log(HEADER);
  for (const one of all) if (one.ways.length > 0) await measure(one, opened);
} finally {
  await opened?.browser.close();
  await opened?.studio.close();
}
