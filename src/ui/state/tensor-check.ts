/** One tensor of the recipe as it is, computed on both engines: the same bits or not, and how fast is each? */

import { runTool, whyNoTool } from './job';
import { buildRecipe } from './recipe-build';
import { methodOf, notify, type Studio } from './studio';
import type { StudioState } from './studio-state';

/** Computes a tensor of the recipe on both engines. Never rejects. */
export async function checkTensor(studio: Studio, tensor: string): Promise<void> {
  const { recipe, models } = studio.store.getState();
  if (whyNotCheck(studio.store.getState()) !== null) return;
  studio.store.setState({ tensorCheck: null });
  const request = { recipe: buildRecipe(recipe, models, methodOf(recipe)), tensor };
  const outcome = await runTool(studio, 'check', (onProgress) =>
    studio.worker.verifyTensor(request, ({ phase, done, total, rate, secondsLeft }) =>
      onProgress({
        phase: phase === 'downloading' ? 'downloading' : 'measuring',
        item: tensor,
        bytesDone: done,
        bytes: total,
        bytesPerSecond: rate,
        secondsLeft,
        tensorsDone: 0,
        tensors: 1,
        stages: { read: 0, upload: 0, compute: 0, readback: 0, write: 0 },
        finished: [],
      }),
    ),
  );
  if ('value' in outcome) studio.store.setState({ tensorCheck: { recipe, report: outcome.value } });
  else if ('error' in outcome) notify(studio, 'error', outcome.error.message, outcome.error.hint);
}

/** Why no tensor can be computed on both engines now, or null. */
export function whyNotCheck(state: StudioState): string | null {
  const { plan, engine } = state;
  if (engine.info?.webgpu.available === false) {
    return `There is no other engine here: ${engine.info.webgpu.why ?? 'this browser has no WebGPU.'}`;
  }
  if (plan.status !== 'ready') return 'Wait until the recipe is planned.';
  if (plan.report?.problems.some(({ severity }) => severity === 'error')) return 'The plan has errors.';
  return whyNoTool(state);
}
