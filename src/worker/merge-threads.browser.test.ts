/** Threads in a browser: they read files that were picked and write one file of the browser's storage together. */
import { afterEach, expect, test } from 'vitest';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import type { OpenModels } from '../host/models';
import { openPass, startThreadsWith } from '../host/threads';
import { openHashedInputs, openInputs } from '../host/weight-inputs';
import {
  memoryFolder,
  openerOf,
  recipeOf,
  safetensors,
  tinyModel,
  tinyShapes,
} from '../inputs/memory-models.test.support';
import { methodById } from '../merge/methods';
import { makePlan } from '../merge/plan/recipe-plan';
import { finishShards } from '../merge/plan/shards';
import {
  measurableTensors,
  measureTensors,
  openStatistics,
  statisticsWork,
} from '../merge/prediction/delta-statistics';
import { openMergeThreads } from '../merge/run/remote-thread';
import { runPlan } from '../merge/run/run';
import { startThread } from '../platform';
import { findFile, type ModelFolder } from '../sources/model-folder';
import { treeOf } from '../sources/tree-hash';
import threadUrl from './thread.worker?worker&url';

const SHAPE = { hidden: 256, vocabulary: 3000, layers: 3 };

/** A model of random weights whose file other threads can open. */
async function pickedModel(path: string, seed: number): Promise<ModelFolder> {
  const weights = safetensors(tinyShapes(SHAPE));
  const header = 8 + Number(new DataView(weights.buffer).getBigUint64(0, true));
  let state = seed;
  const values = Float32Array.from({ length: (weights.length - header) / 4 }, () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31 - 0.5;
  });
  weights.set(new Uint8Array(values.buffer), header);
  const config = findFile(tinyModel(path, SHAPE), 'config.json')!.open();
  const text = new TextDecoder().decode(await config.read(0, config.byteLength));
  const folder = memoryFolder(path, { 'config.json': text, 'model.safetensors': weights });
  const file = new File([weights], 'model.safetensors');
  return {
    ...folder,
    files: folder.files.map((one) =>
      one.path === 'config.json'
        ? one
        : {
            ...one,
            open: () => ({ ...one.open(), origin: async () => ({ kind: 'file', file, name: path }) }),
          },
    ),
  };
}

const NAME = 'threads-test.safetensors';
afterEach(async () => (await navigator.storage.getDirectory()).removeEntry(NAME).catch(() => undefined));

test('two threads and one engine of this thread give the same statistics, bytes, reports and hashes', async () => {
  startThreadsWith(() => startThread(threadUrl, 'merge'));
  const folders = await Promise.all(['base', 'a', 'b'].map((name, i) => pickedModel(name, i + 1)));
  const recipe = recipeOf(['a', 'b'], { mergeMethod: 'ties', parameters: { density: 0.3 } });
  const plan = await makePlan(recipe, openerOf(...folders), methodById);
  expect(plan.problems.filter(({ severity }) => severity === 'error')).toEqual([]);
  const models = {
    file: (path: string, name: string) => {
      const folder = folders.find((one) => one.path === path)!;
      return { folder, file: findFile(folder, name)! };
    },
  } as unknown as OpenModels;
  const meter = { begin: () => {}, advance: () => {} };
  const handle = await (await navigator.storage.getDirectory()).getFileHandle(NAME, { create: true });

  const pass = async (threads: number) => {
    const given = statisticsWork(measurableTensors(plan));
    const inputs = await openInputs(plan, models, new AbortController().signal, () => {});
    const work = { kind: 'statistics', open: openStatistics, work: given } as const;
    const own = { engine: createCpuBackend(), inputs, files: plan.inputs, threads };
    const opened = await openPass({ ...work, ...own });
    try {
      return await measureTensors(opened, given);
    } finally {
      opened.close();
      inputs.close();
    }
  };
  expect(await pass(2)).toEqual(await pass(0));

  const merge = async (count: number, place?: { kind: 'opfs'; file: FileSystemFileHandle }) => {
    const inputs = await openHashedInputs(plan, models, new AbortController().signal, () => {}, meter);
    const threads =
      count > 0 ? await openMergeThreads({ plan, inputs, count, onBytes: () => {} }) : undefined;
    const shards = finishShards(plan, new Map());
    const out = new Uint8Array(shards[0]!.byteLength);
    try {
      const { tensors } = await runPlan({
        plan,
        shards,
        engine: createCpuBackend(),
        ...(threads && { threads: { ...threads, unitBytes: 500_000 } }),
        methods: methodById,
        read: inputs.read,
        openShard: async () => ({
          place,
          write: async (bytes, at) => out.set(bytes, at),
          finish: async () => undefined,
          abort() {},
        }),
      });
      const hashes = [...(await inputs.hashAll(meter))];
      return { tensors, hashes, tree: await treeOfBytes(out), header: shards[0]!.header, out };
    } finally {
      threads?.close();
      inputs.close();
    }
  };
  const { out, ...one } = await merge(0);
  const { out: _, ...moved } = await merge(2);
  expect(moved).toEqual(one);
  const placed = await merge(2, { kind: 'opfs', file: handle });
  expect([placed.tensors, placed.hashes]).toEqual([one.tensors, one.hashes]);
  expect(placed.tree).toBe(await treeOfBytes(new Uint8Array(out.length)));
  const stored = new Uint8Array(await (await handle.getFile()).arrayBuffer());
  const begins = one.header.length;
  expect(await treeOfBytes(stored.slice(begins))).toBe(await treeOfBytes(out.slice(begins)));
});

/** Megabytes are compared by their hash: element by element takes a minute. */
function treeOfBytes(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return treeOf({ byteLength: bytes.length, read: async (begin, end) => bytes.slice(begin, end) });
}
