import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import { passBy } from '../../host/threads';
import type { ReadTensor } from '../../inputs/stored-tensor';
import type { DeltaStatistics } from '../../reports/delta-statistics';
import type { Plan } from '../plan/plan';
import { measurableTensors, measureTensors, openStatistics, statisticsWork } from './delta-statistics';

/** The statistics of a plan, by one engine of this thread. */
export async function deltaStatistics(
  plan: Plan,
  read: ReadTensor,
  tileElements?: number,
  engine = createCpuBackend(),
): Promise<DeltaStatistics[]> {
  const work = statisticsWork(measurableTensors(plan), tileElements);
  const member = openStatistics(work, { engine, read, members: 1 });
  return measureTensors(passBy([member]), work);
}
