/** Products by weights that threads share: in real threads, as the command bundles them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import * as Comlink from 'comlink';
import nodeEndpoint from 'comlink/dist/esm/node-adapter';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { WeightDtype } from '../../formats/dtype';
import { DTYPE_CODE, dtypeBytes } from '../kernels/encoding';
import { matmulPacked, PANEL, packPanels } from '../kernels/matmul';
import { createCpuBackend } from './cpu-backend';
import { announce, type SharedProduct } from './product-board';
import { type HelpCalls, openSharedWeights, type SharedWeights, type StartHelper } from './shared-weights';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'amalgam-threads-'));
  const { bundleForNode } = await import(pathToFileURL(join(ROOT, 'src/cli/build-command.mjs')).href);
  await bundleForNode(ROOT, folder, { thread: 'src/worker/node-thread.ts' });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const running = new Set<Worker>();
afterEach(async () => {
  await Promise.all([...running].map((worker) => worker.terminate()));
  running.clear();
});

const startHelper: StartHelper = (request) => {
  const worker = new Worker(join(folder, 'thread.mjs'));
  running.add(worker);
  void Comlink.wrap<HelpCalls>(nodeEndpoint(worker))
    .help(request)
    .catch(() => undefined);
  return () => void worker.terminate();
};

/** A helper that takes one chunk and is gone. */
const startDeserter: StartHelper = ({ board }) => {
  const code = `const board = require('node:worker_threads').workerData;
    for (;;) {
      const ticket = Atomics.load(board, 0);
      if (ticket % 1024 > 0 && Atomics.compareExchange(board, 0, ticket, ticket - 1) === ticket) break;
    }`;
  const worker = new Worker(code, { eval: true, workerData: board });
  running.add(worker);
  return () => void worker.terminate();
};

const random = (seed: number) => () => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return seed / 2 ** 31 - 1;
};

const made = new Map<string, Uint8Array<ArrayBuffer>>();
function stored(dtype: WeightDtype, count: number, seed: number): Uint8Array<ArrayBuffer> {
  const key = [dtype, count, seed].join();
  const values = made.get(key) ?? make(dtype, count, seed);
  made.set(key, values);
  return values;
}

function make(dtype: WeightDtype, count: number, seed: number): Uint8Array<ArrayBuffer> {
  const next = random(seed);
  const floats = Float32Array.from({ length: count }, next);
  if (dtype === 'F32') return new Uint8Array(floats.buffer);
  const words = new Uint32Array(floats.buffer);
  // for F16 any finite bits will do
  return new Uint8Array(Uint16Array.from(words, (w) => (w >>> 16) & 0xbbff).buffer);
}

const sameBits = (a: Float32Array, b: Float32Array) =>
  Buffer.compare(new Uint8Array(a.buffer), new Uint8Array(b.buffer)) === 0;

interface Product {
  dtype: WeightDtype;
  rows: number;
  inputs: number;
  outputs: number;
  add: boolean;
  biased: boolean;
  /** First output row of the weights that is multiplied by. */
  first?: number;
}

/** The product on an engine, with rows of x and y further apart than they are long. */
async function multiply(shared: SharedWeights | undefined, product: Product): Promise<Float32Array> {
  const { dtype, rows, inputs, outputs, add, biased, first = 0 } = product;
  const engine = createCpuBackend(shared);
  const [xStride, yStride, yBegin] = [inputs + 8, outputs + 12, 8];
  const put = (values: Uint8Array<ArrayBuffer>, label: string) => {
    const buffer = engine.allocate(values.length, label);
    engine.write(buffer, 0, values);
    return buffer;
  };
  const all = first + outputs;
  const weightBytes = Math.ceil(all / PANEL) * PANEL * inputs * dtypeBytes(DTYPE_CODE[dtype]);
  const weights = (engine.allocateWeights ?? engine.allocate)(weightBytes, 'weights');
  engine.write(weights, 0, stored(dtype, all * inputs, 1));
  const room = engine.allocate(PANEL * inputs * 4, 'room');
  engine.run(packPanels, {
    params: { dtype: DTYPE_CODE[dtype], inputs, outputs: all },
    buffers: { weights, room },
  });
  const x = put(stored('F32', rows * xStride, 2), 'x');
  const y = put(stored('F32', rows * yStride, 3), 'y');
  const bias = put(stored('F32', all, 4), 'bias');
  const strides = { x_stride4: xStride / 4, y_stride: yStride, y_begin: yBegin };
  engine.run(matmulPacked[dtype], {
    params: {
      ...{ rows, outputs, inputs4: inputs / 4, w_first: first, ...strides },
      ...{ add: add ? 1 : 0, biased: biased ? 1 : 0, scale: 0.75 },
    },
    buffers: { weights, x, bias, y },
  });
  const [bytes] = await engine.read([{ buffer: y, byteLength: rows * yStride * 4 }]);
  for (const buffer of [weights, room, x, y, bias]) engine.free(buffer);
  return new Float32Array(bytes!.buffer);
}

const LARGE: Product = { dtype: 'BF16', rows: 1, inputs: 1024, outputs: 1999, add: false, biased: true };

describe('threads that share weights', () => {
  test('a product has the bits that one thread gives it, whatever its shape', async () => {
    const shared = openSharedWeights(2, startHelper)!;
    for (const dtype of ['F32', 'F16', 'BF16'] as const) {
      for (const [rows, inputs, outputs] of [
        [1, 1024, 1999],
        [2, 260, 1032],
        [5, 516, 333],
        [1, 64, 8],
      ] as const) {
        for (const [add, biased, first] of [
          [false, true, 0],
          [true, false, PANEL],
          [false, true, PANEL],
        ] as const) {
          const product = { dtype, rows, inputs, outputs, add, biased, first };
          const alone = await multiply(undefined, product);
          for (let again = 0; again < 5; again++)
            expect(sameBits(await multiply(shared, product), alone), JSON.stringify(product)).toBe(true);
        }
      }
    }
    shared.close();
  });

  test('a helper computes a whole product by itself, and goes home when it is sent', async () => {
    let request: Parameters<StartHelper>[0] | undefined;
    const shared = openSharedWeights(1, (given) => {
      request = given;
      return startHelper(given);
    })!;
    await multiply(shared, LARGE);
    const { board, memories } = request!;
    // a product of ones in the memory of the weights, which nobody but the helper is going to compute
    const [inputs, outputs, from] = [64, 64, 2 ** 20];
    new Float32Array(memories[0]!.buffer, from, 1 + inputs * outputs + inputs).fill(1);
    const [x, y] = [from + 4 * inputs * outputs, 2 ** 18];
    const layout = { memory: 0, dtype: 0, weights: from, inputs, outputs, x, xPitch: 4 * inputs };
    const rest = { rows: 1, bias: 0, y, yPitch: 4 * outputs, add: 0, scale: 1, step: 32, chunks: 2 };
    announce(board, { ...layout, ...rest } satisfies SharedProduct);
    for (let done = 0; done < 2; done = Atomics.load(board, 1))
      await new Promise((turn) => setTimeout(turn, 1));
    expect([...new Float32Array(memories[0]!.buffer, y, outputs)]).toEqual(Array(outputs).fill(inputs));
    const ended = Promise.all([...running].map((worker) => new Promise((exit) => worker.once('exit', exit))));
    shared.close();
    await ended;
  });

  test('a helper that is gone while it rests is not missed', async () => {
    const shared = openSharedWeights(1, startHelper)!;
    const alone = await multiply(undefined, LARGE);
    await multiply(shared, LARGE);
    await Promise.all([...running].map((worker) => worker.terminate()));
    expect(sameBits(await multiply(shared, LARGE), alone)).toBe(true);
    shared.close();
  });

  test('a helper that is gone in the middle of a product is an error, now and from then on', async () => {
    const shared = openSharedWeights(1, startDeserter, { patience: 2 })!;
    const until = async () => {
      for (;;) await multiply(shared, LARGE);
    };
    await expect(until()).rejects.toMatchObject({ code: 'WorkerDied' });
    await expect(multiply(shared, LARGE)).rejects.toMatchObject({ code: 'WorkerDied' });
  });

  test('memory that is given back is used again, and zero', () => {
    const shared = openSharedWeights(0, startHelper)!;
    const first = shared.take(4096)!;
    shared.bytes(first).fill(7);
    shared.give(first);
    const second = shared.take(4096)!;
    expect(second).toEqual(first);
    expect(shared.bytes(second).every((byte) => byte === 0)).toBe(true);
    shared.give(second);
    // what is not written to takes no memory of the machine
    const gibibyte = 2 ** 30;
    const large = Array.from({ length: 7 }, () => shared.take(gibibyte));
    expect(large.map((range) => range?.memory)).toEqual([0, 0, 0, 1, 1, 1, undefined]);
    shared.give(large[1]!);
    expect(shared.take(gibibyte)?.memory).toBe(0);
  });

  test('few outputs start no thread', async () => {
    let started = 0;
    const shared = openSharedWeights(3, () => {
      started++;
      return () => undefined;
    })!;
    await multiply(shared, { ...LARGE, outputs: 40 });
    expect(started).toBe(0);
    await multiply(shared, LARGE);
    expect(started).toBe(3);
  });
});
