/**
 * Merges against the floor: generated checkpoints of real shapes go through the built studio in the installed Chromium,
 * from the browser's storage to the browser's storage, and beside every merge stands a plain copy of the same bytes in
 * the same run.
 *
 *     npm run bench -- [--quick] [--case TEXT] [--engine cpu|webgpu] [--repeat 2] [--gpu] [--threads] [--dist DIR]
 *
 * `--threads` prints the processor time of the busiest threads below each row; `--dist` measures a studio that is built
 * already, to compare two of them.
 * Without `--gpu` WebGPU is the software adapter of the tests. What is generated and the browser's profile are kept in
 * node_modules/.cache/amalgam-bench. Memory is read from /proc, on Linux only.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type BrowserContext, chromium, type Page } from 'playwright';
import { startAppServer } from '../../src/cli/app-server';
import { ensureBuilt } from '../../src/cli/build';
import type { MergeReport } from '../../src/engine/protocol';
import type { Recipe } from '../../src/formats/recipe';
import {
  browserBytes,
  browserSeconds,
  type ThreadSeconds,
  watchMemory,
  watchThreads,
} from '../browser-memory';
import { startFakeHub } from '../fake-hub';
import type { FakeModel } from '../fake-hub/repository';
import { CHROMIUM_ARGS, findChromium, SWIFTSHADER_ARGS } from '../setup-chromium.mjs';
import { CASES, type Case, EVALUATED_TOKENS, type Look, QUICK_CASES, recipeOf } from './cases';
import { adapter, checkpoint } from './checkpoints';
import { copyFloor } from './floor';

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
  report: Done;
  bytes: number;
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

/** Calls the studio's headless page. */
async function call<T>(page: Page, name: string, ...args: unknown[]): Promise<T> {
  const outcome = await page.evaluate(
    ([method, values]) =>
      (window.amalgamHeadless as unknown as Record<string, (...all: unknown[]) => Promise<unknown>>)[
        method as string
      ]!(...(values as unknown[])),
    [name, args] as const,
  );
  const { value, error } = outcome as { value: T; error?: { message: string } };
  if (error) throw new Error(`${name}: ${error.message}`);
  return value;
}

async function openStudio(context: BrowserContext, url: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`${url}#headless`);
  await page.waitForFunction(() => window.amalgamHeadless !== undefined, undefined, { timeout: 120_000 });
  return page;
}

const OUTPUT = 'bench-output';

async function removeOutput(page: Page): Promise<void> {
  await page.evaluate(async (name) => {
    const root = await navigator.storage.getDirectory();
    const outputs = await root.getDirectoryHandle('outputs', { create: true });
    await outputs.removeEntry(name, { recursive: true }).catch(() => undefined);
  }, OUTPUT);
}

/** The statistics pass over a recipe, a comparison of its base with its first model, or its perplexity: all only read. */
async function look(page: Page, job: Look, recipe: Recipe, engine: string): Promise<Done> {
  const none = { read: 0, upload: 0, compute: 0, readback: 0, write: 0 };
  if (job === 'profile') {
    return { stages: none, ...(await call<Omit<Done, 'stages'>>(page, job, { recipe, engine })) };
  }
  if (job === 'evaluate') {
    const ids = Array.from({ length: EVALUATED_TOKENS }, (_, i) => (i * 7919) % 9000);
    const request = { target: { recipe }, input: { ids }, engine };
    return { stages: none, ...(await call<Omit<Done, 'stages'>>(page, job, request)) };
  }
  const [base, finetuned] = [recipe.baseModel, recipe.models?.[0]?.model];
  return call(page, job, { base, finetuned, engine, loraAnalysis: false });
}

/** One case on one engine: downloads what is missing, then floor and merge in turn; the best of each counts. */
async function measure(context: BrowserContext, url: string, c: Case, engine: string): Promise<Row> {
  const models = await modelsOf(c);
  const hub = await startFakeHub({ models, port: HUB_PORT, cdnPort: HUB_PORT + 1 });
  const rows: Row[] = [];
  try {
    const [base, ...others] = models.map((m) => m.id) as [string, ...string[]];
    const loras = c.contributors.kind === 'lora';
    const recipe = recipeOf(c, base, loras ? others.map((id) => `${base}+${id}`) : others);
    let blobs: string[] = [];
    for (let round = 0; round <= Number(options.repeat); round++) {
      const page = await openStudio(context, url);
      try {
        const opened = await call<{ recipe: Recipe }>(page, 'open', {
          recipe,
          hub: { url: hub.url },
          models: [base, ...others].map((name) => ({ name })),
          texts: [],
        });
        await removeOutput(page);
        const destination = { kind: 'downloads', name: OUTPUT };
        if (round === 0) {
          // not counted: whatever is not in the browser's storage yet is downloaded
          const nowhere = { kind: 'nowhere' };
          const request = { recipe: opened.recipe, engine, destination: nowhere };
          const { inputs } = await call<MergeReport>(page, 'merge', request);
          blobs = inputs.map((input) => input.sha256);
          continue;
        }
        await call(page, 'plan', opened.recipe);
        const idle = browserBytes(process.pid);
        const memory = watchMemory(process.pid);
        const threads = watchThreads(process.pid);
        const before = browserSeconds(process.pid);
        const { recipe: pinned } = opened;
        const report: Done =
          c.job === 'merge'
            ? await call<MergeReport>(page, 'merge', { recipe: pinned, engine, destination })
            : await look(page, c.job, pinned, engine);
        const processor = browserSeconds(process.pid) - before;
        const busy = threads.stop();
        const peak = memory.stop();
        await removeOutput(page);
        const written = report.shards?.reduce((sum, s) => sum + s.bytes, 0) ?? 0;
        const floor = await copyFloor(context, url, blobs, written);
        const bytes = written + (await blobBytes(page, blobs));
        const aboveIdle = peak - idle;
        rows.push({ name: c.name, engine, floor, report, bytes, processor, aboveIdle, threads: busy });
      } finally {
        await page.close();
      }
    }
  } finally {
    await hub.close();
  }
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

function print({ name, engine, floor, report, bytes, processor, aboveIdle, threads }: Row): void {
  const { seconds, stages } = report;
  const sum = Object.values(stages).reduce((a, b) => a + b, 0);
  const s = (x: number) => (x < 0.995 ? x.toFixed(3) : x.toFixed(2));
  const cells = [
    name,
    `${engine} (${report.adapter})`,
    s(floor),
    s(seconds),
    (seconds / floor).toFixed(2),
    (bytes / seconds / 1e6).toFixed(0),
    ...(['read', 'upload', 'compute', 'readback', 'write'] as const).map((stage) => s(stages[stage])),
    `${((100 * sum) / seconds).toFixed(0)} %`,
    s(processor),
    (aboveIdle / 2 ** 20).toFixed(0),
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
  console.log(
    '| case | engine | floor s | merge s | ratio | MB/s | read | upload | compute | readback | write | stages / wall | processor s | MiB above idle |',
  );
  console.log(`|${' --- |'.repeat(2)}${' ---: |'.repeat(12)}`);
  for (const c of cases) {
    for (const engine of c.engines) {
      if (options.engine === undefined || options.engine === engine) {
        print(await measure(context, server.url, c, engine));
      }
    }
  }
} finally {
  await context.close();
  await server.close();
}
