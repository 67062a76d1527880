/** What a plan costs as models grow, counted rather than timed: models of experts have a hundred thousand tensors. */
import { expect, test } from 'vitest';
import { openerOf, recipeOf, tinyModel } from '../../inputs/memory-models.test.support';
import type { ModelFolder } from '../../sources/model-folder';
import { methodById } from '../methods';
import { makePlan } from './make-plan';

interface Cost {
  reads: number;
  /** Tensors of a model that were looked up, or passed by. */
  steps: number;
}

/** Any map of tensors, which counts how often one of them is looked at. */
class CountedMap<K, V> extends Map<K, V> {
  #cost: Cost;
  constructor(from: ReadonlyMap<K, V>, cost: Cost) {
    super();
    this.#cost = cost;
    for (const [key, value] of from) super.set(key, value);
  }
  override get(key: K) {
    this.#cost.steps++;
    return super.get(key);
  }
  override has(key: K) {
    this.#cost.steps++;
    return super.has(key);
  }
  override keys() {
    return this.#counted(super.keys());
  }
  override values() {
    return this.#counted(super.values());
  }
  override entries() {
    return this.#counted(super.entries());
  }
  override [Symbol.iterator]() {
    return this.entries();
  }
  override forEach(act: (value: V, key: K, map: Map<K, V>) => void) {
    for (const [key, value] of this) act(value, key, this);
  }
  *#counted<T>(all: MapIterator<T>): MapIterator<T> {
    for (const one of all) {
      this.#cost.steps++;
      yield one;
    }
  }
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
  const open = openerOf(...folders);
  const opened = new Map<string, Awaited<ReturnType<typeof open>>>();
  for (const { path } of folders) {
    const model = await open(path);
    if (model.kind !== 'checkpoint') throw new Error(`${path} is no checkpoint`);
    opened.set(path, { ...model, tensors: new CountedMap(model.tensors, cost) });
  }
  const plan = await makePlan(recipeOf(['a', 'b']), async (path) => opened.get(path)!, methodById);
  expect(plan.problems).toEqual([]);
  return { ...cost, tensors: plan.tensors.length };
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
