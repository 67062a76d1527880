import { useEffect, useMemo } from 'react';
import { openSampleTexts } from '../state/evaluation';
import { evaluationRows } from '../state/evaluation-rows';
import { useStudio, useStudioState } from '../studio-context';
import '../styles/evaluate.css';
import { PerplexitySection } from './PerplexitySection';
import { SearchSection } from './SearchSection';
import { TaskSection } from './TaskSection';

/** The merge measured where it is made: perplexity of everything on any text, tasks, and a search. */
export function EvaluateTab() {
  const studio = useStudio();
  const recipe = useStudioState((s) => s.recipe);
  const models = useStudioState((s) => s.models);
  const rows = useMemo(() => evaluationRows(recipe, models), [recipe, models]);
  useEffect(() => {
    void openSampleTexts(studio);
  }, [studio]);
  return (
    <div className="screen evaluate-screen">
      <PerplexitySection rows={rows} />
      <TaskSection rows={rows} />
      <SearchSection />
    </div>
  );
}
