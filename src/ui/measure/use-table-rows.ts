import { useMemo } from 'react';
import { type EvaluationRow, tableRows } from '../state/evaluation-rows';
import { useStudioState } from '../studio-context';

/** Everyone who can be measured or asked. */
export function useTableRows(): EvaluationRow[] {
  const recipe = useStudioState((s) => s.recipe);
  const models = useStudioState((s) => s.models);
  const runs = useStudioState((s) => s.runs);
  const view = useStudioState((s) => s.view);
  const measure = useStudioState((s) => s.measure);
  return useMemo(
    () => tableRows({ recipe, models, runs, view, measure }),
    [recipe, models, runs, view, measure],
  );
}
