import { useMemo } from 'react';
import { type EvaluationRow, tableRows } from '../state/evaluation-rows';
import { useParts } from '../studio-context';

/** Everyone who can be measured or asked. */
export function useTableRows(): EvaluationRow[] {
  const { recipe, models, runs, view, measure } = useParts('recipe', 'models', 'runs', 'view', 'measure');
  return useMemo(
    () => tableRows({ recipe, models, runs, view, measure }),
    [recipe, models, runs, view, measure],
  );
}
