import { Popover } from 'radix-ui';
import { useMemo } from 'react';
import { formatCounted } from '../format/quantity';
import { Button } from '../parts/Button';
import { ErrorCard } from '../parts/ErrorCard';
import { Section } from '../parts/Section';
import { measure, takeMethod } from '../state/evaluation';
import { whyNotMeasure } from '../state/evaluation-gate';
import type { EvaluationRow } from '../state/evaluation-rows';
import {
  bestMerge,
  evaluationTable,
  missingCells,
  type TableRow,
  tableErrors,
} from '../state/evaluation-table';
import { useFacts, useStudio } from '../studio-context';
import { MeasuredFoot } from './MeasuredFoot';
import { MeasuringBar } from './MeasuringBar';
import { PerplexityTable } from './PerplexityTable';
import { ProtocolFields } from './ProtocolFields';
import { TextChoice } from './TextChoice';

/** Texts and protocol, the two ways to measure, and the table that fills. */
export function PerplexitySection({ rows }: { rows: readonly EvaluationRow[] }) {
  const evaluation = useFacts((s) => s.evaluation);
  const table = useMemo(() => evaluationTable(rows, evaluation), [rows, evaluation]);
  return (
    <Section title="Perplexity" className="evaluate-section" aside={<PerplexityHelp />}>
      <TextChoice />
      <div className="evaluate-controls">
        <ProtocolFields />
        <Actions rows={rows} />
      </div>
      <MeasuringBar of="table" />
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

/** The answer to “which method was best?”, once there are merges to choose from. */
function Verdict({ rows, texts }: { rows: readonly TableRow[]; texts: number }) {
  const studio = useStudio();
  const busy = useFacts((s) => s.evaluation.work !== null);
  const found = bestMerge(rows);
  if (busy || !found?.best.mean) return null;
  const { best, of, base } = found;
  const what = texts > 1 ? `mean perplexity on ${texts} texts` : 'perplexity';
  return (
    <p className="verdict">
      Best of {of} merges: <strong>{best.row.label}</strong>, {what} {best.mean?.perplexity.toFixed(3)}
      {base === null ? '' : ` (base ${base.toFixed(3)})`}.
      {best.row.current ? (
        ' It is this recipe.'
      ) : (
        <button type="button" className="link" onClick={() => takeMethod(studio, best.row)}>
          Apply it
        </button>
      )}
    </p>
  );
}

function PerplexityHelp() {
  return (
    <Popover.Root>
      <Popover.Trigger asChild>
        <button type="button" className="link">
          what is this?
        </button>
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Content
          className="popover stack"
          align="end"
          sideOffset={6}
          collisionPadding={12}
          aria-label="About perplexity"
        >
          <h3>Perplexity</h3>
          <p>
            How surprised a model is by a text: e to the mean of −ln p over its tokens, p being the
            probability the model gave to the actual token. 1 means never surprised; lower is better.
          </p>
          <p className="small quiet">
            Compare numbers of one column only: every text has its own level. Models with different tokenizers
            are compared by bits per byte (bits/B). The percentage is the difference from the base; the dots
            are the means over the texts, on one scale, with a line at the base.
          </p>
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}

/** Each button says how much there is to do, or why it does nothing. */
function Actions({ rows }: { rows: readonly EvaluationRow[] }) {
  const studio = useStudio();
  const evaluation = useFacts((s) => s.evaluation);
  const why = useFacts(whyNotMeasure);
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
          {ownToDo > 0 ? `${formatCounted(ownToDo, 'number')} to measure. ` : ''}
          {comparedToDo > 0 ? `${formatCounted(comparedToDo, 'number')} for the benchmark.` : ''}
        </span>
      ) : null}
    </div>
  );
}
