/** What was measured of a run in the Evaluate tab. */
import type { Recipe } from '../../formats/recipe';
import { targetKey } from '../state/evaluation-rows';
import { outcomeKey } from '../state/evaluation-table';
import type { StudioState } from '../state/studio-state';
import { scoresOf, scoreWords } from '../state/task-scores';
import { useStudioState } from '../studio-context';

/**
 * What was measured of a run: `perplexity 6.42` over the chosen texts, where all of them were measured by the present
 * protocol, and `hellaswag acc 0.412 ± 0.049` for each task that was scored; null where that is nothing.
 */
export function useRunScore(recipe: Recipe): string | null {
  return useStudioState((s) => {
    const found = [perplexityOf(s, recipe), ...accuraciesOf(s, recipe)].filter((one) => one !== null);
    return found.length === 0 ? null : found.join(' · ');
  });
}

function accuraciesOf({ tasks }: StudioState, recipe: Recipe): (string | null)[] {
  return tasks.scores.size === 0 ? [] : scoresOf(tasks.scores, targetKey({ recipe })).map(scoreWords);
}

function perplexityOf({ evaluation }: StudioState, recipe: Recipe): string | null {
  if (evaluation.outcomes.size === 0) return null;
  const texts = evaluation.texts.filter((t) => t.chosen);
  const target = targetKey({ recipe });
  const losses = texts.flatMap((text) => {
    const outcome = evaluation.outcomes.get(outcomeKey(target, text, evaluation));
    return outcome && 'report' in outcome ? [outcome.report.meanNll] : [];
  });
  if (losses.length === 0 || losses.length < texts.length) return null;
  // every text counts the same, as in the table of Evaluate
  const perplexity = Math.exp(losses.reduce((sum, loss) => sum + loss, 0) / losses.length);
  return `perplexity ${perplexity.toFixed(2)}`;
}
