/** The statistics pass from a plan to the delta statistics of its tensors. */
import type { BackendSeconds } from '../../backend/backend';
import { openBackend, threadCount } from '../../host/backends';
import type { OpenModels } from '../../host/models';
import { progressMeter } from '../../host/progress-meter';
import { withResources } from '../../host/resources';
import { openPass } from '../../host/threads';
import { openInputs } from '../../host/weight-inputs';
import type {
  DeltaStatisticsProgress,
  DeltaStatisticsReport,
  DeltaStatisticsRequest,
} from '../../reports/delta-statistics';
import { type Plan, requireClean } from '../plan/plan';
import { measurableTensors, measureTensors, openStatistics, statisticsWork } from './delta-statistics';

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
  const tensors = measurableTensors(plan);
  const work = statisticsWork(tensors);
  const elements = tensors.reduce((sum, t) => sum + t.elements, 0);
  return withResources(async ({ keep }) => {
    const engine = keep(await openBackend(request.engine));
    let { seconds }: { seconds: BackendSeconds } = engine;
    const meter = progressMeter<DeltaStatisticsProgress>(onProgress, () => ({ seconds }));
    if (plan.bytesToDownload > 0) meter.begin('downloading', plan.bytesToDownload, 0);
    const inputs = keep(await openInputs(plan, models, signal, (bytes, name) => meter.advance(bytes, name)));
    const pass = keep(
      await openPass({
        kind: 'statistics',
        open: openStatistics,
        work,
        ...{ engine, inputs, signal, files: plan.inputs },
        threads: threadCount(engine.kind, elements),
        onSeconds: (spent) => {
          seconds = spent;
        },
        onWait: (waited) => meter.spend('read', waited),
        onDone: (elements, tensor) => meter.advance(elements, tensor),
      }),
    );
    meter.begin('measuring', elements, tensors.length);
    const measured = await measureTensors(pass, work, (statistics) => meter.finishTensor(statistics));
    meter.flush();
    return {
      tensors: measured,
      engine: engine.kind,
      adapter: engine.adapter,
      seconds: (performance.now() - begin) / 1000,
    };
  });
}
