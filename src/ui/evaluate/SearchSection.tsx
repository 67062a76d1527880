import '../styles/tools.css';
import { useState } from 'react';
import { formatSetting } from '../../formats/quantity';
import { Button } from '../parts/Button';
import { ErrorCard } from '../parts/ErrorCard';
import { LabeledNumber } from '../parts/LabeledNumber';
import { LinkButton } from '../parts/LinkButton';
import { Section } from '../parts/Section';
import { Select } from '../parts/Select';
import { ToolBar } from '../parts/ToolBar';
import type { SearchRun } from '../state/evaluation-state';
import { isAtWork } from '../state/job';
import {
  bestCandidate,
  OBJECTIVES,
  type SearchChoices,
  startSearch,
  takeCandidate,
  variableTitle,
  whyNotSearch,
} from '../state/search';
import { useStudio, useStudioState } from '../studio-context';
import { SearchPlot } from './SearchPlot';

/** Weights, λ and density searched for on the chosen texts or tasks: every candidate in a chart, any of them one click from the recipe. */
export function SearchSection() {
  const studio = useStudio();
  const [choices, setChoices] = useState<SearchChoices>({ by: 'perplexity', evaluations: 60, seed: 0 });
  const why = useStudioState((s) => whyNotSearch(s, choices));
  const search = useStudioState((s) => s.evaluation.search);
  const written = useStudioState((s) => s.recipe.asWritten !== null);
  if (written) return null;
  return (
    <Section title="Search" className="evaluate-section">
      <p className="small quiet">
        Which weights, λ and density make the best merge of the recipe’s method? Candidates are drawn by
        CMA-ES from the recipe’s values on, merged in memory, and measured on the texts or the tasks chosen
        above. Generations are measured whole; the same search continues where it was stopped.
      </p>
      <div className="row wrap apart search-settings">
        <label className="labeled">
          <span>Measure by</span>
          <Select<SearchChoices['by']>
            value={choices.by}
            options={[
              { value: 'perplexity', label: 'perplexity on the texts' },
              { value: 'accuracy', label: 'accuracy on the tasks' },
            ]}
            onChange={(by) => setChoices({ ...choices, by })}
          />
        </label>
        <LabeledNumber
          label="Merges to measure"
          value={choices.evaluations}
          min={0}
          max={10_000}
          onChange={(evaluations) => setChoices({ ...choices, evaluations })}
        />
        <LabeledNumber
          label="Seed"
          value={choices.seed}
          min={0}
          max={10_000}
          onChange={(seed) => setChoices({ ...choices, seed })}
        />
        <Button className="strong" why={why} onClick={() => void startSearch(studio, choices)}>
          Search
        </Button>
      </div>
      <ToolBar kinds={['search']} />
      {search?.error ? <ErrorCard error={search.error} /> : null}
      {search ? <Found search={search} /> : null}
    </Section>
  );
}

function Found({ search }: { search: SearchRun }) {
  const studio = useStudio();
  const active = useStudioState((s) => isAtWork(s, 'search'));
  const [picked, setPicked] = useState<number | null>(null);
  const { points } = search;
  const objective = OBJECTIVES[search.by];
  const best = bestCandidate(search);
  const at = picked !== null && picked < points.length ? picked : best;
  const chosen = points[at];
  const [first] = points;
  if (!first || !chosen || objective.of(chosen) === null) return null;
  const titleOf = (name: string) => variableTitle(search.recipe, name);
  const values = Object.entries(chosen.values).map(
    ([name, value]) => `${titleOf(name)} ${formatSetting(value, 0.001)}`,
  );
  return (
    <>
      <SearchPlot
        objective={objective}
        points={points}
        best={best}
        chosen={at}
        titleOf={titleOf}
        onChoose={setPicked}
      />
      <p className="verdict">
        {at === best ? `Best of ${points.length}${active ? ' so far' : ''}: ` : `Candidate ${at + 1}: `}
        <strong>{values.join(', ')}</strong>, {objective.text(chosen)}
        {at === 0 ? '' : ` (the recipe as it was: ${objective.text(first)})`}.{' '}
        <LinkButton onClick={() => takeCandidate(studio, search, chosen)}>Use these settings</LinkButton>
        {at === best ? null : <LinkButton onClick={() => setPicked(null)}>Back to the best</LinkButton>}
      </p>
    </>
  );
}
