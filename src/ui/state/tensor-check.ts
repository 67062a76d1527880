/** One tensor of the recipe as it is, computed on both engines: the same bits or not, and how fast is each? */

import type { RunningProgress } from '../../reports/evaluate';
import { buildRecipe } from './built-recipe';
import { whyOneEngine } from './engine-summary';
import { runTool, whyNoTool } from './job';
import type { JobProgress } from './job-state';
import { methodOf, notify, type Studio } from './studio';
import type { StudioState } from './studio-state';

/** Computes a tensor of the recipe on both engines. Never rejects. */
export async function checkTensor(studio: Studio, tensor: string): Promise<void> {
  const { recipe, models } = studio.store.getState();
  if (whyNotCheck(studio.store.getState()) !== null) return;
  studio.store.setState({ tensorCheck: null });
  const request = { recipe: buildRecipe(recipe, models, methodOf(recipe)), tensor };
  const outcome = await runTool(
    studio,
    'check',
    (onProgress) => studio.worker.verifyTensor(request, onProgress),
    ({ phase, done, total, rate, secondsLeft }: RunningProgress): JobProgress => ({
      phase: phase === 'downloading' ? 'downloading' : 'measuring',
      item: tensor,
      share: total > 0 ? Math.min(1, done / total) : 0,
      counted: { done: 0, total: 1, unit: 'tensors' },
      bytes: total > 0 ? { done, total } : null,
      rate: total > 0 ? { perSecond: rate, unit: 'bytes' } : null,
      secondsLeft,
    }),
  );
  if ('value' in outcome) studio.store.setState({ tensorCheck: { recipe, report: outcome.value } });
  else if ('error' in outcome) notify(studio, 'error', outcome.error.message, outcome.error.hint);
}

/** Why no tensor can be computed on both engines now, or null. */
export function whyNotCheck(state: StudioState): string | null {
  const { plan } = state;
  const alone = whyOneEngine(state);
  if (alone !== null) return alone;
  if (plan.status !== 'ready') return 'Wait until the recipe is planned.';
  if (plan.report?.problems.some(({ severity }) => severity === 'error')) return 'The plan has errors.';
  return whyNoTool(state);
}
