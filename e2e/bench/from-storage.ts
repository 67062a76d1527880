/** Jobs of the studio on what is in the browser's storage already, brought there through a hub on loopback. */
import { basename } from 'node:path';
import type { Browser, Page } from 'puppeteer-core';
import type { Recipe } from '../../src/formats/recipe';
import { renameRepositories } from '../../src/formats/recipe-models';
import type { BackendKind } from '../../src/reports/backend';
import type { MergeReport } from '../../src/reports/merge';
import type { WorkerCalls } from '../../src/worker/calls';
import type { BuiltStudio } from '../built-studio';
import { type FakeHub, startFakeHub } from '../fake-hub';
import {
  CALIBRATION,
  CALIBRATION_TOKENS,
  type Case,
  EVALUATED_TOKENS,
  type Folders,
  type Look,
  recipeOf,
} from './cases';
import { copyFloor } from './floor';
import type { Row } from './rows';
import { openStudio, type Watched, watched } from './studio';

/** Printed fields of a report; only merges write shards. */
type Done = Pick<MergeReport, 'seconds' | 'adapter'> & Partial<Pick<MergeReport, 'shards' | 'stages'>>;

/** The bench prints results, not progress. */
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
  if (job === 'profile') return calls.deltaStatistics({ recipe, engine }, silent);
  if (job === 'evaluate') {
    const request = { targets: [{ recipe }], inputs: [{ ids: someIds(EVALUATED_TOKENS) }], engine };
    const { models, seconds } = await calls.evaluateMany(request, silent);
    const [outcome] = models[0]!.outcomes;
    if (!outcome || 'error' in outcome) throw new Error(outcome?.error.message);
    return { ...outcome.report, seconds };
  }
  const [base, finetuned] = [recipe.baseModel!, recipe.models![0]!.model];
  return calls.compare({ base, finetuned, engine, loraAnalysis: false }, silent);
}

/** The weight files that a recipe reads, by their sha256 from the hub. */
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

/** The case's recipe, its models opened and pinned. */
async function openModels(calls: WorkerCalls, c: Case, hub: FakeHub, folders: Folders): Promise<Recipe> {
  await calls.setHub({ url: hub.url });
  await calls.addCalibrationText(CALIBRATION, someIds(CALIBRATION_TOKENS));
  const pinned = new Map<string, string>();
  const [base, ...others] = folders.map(repository) as [string, ...string[]];
  for (const name of [base, ...others]) pinned.set(name, (await calls.openHub(name)).ref);
  return renameRepositories(recipeOf(c, [base, ...others]), pinned);
}

const repository = (folder: string) => `bench/${basename(folder)}`;

/** A case on one engine, its models in the browser's storage. */
export interface Stored {
  /** One round of it. */
  measure(): Promise<Row>;
  close(): Promise<void>;
}

/**
 * Downloads what is not in the browser's storage yet, makes masks where they are to be found, and warms the files.
 * @param flopsPerSecond of products of matrices
 * @param port of the hub: always the same, so that the studio finds its downloads again; the next one is its download host's
 */
export async function storeModels(
  browser: Browser,
  studio: BuiltStudio,
  c: Case,
  engine: BackendKind,
  folders: Folders,
  port: number,
  flopsPerSecond: number,
): Promise<Stored> {
  const models = folders.map((folder) => ({ id: repository(folder), files: folder }));
  const hub = await startFakeHub({ models, port, cdnPort: port + 1 });
  try {
    const { blobs, read } = await makeReady();
    return { measure: () => measure(blobs, read), close: () => hub.close() };
  } catch (thrown) {
    await hub.close();
    throw thrown;
  }

  /** @returns the weight files that the case reads, and their bytes */
  async function makeReady(): Promise<{ blobs: string[]; read: number }> {
    const { page, calls } = await openStudio(browser, studio);
    try {
      const recipe = await openModels(calls, c, hub, folders);
      const { bytesToDownload } = await calls.plan(recipe);
      if (bytesToDownload > 0 || c.masks === 'cached') {
        await calls.merge({ recipe, engine, destination: { kind: 'nowhere' } }, silent);
      }
      const blobs = await blobsOf(hub.url, recipe);
      return { blobs, read: await blobBytes(page, blobs) };
    } finally {
      await page.close();
    }
  }

  /** The merge on a page of its own: not every browser lets the floor read what another page has open. */
  async function run(): Promise<Watched<Done>> {
    const { page, calls } = await openStudio(browser, studio);
    try {
      await removeOutput(page);
      if (c.masks === 'cold') await removeMasks(page);
      const recipe = await openModels(calls, c, hub, folders);
      await calls.plan(recipe);
      const destination = { kind: 'downloads', name: OUTPUT } as const;
      const done = await watched<Done>(() =>
        c.job === 'merge'
          ? calls.merge({ recipe, engine, destination }, silent)
          : look(calls, c.job, recipe, engine),
      );
      await removeOutput(page);
      return done;
    } finally {
      await page.close();
    }
  }

  async function measure(blobs: readonly string[], read: number): Promise<Row> {
    // also brings the files into the cache of the system
    const before = await copyFloor(browser, studio.url, blobs, 0);
    const { result, ...spent } = await run();
    const { shards = [], stages, seconds, adapter } = result;
    const written = shards.reduce((sum, shard) => sum + shard.bytes, 0);
    const copied = await copyFloor(browser, studio.url, blobs, written);
    const moved = { what: 'bytes', seconds: written > 0 ? copied : Math.min(before, copied) };
    const products = { what: 'products', seconds: (c.flops ?? 0) / flopsPerSecond };
    return {
      name: c.name,
      way: 'storage',
      engine: `${engine} (${adapter})`,
      seconds,
      floor: products.seconds > moved.seconds ? products : moved,
      bounds: [],
      ...(stages ? { stages } : {}),
      output: shards.map(({ hash }) => hash).join(' '),
      bytes: written + read,
      ...spent,
    };
  }
}
