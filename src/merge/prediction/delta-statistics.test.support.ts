import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import { passBy } from '../../host/threads';
import type { ReadTensor } from '../../inputs/stored-tensor';
import type { DeltaStatistics } from '../../reports/delta-statistics';
import type { Plan } from '../plan/plan';
import { measurableTensors, openStatistics } from './delta-statistics';

/** The statistics of a plan, by one engine of this thread. */
export async function deltaStatistics(
  plan: Plan,
  read: ReadTensor,
  tileElements?: number,
): Promise<DeltaStatistics[]> {
  const tensors = measurableTensors(plan);
  const work = { tensors, ...(tileElements ? { tileElements } : {}) };
  return passBy([openStatistics(work, { engine: createCpuBackend(), read, members: 1 })]).run(tensors.keys());
}
