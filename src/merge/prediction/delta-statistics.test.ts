import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { planInNode } from '../../../e2e/merge-in-node';
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import { measureDeltaStatistics } from './delta-statistics';

const samples = fileURLToPath(new URL('../../../public/samples', import.meta.url));

it('the same statistics in the same order, whatever the threads and the tiles', async () => {
  const recipe = {
    merge_method: 'task_arithmetic',
    base_model: 'base',
    models: ['base+kitchen', 'workshop'].map((model) => ({ model, parameters: { weight: 1 } })),
  };
  const { plan, read } = await planInNode(JSON.stringify(recipe), samples, {
    base: 'base',
    kitchen: 'kitchen',
    workshop: 'workshop',
  });
  const alone = await measureDeltaStatistics({ plan, engine: createCpuBackend(), read });
  const told: string[] = [];
  const shared = await measureDeltaStatistics({
    plan,
    engine: createCpuBackend(),
    threads: [createCpuBackend(), createCpuBackend()],
    read,
    tileElements: 8192,
    onTensor: ({ name }) => told.push(name),
  });
  expect(alone.length).toBeGreaterThan(20);
  expect(shared).toEqual(alone);
  expect(told.sort()).toEqual(alone.map(({ name }) => name).sort());
});
