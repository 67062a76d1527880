import { useMemo } from 'react';
import { formatCounted } from '../../formats/quantity';
import { Button } from '../parts/Button';
import { ErrorCard } from '../parts/ErrorCard';
import { PopoverFrame } from '../parts/PopoverFrame';
import { Section } from '../parts/Section';
import { whyNotMeasure } from '../state/evaluation-gate';
import type { EvaluationRow } from '../state/evaluation-rows';
import {
  bestMerge,
  evaluationTable,
  loneMerge,
  missingCells,
  type Standing,
  type TableRow,
  tableErrors,
} from '../state/evaluation-table';
import { measure, takeMethod } from '../state/measurement';
import { useStudio, useStudioState } from '../studio-context';
import { MeasuredFoot } from './MeasuredFoot';
import { MeasuringBar } from './MeasuringBar';
import { PerplexityTable } from './PerplexityTable';
import { ProtocolFields } from './ProtocolFields';
import { TextChoice } from './TextChoice';

/** Texts and protocol, the two ways to measure, and the table that fills. */
export function PerplexitySection({ rows }: { rows: readonly EvaluationRow[] }) {
  const evaluation = useStudioState((s) => s.evaluation);
  const table = useMemo(() => evaluationTable(rows, evaluation), [rows, evaluation]);
  return (
    <Section title="Perplexity" className="evaluate-section" aside={<PerplexityHelp />}>
      <TextChoice />
      <div className="evaluate-controls">
        <ProtocolFields />
        <Actions rows={rows} />
      </div>
      <MeasuringBar />
      <Verdict rows={table.rows} texts={table.columns.length} />
      {tableErrors(table.rows).map(({ rows: names, error }) => (
        <ErrorCard
          key={`${error.code} ${error.message}`}
          error={{ ...error, message: `${names.join(', ')}: ${error.message}` }}
        />
      ))}
      {table.rows.length === 0 ? (
        <div className="empty" role="status">
          <strong>Nothing to measure yet</strong>
          <span>Choose a base or add a model in the recipe: each becomes a row here.</span>
        </div>
      ) : (
        <>
          <PerplexityTable {...table} />
          <MeasuredFoot rows={table.rows} />
        </>
      )}
    </Section>
  );
}

/** The answer to “which method was best?”, once there are merges to choose from; of one merge how it stands. */
function Verdict({ rows, texts }: { rows: readonly TableRow[]; texts: number }) {
  const studio = useStudio();
  const busy = useStudioState((s) => s.evaluation.work !== null);
  const found = bestMerge(rows);
  if (busy) return null;
  if (!found?.best.mean) return <LoneVerdict rows={rows} />;
  const { best, of, base } = found;
  const { perplexity } = found.best.mean;
  const beaten = base !== null && base <= perplexity;
  const what = texts > 1 ? `geometric mean perplexity on ${texts} texts` : 'perplexity';
  const apply = best.row.current ? (
    ' It is this recipe.'
  ) : (
    <button type="button" className="link" onClick={() => takeMethod(studio, best.row)}>
      Apply it
    </button>
  );
  if (beaten) {
    return (
      <p className="verdict">
        None of {of} merges beats the base on {texts > 1 ? 'these texts' : 'this text'} ({what}):{' '}
        {base.toFixed(3)}; the nearest is <strong>{best.row.label}</strong>, {perplexity.toFixed(3)}.{apply}
      </p>
    );
  }
  return (
    <p className="verdict">
      Best of {of} merges: <strong>{best.row.label}</strong>, {what} {perplexity.toFixed(3)}
      {base === null ? '' : ` (base ${base.toFixed(3)})`}.{apply}
    </p>
  );
}

function LoneVerdict({ rows }: { rows: readonly TableRow[] }) {
  const found = loneMerge(rows);
  if (!found) return null;
  const isOne = found.against.every(({ of }) => of === 1);
  return (
    <p className="verdict">
      {isOne ? 'On this text ' : ''}
      <strong>{found.merge.row.label}</strong> is {found.against.map(standingWords).join(', ')}.
    </p>
  );
}

/** `better than base on 3 of 4 texts`, of one text `better than base`; the side with more texts. */
function standingWords({ label, better, worse, of }: Standing): string {
  const [word, count] = better >= worse ? ['better', better] : ['worse', worse];
  return `${word} than ${label}${of === 1 ? '' : ` on ${count} of ${formatCounted(of, 'text')}`}`;
}

function PerplexityHelp() {
  return (
    <PopoverFrame
      label="About perplexity"
      trigger={
        <button type="button" className="link">
          what is this?
        </button>
      }
    >
      <h3>Perplexity</h3>
      <p>
        How surprised a model is by a text: e to the mean of −ln p over its tokens, p being the probability
        the model gave to the actual token: from what comes before it, or of an encoder from what stands
        around it, masked. 1 means never surprised; lower is better.
      </p>
      <p className="small quiet">
        Compare numbers of one column only: every text has its own level. Models with different tokenizers are
        compared by bits per byte (bits/B). The percentage is the difference from the base; the dots are the
        means over the texts, on one scale, with a line at the base.
      </p>
    </PopoverFrame>
  );
}

/** Each button says how much there is to do, or why it does nothing. */
function Actions({ rows }: { rows: readonly EvaluationRow[] }) {
  const studio = useStudio();
  const evaluation = useStudioState((s) => s.evaluation);
  const why = useStudioState(whyNotMeasure);
  const own = rows.filter((r) => r.group === 'models' || r.current);
  const methods = rows.filter((r) => r.group === 'merges');
  const compared = rows.filter((r) => r.id === 'base' || r.group === 'merges');
  const toDo = (of: readonly EvaluationRow[]) => missingCells(of, evaluation).length;
  const ownToDo = toDo(own);
  const comparedToDo = toDo(compared);
  return (
    <div className="row wrap evaluate-actions">
      <Button
        className="strong"
        why={why ?? (ownToDo === 0 ? 'Every number of these rows and texts is in the table.' : null)}
        onClick={() => void measure(studio, own)}
      >
        Measure
      </Button>
      <Button
        why={
          why ??
          (methods.length < 2
            ? 'Fewer than two methods fit these contributors.'
            : comparedToDo === 0
              ? 'Every method is in the table.'
              : null)
        }
        onClick={() => void measure(studio, compared)}
      >
        Benchmark {methods.length} methods
      </Button>
      {why === null && ownToDo + comparedToDo > 0 ? (
        <span className="small quiet evaluate-words">
          {ownToDo > 0 ? `${formatCounted(ownToDo, 'perplexity', 'perplexities')} to measure. ` : ''}
          {comparedToDo > 0
            ? `${formatCounted(comparedToDo, 'perplexity', 'perplexities')} for the benchmark.`
            : ''}
        </span>
      ) : null}
    </div>
  );
}
