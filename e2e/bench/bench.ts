/**
 * Merges against the floor: generated checkpoints of real shapes go through the built studio in the installed Chromium,
 * from the browser's storage to the browser's storage, and beside every merge stands a plain copy of the same bytes in
 * the same run.
 *
 *     npm run bench -- [--quick] [--case TEXT] [--engine cpu|webgpu] [--repeat 2] [--gpu] [--threads] [--dist DIR]
 *
 * `--threads` prints the processor time of the busiest threads below each row; `--dist` measures a studio that is built
 * already, to compare two of them; `--repeat 0` only brings the models into the browser's storage.
 * Without `--gpu` WebGPU is the software adapter of the tests. What is generated and the browser's profile are kept in
 * node_modules/.cache/amalgam-bench. Memory is read from /proc, on Linux only.
 */

import { mkdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type BrowserContext, chromium, type Page } from 'playwright';
import { startAppServer } from '../../src/cli/app-server';
import { openCalls } from '../../src/cli/browser';
import { ensureBuilt } from '../../src/cli/build';
import type { Recipe } from '../../src/formats/recipe';
import { renameRepositories } from '../../src/formats/recipe-models';
import type { BackendKind } from '../../src/reports/backend';
import type { MergeReport } from '../../src/reports/merge';
import type { WorkerCalls } from '../../src/worker/calls';
import {
  browserBytes,
  browserSeconds,
  type ThreadSeconds,
  watchMemory,
  watchThreads,
} from '../browser-memory';
import { type FakeHub, startFakeHub } from '../fake-hub';
import type { FakeModel } from '../fake-hub/repository';
import { CHROMIUM_ARGS, findChromium, SWIFTSHADER_ARGS } from '../setup-chromium.mjs';
import {
  CALIBRATION,
  CALIBRATION_TOKENS,
  CASES,
  type Case,
  EVALUATED_TOKENS,
  type Look,
  QUICK_CASES,
  recipeOf,
} from './cases';
import { adapter, checkpoint } from './checkpoints';
import { copyFloor, measureRates, type Rates } from './floor';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const CACHE = join(PROJECT, 'node_modules', '.cache', 'amalgam-bench');
const SAMPLES = join(PROJECT, 'public', 'samples');
const RANK = 16;

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    case: { type: 'string', default: '' },
    engine: { type: 'string' },
    repeat: { type: 'string', default: '2' },
    gpu: { type: 'boolean', default: false },
    threads: { type: 'boolean', default: false },
    dist: { type: 'string' },
  },
});

/** What of a report is printed; only merges write shards. */
type Done = Pick<MergeReport, 'seconds' | 'adapter' | 'stages'> & Partial<Pick<MergeReport, 'shards'>>;

interface Row {
  name: string;
  engine: string;
  floor: number;
  /** What the floor consists of. */
  floorOf: 'bytes' | 'products';
  report: Done;
  /** Read and written, and written. */
  bytes: number;
  written: number;
  /** Processor time of all browser processes. */
  processor: number;
  aboveIdle: number;
  threads: ThreadSeconds[];
}

/** The hub's models of a case: the base first. */
async function modelsOf(c: Case): Promise<FakeModel[]> {
  const { kind, count } = c.contributors;
  if (c.shape === 'sample') {
    return ['base', 'kitchen', 'harbour'].map((name) => ({
      id: `bench/${name}`,
      files: join(SAMPLES, name),
    }));
  }
  const { shape } = c;
  const model = (id: string, folder: string): FakeModel => ({ id: `bench/${id}`, files: folder });
  const models = [model(`${shape.name}-base`, await checkpoint(CACHE, shape, 0))];
  for (let i = 1; i <= count; i++) {
    models.push(
      kind === 'lora'
        ? model(`${shape.name}-lora-${i}`, await adapter(CACHE, shape, RANK, i))
        : model(`${shape.name}-tuned-${i}`, await checkpoint(CACHE, shape, i)),
    );
  }
  return models;
}

interface Studio {
  page: Page;
  calls: WorkerCalls;
}

async function openStudio(context: BrowserContext, url: string): Promise<Studio> {
  const page = await context.newPage();
  return { page, calls: await openCalls(page, url) };
}

/** The bench prints what came out, not how far it is. */
const silent = () => undefined;

const OUTPUT = 'bench-output';

async function removeOutput(page: Page): Promise<void> {
  await page.evaluate(async (name) => {
    const root = await navigator.storage.getDirectory();
    const outputs = await root.getDirectoryHandle('outputs', { create: true });
    await outputs.removeEntry(name, { recursive: true }).catch(() => undefined);
  }, OUTPUT);
}

async function removeMasks(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const root = await navigator.storage.getDirectory();
    await root.removeEntry('importance', { recursive: true }).catch(() => undefined);
  });
}

/** Ids that every shape's vocabulary has. */
const someIds = (count: number) => Array.from({ length: count }, (_, i) => (i * 7919) % 9000);

/** The statistics pass over a recipe, a comparison of its base with its first model, its perplexity, or its masks. */
async function look(calls: WorkerCalls, job: Look, recipe: Recipe, engine: BackendKind): Promise<Done> {
  const none = { read: 0, upload: 0, compute: 0, readback: 0, write: 0 };
  if (job === 'profile') {
    return { stages: none, ...(await calls.profile({ recipe, engine }, silent)) };
  }
  if (job === 'evaluate') {
    const request = { target: { recipe }, input: { ids: someIds(EVALUATED_TOKENS) }, engine };
    return { stages: none, ...(await calls.evaluate(request, silent)) };
  }
  if (job === 'importance') {
    const request = { recipe, engine, destination: { kind: 'nowhere' } as const };
    const { seconds } = await calls.importance(request, silent);
    return { stages: none, adapter: 'WebAssembly', seconds };
  }
  const [base, finetuned] = [recipe.baseModel!, recipe.models![0]!.model];
  return calls.compare({ base, finetuned, engine, loraAnalysis: false }, silent);
}

/** The weight files that a recipe reads, by their sha256: the hub says it. */
async function blobsOf(hub: string, { baseModel, models }: Recipe): Promise<string[]> {
  const names = [baseModel, ...(models ?? []).map(({ model }) => model)].flatMap(
    (ref) => ref?.split('+') ?? [],
  );
  const trees = [...new Set(names)].map(async (name) => {
    const [repo, commit = 'main'] = name.split('@');
    const answer = await fetch(`${hub}/api/models/${repo}/tree/${commit}`);
    const files = (await answer.json()) as { path: string; lfs?: { oid: string } }[];
    return files.flatMap(({ path, lfs }) => (path.endsWith('.safetensors') && lfs ? [lfs.oid] : []));
  });
  return (await Promise.all(trees)).flat();
}

/** Downloads what is not in the browser's storage yet, makes masks where they are to be found, and warms the files. */
async function makeReady(
  context: BrowserContext,
  url: string,
  c: Case,
  engine: BackendKind,
  hub: FakeHub,
  models: readonly FakeModel[],
): Promise<void> {
  const { page, calls } = await openStudio(context, url);
  try {
    const recipe = await openModels(calls, c, hub, models);
    const { bytesToDownload } = await calls.plan(recipe);
    if (bytesToDownload > 0 || c.masks === 'cached') {
      await calls.merge({ recipe, engine, destination: { kind: 'nowhere' } }, silent);
    }
  } finally {
    await page.close();
  }
}

/** The case's recipe, its models opened and pinned. */
async function openModels(
  calls: WorkerCalls,
  c: Case,
  hub: FakeHub,
  models: readonly FakeModel[],
): Promise<Recipe> {
  const [base, ...others] = models.map((m) => m.id) as [string, ...string[]];
  const loras = c.contributors.kind === 'lora';
  await calls.setHub({ url: hub.url });
  await calls.addCalibrationText(CALIBRATION, someIds(CALIBRATION_TOKENS));
  const pinned = new Map<string, string>();
  for (const name of [base, ...others]) pinned.set(name, (await calls.openHub(name)).ref);
  return renameRepositories(recipeOf(c, base, loras ? others.map((id) => `${base}+${id}`) : others), pinned);
}

/** One case on one engine: downloads what is missing, then merge and floor in turn; the best of each counts. */
async function measure(
  context: BrowserContext,
  url: string,
  c: Case,
  engine: BackendKind,
  rates: Rates,
): Promise<Row | undefined> {
  const models = await modelsOf(c);
  const hub = await startFakeHub({ models, port: HUB_PORT, cdnPort: HUB_PORT + 1 });
  const rows: Row[] = [];
  try {
    await makeReady(context, url, c, engine, hub, models);
    // masks are made once: it takes long, and is the same work every time
    const rounds = c.masks === 'cold' ? Math.min(1, Number(options.repeat)) : Number(options.repeat);
    for (let round = 0; round < rounds; round++) {
      const { page, calls } = await openStudio(context, url);
      try {
        await removeOutput(page);
        if (c.masks === 'cold') await removeMasks(page);
        const recipe = await openModels(calls, c, hub, models);
        const blobs = await blobsOf(hub.url, recipe);
        // also brings the files into the cache of the system
        const before = await copyFloor(context, url, blobs, 0);
        await calls.plan(recipe);
        const idle = browserBytes(process.pid);
        const memory = watchMemory(process.pid);
        const threads = watchThreads(process.pid);
        const begun = browserSeconds(process.pid);
        const destination = { kind: 'downloads', name: OUTPUT } as const;
        const report: Done =
          c.job === 'merge'
            ? await calls.merge({ recipe, engine, destination }, silent)
            : await look(calls, c.job, recipe, engine);
        const processor = browserSeconds(process.pid) - begun;
        const busy = threads.stop();
        const peak = memory.stop();
        await removeOutput(page);
        const written = report.shards?.reduce((sum, s) => sum + s.bytes, 0) ?? 0;
        const copied = await copyFloor(context, url, blobs, written);
        const moved = written > 0 ? copied : Math.min(before, copied);
        const products = (c.flops ?? 0) / rates.flops;
        rows.push({
          name: c.name,
          engine,
          floor: Math.max(moved, products),
          floorOf: products > moved ? 'products' : 'bytes',
          report,
          bytes: written + (await blobBytes(page, blobs)),
          written,
          processor,
          aboveIdle: peak - idle,
          threads: busy,
        });
      } finally {
        await page.close();
      }
    }
  } finally {
    await hub.close();
  }
  if (rows.length === 0) return undefined;
  const best = rows.reduce((a, b) => (b.report.seconds < a.report.seconds ? b : a));
  return {
    ...best,
    floor: Math.min(...rows.map((r) => r.floor)),
    aboveIdle: Math.max(...rows.map((r) => r.aboveIdle)),
  };
}

async function blobBytes(page: Page, blobs: readonly string[]): Promise<number> {
  return page.evaluate(async (names) => {
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('blobs');
    let sum = 0;
    for (const name of names) {
      const file = await (await folder.getDirectoryHandle(name)).getFileHandle('data');
      sum += (await file.getFile()).size;
    }
    return sum;
  }, blobs);
}

/** What takes longest of that which can be shared among the cores at best, or not at all. */
function boundOf({ floor, floorOf, processor, written, report }: Row, { hashed }: Rates): string {
  const cores = availableParallelism();
  const bounds: [what: string, seconds: number][] = [
    [floorOf, floor],
    ['sha256 of the output', written / hashed],
    [`processor time on ${cores} cores`, processor / cores],
  ];
  const [what, seconds] = bounds.reduce((a, b) => (b[1] > a[1] ? b : a));
  return `${what}: ${seconds.toPrecision(3)} s, ${((100 * seconds) / report.seconds).toFixed(0)} %`;
}

function print(row: Row, rates: Rates): void {
  const { name, engine, floor, floorOf, report, bytes, processor, aboveIdle, threads } = row;
  const { seconds, stages } = report;
  const sum = Object.values(stages).reduce((a, b) => a + b, 0);
  const s = (x: number) => (x < 0.995 ? x.toFixed(3) : x.toFixed(2));
  const cells = [
    name,
    `${engine} (${report.adapter})`,
    `${s(floor)}${floorOf === 'products' ? ' (products)' : ''}`,
    s(seconds),
    (seconds / floor).toFixed(2),
    (bytes / seconds / 1e6).toFixed(0),
    ...(['read', 'upload', 'compute', 'readback', 'write'] as const).map((stage) => s(stages[stage])),
    `${((100 * sum) / seconds).toFixed(0)} %`,
    s(processor),
    (aboveIdle / 2 ** 20).toFixed(0),
    boundOf(row, rates),
  ];
  console.log(`| ${cells.join(' | ')} |`);
  if (!options.threads) return;
  for (const { name: thread, user, system } of threads.slice(0, 12)) {
    if (user + system >= 0.05) console.log(`    ${thread}: ${s(user)} user, ${s(system)} system`);
  }
}

/** Always the same, so that the studio finds its downloads again. */
const HUB_PORT = 47_311;

mkdirSync(CACHE, { recursive: true });
const cases = (options.quick ? QUICK_CASES : CASES).filter((c) => c.name.includes(options.case));
const dist = options.dist ?? (await ensureBuilt(PROJECT, () => console.log('Building the studio …')));
const hosts = [`http://127.0.0.1:${HUB_PORT}`, `http://127.0.0.1:${HUB_PORT + 1}`];
const server = await startAppServer(dist, hosts, HUB_PORT + 2);
const executablePath = findChromium();
const context = await chromium.launchPersistentContext(join(CACHE, 'profile'), {
  ...(executablePath ? { executablePath } : {}),
  headless: false,
  args: ['--headless=new', '--no-sandbox', ...CHROMIUM_ARGS, ...(options.gpu ? [] : SWIFTSHADER_ARGS)],
});
try {
  const rates = await measureRates(context, server.url);
  console.log(
    `One thread: ${(rates.flops / 1e9).toFixed(1)} GFLOP/s in products of matrices, ${(rates.hashed / 1e6).toFixed(0)} MB/s of sha256.`,
  );
  console.log(
    '| case | engine | floor s | merge s | ratio | MB/s | read | upload | compute | readback | write | stages / wall | processor s | MiB above idle | bound |',
  );
  console.log(`|${' --- |'.repeat(2)}${' ---: |'.repeat(12)} --- |`);
  for (const c of cases) {
    for (const engine of c.engines) {
      if (options.engine === undefined || options.engine === engine) {
        const row = await measure(context, server.url, c, engine, rates);
        if (row) print(row, rates);
      }
    }
  }
} finally {
  await context.close();
  await server.close();
}
