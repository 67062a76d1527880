/** What a plan costs as models grow, counted rather than timed: models of experts have a hundred thousand tensors. */
import { expect, test } from 'vitest';
import { openerOf, recipeOf, tinyModel } from '../../inputs/memory-models.test.support';
import type { ModelFolder } from '../../sources/model-folder';
import { methodById } from '../methods';
import { makePlan } from './recipe-plan';

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
