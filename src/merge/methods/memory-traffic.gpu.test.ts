/** Bytes that the kernels of a merge ask the device's memory for: the figures of docs/benchmarks.md are counted here. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createGpuBackend } from '../../backend/gpu/gpu-backend';
import {
  type TalliedBackend,
  type Traffic,
  talliedBackend,
} from '../../backend/tallied-backend.test.support';
import { contractModel, mergeModel } from './contract.cases';
import { methodById } from './index';

const SHAPE = [64, 1024];
const ELEMENTS = 64 * 1024;
let gpu: TalliedBackend;
beforeAll(async () => {
  gpu = talliedBackend(await createGpuBackend());
});
afterAll(() => gpu.close());

/** Bytes an element, by kernel and in all, of one tensor of BF16 merged in two tiles. */
async function trafficOf(id: string, base: boolean, models: number): Promise<Map<string, Traffic>> {
  const method = methodById.get(id)!;
  const parameters = Object.fromEntries(
    Object.entries(method.parameters).flatMap(([name, { default: value }]) =>
      value === undefined ? [] : [[name, value]],
    ),
  );
  const each = { weight: 0.5, density: 0.5 };
  const variant = { name: id, base, parameters, models: Array.from({ length: models }, () => each) };
  const model = contractModel(method, variant, 'BF16', [SHAPE]);
  await gpu.takeTraffic();
  await mergeModel(gpu, method, model, ELEMENTS / 2);
  const traffic = await gpu.takeTraffic();
  const sum = { reads: 0, writes: 0 };
  for (const part of traffic.values()) {
    part.reads /= ELEMENTS;
    part.writes /= ELEMENTS;
    sum.reads += part.reads;
    sum.writes += part.writes;
  }
  return traffic.set('all', sum);
}

it.each([
  ['linear', false, 2, { reads: 6.3, writes: 4.1 }],
  ['linear', true, 2, { reads: 8.3, writes: 4.1 }],
  ['linear', false, 4, { reads: 10.4, writes: 4.1 }],
  ['task_arithmetic', true, 2, { reads: 67.5, writes: 16.1 }],
  ['ties', true, 2, { reads: 157.5, writes: 35 }],
] as const)('%s, base: %s, %i contributors', async (id, base, models, most) => {
  const traffic = await trafficOf(id, base, models);
  const { reads, writes } = traffic.get('all')!;
  // every stored byte was counted
  expect(reads).toBeGreaterThan(2 * models);
  expect(writes).toBeGreaterThan(2);
  const parts = JSON.stringify([...traffic]);
  expect(reads, parts).toBeLessThan(most.reads);
  expect(writes, parts).toBeLessThan(most.writes);
});
