/** What was measured of a run in the Evaluate tab. */
import type { Recipe } from '../../formats/recipe';
import { targetKey } from '../state/evaluation-rows';
import { outcomeKey } from '../state/evaluation-table';
import type { StudioFacts } from '../state/facts';
import { useFacts } from '../studio-context';

/** `perplexity 6.42` over the chosen texts, or null while not all of them were measured by the present protocol. */
export function useRunScore(recipe: Recipe): string | null {
  return useFacts((s) => runScore(s, recipe));
}

function runScore({ evaluation }: StudioFacts, recipe: Recipe): string | null {
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
