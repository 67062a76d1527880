import { useMemo, useState } from 'react';
import { formatCounted } from '../../formats/quantity';
import type { MergeMethod } from '../../merge/method';
import { Button } from '../parts/Button';
import { Section } from '../parts/Section';
import '../styles/sweep.css';
import { editEvaluation } from '../state/evaluation';
import { whyNotMeasure } from '../state/evaluation-gate';
import type { EvaluationRow } from '../state/evaluation-rows';
import { evaluationTable, missingCells } from '../state/evaluation-table';
import { measure } from '../state/measurement';
import { editRecipe } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';
import {
  bestPoint,
  isSweep,
  measuredPoints,
  parseDensities,
  proposedMethods,
  recipeAt,
  type SweepCurve,
  type SweepPlace,
  shortTitle,
  sweepCurves,
  sweepMethods,
  sweepRows,
} from './density-sweep';
import { MeasuringBar } from './MeasuringBar';
import { isSame, SweepPlot } from './SweepPlot';

/** How much of each change to keep, by which method: measured, drawn, and taken into the recipe. */
export function SweepSection({ rows }: { rows: readonly EvaluationRow[] }) {
  const recipe = useStudioState((s) => s.recipe);
  const models = useStudioState((s) => s.models);
  const evaluation = useStudioState((s) => s.evaluation);
  const { sweep } = evaluation;
  const fitting = useMemo(() => sweepMethods(recipe, models), [recipe, models]);
  const chosen = useMemo(() => {
    const ids = sweep.methods ?? proposedMethods(recipe, fitting);
    return fitting.filter(({ id }) => ids.includes(id));
  }, [sweep.methods, recipe, fitting]);
  const densities = parseDensities(sweep.densities);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the densities are read off this text.
  const swept = useMemo(
    () => (typeof densities === 'string' ? [] : sweepRows(recipe, models, chosen, densities)),
    [recipe, models, chosen, sweep.densities],
  );
  const curves = useMemo(() => sweepCurves(swept, evaluation), [swept, evaluation]);
  const base = useMemo(
    () => evaluationTable(rows, evaluation).rows.find((r) => r.row.id === 'base')?.mean?.perplexity ?? null,
    [rows, evaluation],
  );
  if (recipe.asWritten) return null;
  return (
    <Section title="Density sweep" className="evaluate-section sweep">
      <p className="small quiet">
        How much of each change should be kept? Every method below is merged with every density, for all
        contributors alike, and measured on the texts chosen above. Each model is read once; nothing is
        written.
      </p>
      <Choices
        fitting={fitting}
        chosen={chosen}
        problem={typeof densities === 'string' ? densities : null}
        // the base last: it is what the curve is compared with
        rows={[...swept, ...rows.filter((row) => row.id === 'base')]}
      />
      <MeasuringBar of="sweep" />
      <Result curves={curves} base={base} />
    </Section>
  );
}

interface ChoicesProps {
  fitting: readonly MergeMethod[];
  chosen: readonly MergeMethod[];
  problem: string | null;
  rows: readonly EvaluationRow[];
}

function Choices({ fitting, chosen, problem, rows }: ChoicesProps) {
  const studio = useStudio();
  const evaluation = useStudioState((s) => s.evaluation);
  const busy = useStudioState(whyNotMeasure);
  const { sweep } = evaluation;
  const ids = chosen.map(({ id }) => id);
  const toDo = missingCells(rows, evaluation).length;
  const why =
    busy ??
    (fitting.length === 0
      ? 'No method that keeps a share of each change fits these contributors.'
      : chosen.length === 0
        ? 'Choose a method first.'
        : (problem ?? (toDo === 0 ? 'Every point is measured.' : null)));
  return (
    <div className="stack">
      <fieldset className="text-choice">
        <legend className="visually-hidden">Methods to sweep</legend>
        {fitting.map((method) => (
          <label key={method.id} className="sweep-method" title={method.title}>
            <input
              type="checkbox"
              checked={ids.includes(method.id)}
              onChange={({ target }) =>
                editEvaluation(studio, {
                  sweep: {
                    ...sweep,
                    methods: target.checked ? [...ids, method.id] : ids.filter((id) => id !== method.id),
                  },
                })
              }
            />
            {shortTitle(method)}
          </label>
        ))}
      </fieldset>
      <div className="row wrap">
        <label className="labelled sweep-densities">
          <span>Densities</span>
          <input
            className="field mono"
            spellCheck={false}
            autoComplete="off"
            inputMode="decimal"
            aria-invalid={problem !== null || undefined}
            value={sweep.densities}
            onChange={({ target }) =>
              editEvaluation(studio, { sweep: { ...sweep, densities: target.value } })
            }
          />
        </label>
        <Button className="strong" why={why} onClick={() => void measure(studio, rows)}>
          Sweep
        </Button>
        <span className="small quiet">
          {problem ??
            (why === null ? `${formatCounted(toDo, 'perplexity', 'perplexities')} to measure.` : '')}
        </span>
      </div>
    </div>
  );
}

function Result({ curves, base }: { curves: readonly SweepCurve[]; base: number | null }) {
  const studio = useStudio();
  const busy = useStudioState((s) => isSweep(s.evaluation));
  const [picked, setPicked] = useState<SweepPlace | null>(null);
  const best = bestPoint(curves);
  // one density of a method is no curve: measuring above gives every method the recipe's own
  const curved = curves.some((curve) => measuredPoints([curve]).length > 1);
  if (!best || (!busy && !curved)) {
    return busy ? null : (
      <div className="empty" role="status">
        <strong>No curve yet</strong>
        <span>Sweep measures it; the best density is one click from the recipe.</span>
      </div>
    );
  }
  const chosen = measuredPoints(curves).find((p) => picked && isSame(p, picked)) ?? best;
  const take = ({ method, density }: SweepPlace) =>
    editRecipe(studio, (recipe) => recipeAt(recipe, method, density));
  return (
    <>
      <SweepPlot curves={curves} best={best} chosen={chosen} base={base} onChoose={setPicked} />
      <p className="verdict">
        {isSame(chosen, best) ? 'Best: ' : ''}
        <strong>
          {shortTitle(chosen.method)}, density {chosen.density}
        </strong>
        , perplexity {chosen.perplexity.toFixed(3)}
        {base === null ? '' : ` (base ${base.toFixed(3)})`}.{' '}
        <button type="button" className="link" onClick={() => take(chosen)}>
          Use this density
        </button>
        {isSame(chosen, best) ? null : (
          <button type="button" className="link" onClick={() => setPicked(null)}>
            Back to the best
          </button>
        )}
      </p>
      <details>
        <summary className="small">The numbers as a table</summary>
        <SweepTable curves={curves} best={best} onTake={take} />
      </details>
    </>
  );
}

interface SweepTableProps {
  curves: readonly SweepCurve[];
  best: SweepPlace;
  onTake(place: SweepPlace): void;
}

function SweepTable({ curves, best, onTake }: SweepTableProps) {
  const densities = curves[0]?.points.map((p) => p.density) ?? [];
  return (
    <div className="scroll-x">
      <table className="sweep-table">
        <caption className="visually-hidden">
          Perplexity by method and density; lower is better. A number applies its method and density to the
          recipe.
        </caption>
        <thead>
          <tr>
            <th scope="col">density</th>
            {curves.map(({ method }) => (
              <th key={method.id} scope="col">
                {shortTitle(method)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {densities.map((density, i) => (
            <tr key={density}>
              <th scope="row">{density}</th>
              {curves.map(({ method, points }) => {
                const point = points[i];
                const perplexity = point?.perplexity ?? null;
                if (perplexity === null) return <td key={method.id}>{point?.failed ? 'failed' : '–'}</td>;
                const place = { method, density, perplexity };
                return (
                  <td key={method.id} data-best={isSame(place, best) || undefined}>
                    <button
                      type="button"
                      className="link"
                      aria-label={`Use ${shortTitle(method)} with density ${density}: perplexity ${perplexity.toFixed(3)}${isSame(place, best) ? ', the best' : ''}`}
                      onClick={() => onTake(place)}
                    >
                      {perplexity.toFixed(3)}
                    </button>
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
