/** The statistics pass from a plan to the delta statistics of its tensors. */
import type { Backend } from '../../backend/backend';
import { openPassBackends } from '../../host/backends';
import type { OpenModels } from '../../host/models';
import { progressMeter, secondsOf } from '../../host/progress-meter';
import { type Inputs, openInputs } from '../../host/weight-inputs';
import type {
  DeltaStatisticsProgress,
  DeltaStatisticsReport,
  DeltaStatisticsRequest,
} from '../../reports/delta-statistics';
import { requireClean } from '../plan/clean-plan';
import type { Plan } from '../plan/plan';
import { measurableTensors, measureDeltaStatistics } from './delta-statistics';

/**
 * Measures the task vectors of a plan; nothing is merged or written.
 * @throws AmalgamError `PlanHasErrors`, `Canceled`, and what sources and engine throw
 */
export async function runDeltaStatistics(
  request: DeltaStatisticsRequest,
  plan: Plan,
  models: OpenModels,
  signal: AbortSignal,
  onProgress: (progress: DeltaStatisticsProgress) => void,
): Promise<DeltaStatisticsReport> {
  requireClean(plan);
  const begin = performance.now();
  let engines: Backend[] = [];
  let inputs: Inputs | undefined;
  const meter = progressMeter<DeltaStatisticsProgress>(onProgress, () => ({ seconds: secondsOf(engines) }));
  try {
    const wanted = measurableTensors(plan);
    const elements = wanted.reduce((sum, t) => sum + t.elements, 0);
    // as many threads as cores: none has to wait for another's turn, as those of a merge have
    engines = await openPassBackends(request.engine, elements);
    const [engine, ...threads] = engines as [Backend, ...Backend[]];
    if (plan.bytesToDownload > 0) meter.begin('downloading', plan.bytesToDownload, 0);
    inputs = await openInputs(plan, models, signal, (bytes, name) => meter.advance(bytes, name));
    meter.begin('measuring', elements, wanted.length);
    const tensors = await measureDeltaStatistics({
      plan,
      engine,
      threads,
      read: inputs.read,
      signal,
      onTensor: (statistics) => meter.finishTensor(statistics),
      onWait: (seconds) => meter.spend('read', seconds),
      onBytes: (elements, tensor) => meter.advance(elements, tensor),
    });
    meter.flush();
    return {
      tensors,
      engine: engine.kind,
      adapter: engine.adapter,
      seconds: (performance.now() - begin) / 1000,
    };
  } finally {
    inputs?.close();
    for (const engine of engines) engine.close();
  }
}
