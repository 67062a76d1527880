/** May a model be run now, and if not, why. Pure; one answer for every button of the Evaluate tab. */

import { protocolOptions } from '../../evaluate/options';
import { isInRange } from '../../reports/option';
import { whyBusy } from './job';
import { whyNotOpen } from './named-models';
import type { StudioState } from './studio-state';

/** Why nothing can be measured or written now, or null. */
export function whyNotRun(state: StudioState): string | null {
  const busy = whyBusy(state);
  if (busy) return busy.why;
  if (state.recipe.base === null && !state.recipe.contributors.some((c) => c.enabled)) {
    return 'The recipe has no models yet.';
  }
  return whyNotOpen(state)?.why ?? null;
}

/** Why nothing can be measured now, or null. */
export function whyNotMeasure(state: StudioState): string | null {
  const { evaluation } = state;
  if (evaluation.opening === 'opening') return 'Opening the sample texts…';
  if (!evaluation.texts.some((t) => t.chosen)) return 'Choose a text first.';
  return protocolProblem(evaluation) ?? whyNotRun(state);
}

/** Why the windows would not score every token, or null. */
export function protocolProblem({ window, stride }: { window: number; stride: number }): string | null {
  const { window: w, stride: s } = protocolOptions;
  return isInRange(w, window) && isInRange(s, stride) && stride <= window
    ? null
    : 'Window and stride are whole numbers, the stride at least 1 and no longer than the window.';
}

/** Why nothing can be written now, or null. */
export function whyNotWrite(state: StudioState): string | null {
  const { prompt, maxTokens, temperature, topP, seed } = state.generation.settings;
  if (prompt.trim() === '') return 'Write a prompt first.';
  if (!Number.isInteger(maxTokens) || maxTokens < 1) return 'Tokens: a whole number from 1.';
  if (!(temperature >= 0)) return 'Temperature: 0 or more.';
  if (!(topP > 0 && topP <= 1)) return 'Top-p: above 0, up to 1.';
  if (!Number.isInteger(seed) || seed < 0 || seed >= 2 ** 32)
    return 'Seed: a whole number from 0 to 4294967295.';
  return whyNotRun(state);
}
