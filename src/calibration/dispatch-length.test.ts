/**
 * No dispatch is so long that a driver gives up on the device, however large the model. Every method runs at a small size on an
 * engine that counts: that gives the most work for an element of a tile; tiles are then planned for large shapes. Work that
 * is cut by itself runs, at its largest, on an engine that only counts: nothing is held and nothing computed.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Backend, type BackendBuffer, DISPATCH_WORK } from '../backend/backend';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { workOf } from '../backend/kernel';
import { createQueue } from '../forward/queue';
import type { TensorRef } from '../inputs/tensor-view';
import { methods } from '../merge/methods';
import { contractModel, mergeModel, variantsOf } from '../merge/methods/contract.cases';
import type { TensorPlan } from '../merge/plan/plan';
import { openTask } from '../merge/tensor/tensor-task';
import { cutTiles, leastTile } from '../merge/tensor/tiles';
import { openWorkspace, tileElementsFor } from '../merge/tensor/workspace';
import { factorDamped, inverseTransposed } from './factor';
import { formFor, openGram } from './gram';
import { enqueueProduct, rowChunks } from './row-chunks';

type Params = Readonly<Record<string, number>>;
type Work = (params: Params, elements: number) => number;

const pairs = (count: number) => (count * (count + 1)) / 2;
const inputGram =
  (side: number): Work =>
  ({ rows }, tiles) =>
    tiles * rows! * side ** 2;
const panel: Work = ({ rows, column4 }) => rows! * 32 * 4 * column4!;
const product: Work = ({ rows, outputs, inputs4 }) => rows! * outputs! * 4 * inputs4!;

/** Multiply-adds of a dispatch by kernel; of those that are not named, one for each element. */
const WORK: Readonly<Record<string, Work>> = {
  'low-rank': ({ rank }, n) => n * rank!,
  decode: ({ slots }, n) => n * slots!,
  'inner-products': ({ count }, n) => n * pairs(count!),
  'column-products': ({ count }, n) => n * pairs(count!),
  'weighted-sum': ({ count }, n) => n * count!,
  combine: ({ models }, n) => 2 * n * models!,
  variance: ({ models }, n) => 2 * n * models!,
  'mask-by-score': ({ models }, n) => n * models!,
  ram: ({ models }, n) => n * models!,
  // ten rounds of four products make four numbers
  'select-random': (_, n) => 10 * n,
  'select-rank': (_, n) => 10 * n,
  'input-gram-block': inputGram(8),
  'input-gram-tile': inputGram(64),
  'triangular-panel-own': panel,
  'triangular-panel-other': panel,
  'triangular-tile-own': ({ rows }) => rows! * 32 ** 2,
  'triangular-tile-other': ({ rows }) => rows! * 32 ** 2,
  'cholesky-tile': () => 32 ** 3,
  'matmul-block-f32': product,
  'matmul-line-f32': product,
  'matmul-tile-f32': product,
  'matmul-vector-f32': product,
};

/** Largest work of the dispatches of one kernel, in all and per element. */
class Count {
  most = 0;
  mostPerElement = 0;
  dispatches = 0;
  add(id: string, params: Params, elements: number): void {
    const work = WORK[id]?.(params, elements) ?? elements;
    this.most = Math.max(this.most, work);
    this.mostPerElement = Math.max(this.mostPerElement, work / elements);
    this.dispatches++;
  }
}

const CLASSES = [
  { name: 'a graphics device', software: false, maxBufferBytes: 2 ** 32 - 4, limit: DISPATCH_WORK.gpu },
  { name: 'a software adapter', software: true, maxBufferBytes: 2 ** 30, limit: DISPATCH_WORK.software },
];
const MOST_ROWS = 151_936;
const MOST_COLS = 28_672;

/** An engine that counts and does nothing; what is read is zero. */
function idleEngine(count: Count, device: { software: boolean; maxBufferBytes: number }): Backend {
  return {
    kind: 'webgpu',
    adapter: 'none',
    ...device,
    seconds: { upload: 0, compute: 0, readback: 0 },
    allocate: (byteLength, label): BackendBuffer => ({ byteLength, label }),
    free() {},
    write() {},
    clear() {},
    run: (kernel, dispatch) => count.add(kernel.id, dispatch.params, workOf(kernel, dispatch).elements),
    read: async (ranges) => ranges.map(({ byteLength }) => new Uint8Array(byteLength)),
    close() {},
  };
}

/** An engine that counts what another one runs. */
function countingEngine(count: Count, engine: Backend): Backend {
  return new Proxy(engine, {
    get(target, key: keyof Backend) {
      if (key !== 'run') return target[key];
      const run: Backend['run'] = (kernel, dispatch) => {
        count.add(kernel.id, dispatch.params, workOf(kernel, dispatch).elements);
        target.run(kernel, dispatch);
      };
      return run;
    },
  });
}

describe.each(CLASSES)('on $name no dispatch is longer than it may be', ({ limit, ...device }) => {
  it('merging with any method', async () => {
    const cpu = createCpuBackend();
    for (const method of methods) {
      const count = new Count();
      for (const variant of variantsOf(method)) {
        const model = contractModel(method, variant, 'BF16', [[31, 17]]);
        await mergeModel(countingEngine(count, cpu), method, model);
      }
      expect(count.dispatches).toBeGreaterThan(0);
      // what three models take for an element, more take in proportion to their pairs at most
      const share = count.mostPerElement / pairs(Math.min(3, method.models.max) + 1);
      fc.assert(
        fc.property(
          fc.integer({ min: 1, max: MOST_ROWS }),
          fc.integer({ min: 1, max: MOST_COLS / 64 }),
          fc.integer({ min: 1, max: method.models.max }),
          (rows, cols64, models) => {
            const cols = 64 * cols64;
            const elements = rows * cols;
            const engine = idleEngine(count, device);
            // whole rows, which some methods and adapters want
            const least = leastTile(elements, cols);
            const stride = tileElementsFor(engine, models, elements, undefined, least);
            const tiles = cutTiles(elements, stride, cols);
            const largest = Math.max(tiles[0]!.end, elements - tiles.at(-1)!.begin);
            // rows of an odd width times that many pairs: on a software adapter, which no driver resets, twice as long
            const allowed = device.software && models > 20 ? 2.1 * limit : limit;
            return largest * Math.max(share * pairs(models + 1), 1) <= allowed;
          },
        ),
        { numRuns: 50, examples: [[MOST_ROWS, 8192 / 64, method.models.max]] },
      );
    }
  });

  it('adapters of any rank', async () => {
    const count = new Count();
    const engine = idleEngine(count, device);
    const [rows, cols, rank] = [1280, 1280, 640];
    const ref = (key: string, shape: number[]): TensorRef => {
      const end = shape.reduce((a, b) => a * b, 2);
      return { folder: 'm', file: 'model.safetensors', key, dtype: 'BF16', shape, begin: 0, end };
    };
    const origin = ref('w', [rows, cols]);
    const [a, b] = [ref('a', [rank, cols]), ref('b', [rows, rank])];
    const lowRank = { a, b, rank, scale: 1, layout: 'linear' } as const;
    const model = { id: 'm', view: { origin, onBase: true, lowRank }, parameters: {} };
    const plan: TensorPlan = {
      name: 'w',
      shape: origin.shape,
      elements: rows * cols,
      dtype: 'BF16',
      role: { layer: 0, module: 'w', kind: 'linear' },
      base: { origin, onBase: true },
      models: [model],
      parameters: {},
      method: 'task_arithmetic',
    };
    const work = openWorkspace(engine, 1, tileElementsFor(engine, 1, plan.elements));
    const read = async (_: TensorRef, begin: number, end: number) => new Uint8Array(end - begin);
    await openTask(plan, 'delta', work, read).pass(async () => {});
    expect(count.most).toBeGreaterThan(limit / 20);
    expect(count.most).toBeLessThanOrEqual(limit);
  });

  it('Gram matrices, factors and their inverses, products with squares', async () => {
    const count = new Count();
    const engine = idleEngine(count, device);
    const queue = createQueue(engine);
    for (const wanted of [896, 8192, MOST_COLS]) {
      const form = formFor(engine, wanted, 'full');
      const width = form.kind === 'blocks' ? form.width : wanted;
      const buffer = engine.allocate(width ** 2 * 4, 'square');
      const rows = { buffer, rows: 2048, width: wanted, stride: wanted, pieces: [], queue };
      openGram(engine, wanted, form).add(rows);
      await factorDamped(queue, buffer, width, () => 1);
      await inverseTransposed(queue, buffer, width);
      const chunk = rowChunks(queue, MOST_COLS, width)[0]!;
      enqueueProduct(queue, buffer, buffer, buffer, chunk.rows, width);
    }
    expect(count.dispatches).toBeGreaterThan(1000);
    expect(count.most).toBeLessThanOrEqual(limit);
  });
});
