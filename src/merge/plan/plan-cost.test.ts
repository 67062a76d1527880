/** What a plan costs as models grow, counted rather than timed: models of experts have a hundred thousand tensors. */
import { expect, test } from 'vitest';
import { openerOf, recipeOf, tinyModel } from '../../inputs/memory-models.test.support';
import { collectProblems } from '../../inputs/problems';
import type { TensorView } from '../../inputs/tensor-view';
import type { ModelFolder } from '../../sources/model-folder';
import { methodById } from '../methods';
import type { TensorPlan } from './plan';
import { makePlan } from './recipe-plan';
import { spectralBytes } from './spectral-cost';

interface Cost {
  reads: number;
  /** Entries of maps and elements of lists that were looked at. */
  steps: number;
}

const mapIterator = Object.getPrototypeOf(new Map()[Symbol.iterator]());
const arrayIterator = Object.getPrototypeOf([][Symbol.iterator]());

/** Steps of `act`: every call that looks at an entry of a map counts one, every search of a list its length. */
async function stepsOf(act: () => Promise<void>): Promise<number> {
  let steps = 0;
  const spy = (prototype: object, name: string, weigh: (self: unknown) => number) => {
    const original = Reflect.get(prototype, name) as (...given: unknown[]) => unknown;
    Reflect.set(prototype, name, function (this: unknown, ...given: unknown[]) {
      steps += weigh(this);
      return original.apply(this, given);
    });
    return () => Reflect.set(prototype, name, original);
  };
  const one = () => 1;
  const length = (self: unknown) => (self as { length: number }).length;
  const restore = [
    ...['get', 'has', 'set'].map((name) => spy(Map.prototype, name, one)),
    ...[mapIterator, arrayIterator].map((prototype) => spy(prototype, 'next', one)),
    ...['find', 'findIndex', 'includes', 'indexOf', 'filter', 'map', 'some', 'every', 'flatMap', 'slice'].map(
      (name) => spy(Array.prototype, name, length),
    ),
  ];
  try {
    await act();
  } finally {
    for (const undo of restore) undo();
  }
  return steps;
}

function counted(folder: ModelFolder, cost: Cost): ModelFolder {
  return {
    ...folder,
    files: folder.files.map((file) => ({
      ...file,
      open() {
        const source = file.open();
        return {
          ...source,
          read(begin, end, signal) {
            cost.reads++;
            return source.read(begin, end, signal);
          },
        };
      },
    })),
  };
}

async function planCost(layers: number): Promise<Cost & { tensors: number }> {
  const cost: Cost = { reads: 0, steps: 0 };
  const folders = ['base', 'a', 'b'].map((path) => counted(tinyModel(path, { layers }), cost));
  let tensors = 0;
  cost.steps = await stepsOf(async () => {
    const plan = await makePlan(recipeOf(['a', 'b']), openerOf(...folders), methodById);
    tensors = plan.problems.length === 0 ? plan.tensors.length : 0;
  });
  return { ...cost, tensors };
}

test('a plan of four times as many tensors takes no more reads, and four times the steps', async () => {
  // both headers are longer than the first read of a file
  const small = await planCost(250);
  const large = await planCost(1000);
  expect(large.tensors).toBe(4 * small.tensors - 6);
  expect(large.reads).toBe(small.reads);
  expect(small.steps).toBeGreaterThan(small.tensors);
  expect(large.steps).toBeLessThan(4.2 * small.steps);
});

/** 32 square matrices of two models. */
function cost(id: string, side: number, parameters = {}, view: Partial<TensorView> = {}) {
  const problems = collectProblems();
  const tensors = Array.from({ length: 32 }, (_, i) => ({
    ...{ name: `${i}`, shape: [side, side], role: { kind: 'linear' }, parameters },
    models: [1, 2].map(() => ({ view })),
  })) as unknown as TensorPlan[];
  const bytes = spectralBytes(methodById.get(id)!, tensors, problems);
  return { bytes, notes: problems.list().map(({ message }) => message) };
}

test('says how long the directions of a large model take, and what they hold', () => {
  const { bytes, notes } = cost('tsv_m', 4096, { rank: 256 });
  expect(notes).toEqual([
    expect.stringMatching(/^Singular directions of 32 matrices take about 29.min of one core\.$/),
  ]);
  // left, right and a third on the way, of 2 · 256 directions in f64
  expect(bytes).toBe(3 * 8 * 8192 * 512);
  expect(cost('tsv_m', 4096, { rank: 64 }).notes[0]).toMatch(/about 2.min/);
});

test('a small model, LoRAs and other methods take no time', () => {
  const lowRank = { rank: 8 } as NonNullable<TensorView['lowRank']>;
  expect(cost('tsv_m', 256, { rank: 256 }).notes).toEqual([]);
  expect(cost('iso_c', 4096, { rank: 256 }, { onBase: true, lowRank }).notes).toEqual([]);
  expect(cost('ties', 4096)).toEqual({ bytes: 0, notes: [] });
  const knots = cost('ties', 4096, { space: 'knots' }, { onBase: true, lowRank });
  expect(knots).toEqual({ bytes: 24 * 8192 * 16 + 12 * 16 * 4096, notes: [] });
});
