/** The statistics pass from a plan to the profiles of its tensors. */
import type { ComputeEngine } from '../compute/engine';
import type { Plan } from '../merge/plan/plan';
import { measureProfiles, profiledTensors } from '../merge/profile/profile';
import { openEngine } from './choose-engine';
import { type Inputs, openInputs } from './inputs';
import { requireClean } from './merge-job';
import type { OpenModels } from './models';
import { progressMeter } from './progress';
import type { ProfileProgress, ProfileReport, ProfileRequest } from './protocol-profile';

/**
 * Measures the task vectors of a plan; nothing is merged or written.
 * @throws AmalgamError `PlanHasErrors`, `Cancelled`, and what sources and engine throw
 */
export async function runProfile(
  plan: Plan,
  request: ProfileRequest,
  models: OpenModels,
  signal: AbortSignal,
  onProgress: (progress: ProfileProgress) => void,
): Promise<ProfileReport> {
  requireClean(plan);
  const begin = performance.now();
  let engine: ComputeEngine | undefined;
  let inputs: Inputs | undefined;
  const meter = progressMeter<ProfileProgress>(onProgress, () => engine);
  try {
    engine = await openEngine(request.engine);
    if (plan.bytesToDownload > 0) meter.begin('downloading', plan.bytesToDownload, 0);
    inputs = await openInputs(plan, models, signal, (bytes, name) => meter.advance(bytes, name));
    const wanted = profiledTensors(plan);
    meter.begin(
      'measuring',
      wanted.reduce((sum, t) => sum + t.elements, 0),
      wanted.length,
    );
    const tensors = await measureProfiles({
      plan,
      engine,
      read: inputs.read,
      signal,
      onTensor: (profile) => meter.finishTensor(profile),
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
    engine?.close();
  }
}
