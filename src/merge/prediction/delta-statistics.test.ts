import { join } from 'node:path';
import { expect, it } from 'vitest';
import { diskFolder, SAMPLES } from '../../../e2e/disk-folder';
import { planInNode } from '../../../e2e/merge-in-node';
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import { serveThread } from '../../host/serve-thread';
import { openPass } from '../../host/threads';
import { inputsOf, startThreadsHere } from '../../host/threads.test.support';
import { measurableTensors, measureTensors, openStatistics, statisticsWork } from './delta-statistics';
import { deltaStatistics } from './delta-statistics.test.support';

it('the same statistics in the same order, whatever the threads and the tiles', async () => {
  const recipe = {
    merge_method: 'task_arithmetic',
    base_model: 'base',
    models: ['base+kitchen', 'workshop'].map((model) => ({ model, parameters: { weight: 1 } })),
  };
  const names = ['base', 'kitchen', 'workshop'];
  const folders = await Promise.all(names.map((name) => diskFolder(name, join(SAMPLES, name))));
  const named = Object.fromEntries(folders.map((folder) => [folder.path, folder]));
  const { plan, read } = await planInNode(JSON.stringify(recipe), SAMPLES, named);
  const alone = await deltaStatistics(plan, read);
  // decoded first, kernel by kernel
  const decoded = await deltaStatistics(plan, read, 4096, { ...createCpuBackend(), kind: 'webgpu' });
  expect(decoded).toEqual(alone);
  const told: string[] = [];
  const done = new Map<string, number>();
  startThreadsHere(() => serveThread({ statistics: openStatistics }));
  const tensors = measurableTensors(plan);
  const work = statisticsWork(tensors, 8192);
  const pass = await openPass({
    kind: 'statistics',
    open: openStatistics,
    work,
    inputs: inputsOf(folders),
    files: plan.inputs,
    engine: createCpuBackend(),
    threads: 2,
    onDone: (elements, name) => done.set(name, (done.get(name) ?? 0) + elements),
  });
  const shared = await measureTensors(pass, work, ({ name }) => told.push(name));
  pass.close();
  expect(alone.length).toBeGreaterThan(20);
  expect(shared).toEqual(alone);
  expect(told.sort()).toEqual(alone.map(({ name }) => name).sort());
  expect([...done].sort()).toEqual(tensors.map(({ name, elements }) => [name, elements]).sort());
});
