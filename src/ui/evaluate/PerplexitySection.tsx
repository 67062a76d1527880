import { useMemo } from 'react';
import { formatBytes, formatCount, formatCounted } from '../../formats/quantity';
import { Button } from '../parts/Button';
import { ErrorCard } from '../parts/ErrorCard';
import { LabeledNumber } from '../parts/LabeledNumber';
import { LinkButton } from '../parts/LinkButton';
import { PopoverFrame } from '../parts/PopoverFrame';
import { Problem } from '../parts/Problem';
import { Section } from '../parts/Section';
import { Segmented } from '../parts/Segmented';
import { ToolBar } from '../parts/ToolBar';
import { forgetEarlier, measure, protocolProblem, takeMethod, whyNotMeasure } from '../state/evaluation';
import type { EvaluationRow } from '../state/evaluation-rows';
import type { EvaluationSlice } from '../state/evaluation-state';
import {
  bestMerge,
  evaluationTable,
  loneMerge,
  missingCells,
  type Standing,
  type TableRow,
  tableErrors,
} from '../state/evaluation-table';
import { QUICK_CHARACTERS } from '../state/evaluation-texts';
import { editSlice } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';
import { PerplexityTable } from './PerplexityTable';
import { TextChoice } from './TextChoice';

/** Texts and protocol, the two ways to measure, and the table that fills. */
export function PerplexitySection({ rows }: { rows: readonly EvaluationRow[] }) {
  const evaluation = useStudioState((s) => s.evaluation);
  const table = useMemo(() => evaluationTable(rows, evaluation), [rows, evaluation]);
  return (
    <Section title="Perplexity" className="evaluate-section" aside={<PerplexityHelp />}>
      <TextChoice />
      <div className="row wrap apart evaluate-controls">
        <ProtocolFields />
        <Actions rows={rows} />
      </div>
      <ToolBar kinds={['evaluation']} stop="Stop measuring">
        Models measured side by side finish together. Stopping keeps every number in the table, but not those
        in progress.
      </ToolBar>
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
    <LinkButton onClick={() => takeMethod(studio, best.row)}>Apply it</LinkButton>
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
    <PopoverFrame label="About perplexity" trigger={<LinkButton>what is this?</LinkButton>}>
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

/** Each button shows the amount of work, or why it is disabled. */
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
    <div className="row wrap apart">
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

/** Under the table: what measuring took, and which numbers are of an earlier visit. */
function MeasuredFoot({ rows }: { rows: readonly TableRow[] }) {
  const studio = useStudio();
  const cost = useStudioState((s) => s.evaluation.cost);
  const busy = useStudioState((s) => s.evaluation.work !== null);
  const earlier = useMemo(
    () =>
      rows.flatMap(({ cells }) =>
        cells.flatMap((c) => (c.state === 'done' && c.earlier !== null ? [c.earlier] : [])),
      ),
    [rows],
  );
  if (!cost && earlier.length === 0) return null;
  return (
    <div className="row wrap small quiet">
      {cost ? (
        <span>
          Measured last: {formatCounted(cost.models, 'model')}, {formatBytes(cost.bytesRead)} of weights read,
          at most {formatBytes(cost.peakBytes)} of memory on the device.
        </span>
      ) : null}
      {earlier.length > 0 ? (
        <span>
          {formatCounted(earlier.length, 'number')} from an earlier visit, the newest of{' '}
          {new Date(Math.max(...earlier)).toLocaleString()}.{' '}
          <Button variant="quiet" why={busy ? 'Measuring.' : null} onClick={() => void forgetEarlier(studio)}>
            Forget them
          </Button>
        </span>
      ) : null}
    </div>
  );
}

/** How much of each text is scored and in which windows, in fields and in words. */
function ProtocolFields() {
  const studio = useStudio();
  const evaluation = useStudioState((s) => s.evaluation);
  const { amount, window, stride } = evaluation;
  const problem = protocolProblem(evaluation);
  return (
    <div className="protocol">
      <Segmented
        label="How much of each text"
        value={amount}
        options={[
          { value: 'quick', label: 'Quick' },
          { value: 'full', label: 'Full text' },
        ]}
        onChange={(next) => editSlice(studio, 'evaluation', { amount: next })}
      />
      <LabeledNumber
        label="window"
        name="window in tokens"
        value={window}
        min={2}
        max={131_072}
        invalid={problem !== null}
        onChange={(next) => editSlice(studio, 'evaluation', { window: next })}
      />
      <LabeledNumber
        label="stride"
        name="stride in tokens"
        value={stride}
        min={1}
        max={131_072}
        invalid={problem !== null}
        onChange={(next) => editSlice(studio, 'evaluation', { stride: next })}
      />
      <Problem className="protocol-words">{problem}</Problem>
      {problem ? null : <p className="small quiet protocol-words">{protocolWords(evaluation)}</p>}
    </div>
  );
}

function protocolWords({ amount, window, stride, outcomes }: EvaluationSlice): string {
  const scope =
    amount === 'quick' ? `The first ${formatCount(QUICK_CHARACTERS)} characters of each text. ` : '';
  if (stride === window)
    return `${scope}Windows of ${formatCount(window)} tokens do not overlap; every token but the first of each is scored; ${startWords(outcomes)}.${maskWords(outcomes)}`;
  return `${scope}Every token but the first is scored once, in windows of ${formatCount(window)} tokens that advance by ${formatCount(stride)}; ${startWords(outcomes)}.${maskWords(outcomes)}`;
}

/** Note on the protocol of models that fill in masked tokens, once one was measured. */
function maskWords(outcomes: EvaluationSlice['outcomes']): string {
  for (const outcome of outcomes.values()) {
    const masked = 'report' in outcome ? outcome.report.protocol.masked : undefined;
    if (masked !== undefined)
      return ` Encoders fill in every token, the first too: one of ${masked} tokens of a window is masked at a time.`;
  }
  return '';
}

/** Which token stands in front: known once something was measured. */
function startWords(outcomes: EvaluationSlice['outcomes']): string {
  const found = new Set<number | null>();
  for (const outcome of outcomes.values()) if ('report' in outcome) found.add(outcome.report.protocol.bos);
  if (found.size === 0) return 'the tokenizer’s own start token, if it has one, comes first';
  const words = [...found].map((id) => (id === null ? 'no start token' : `start token ${id}`));
  return `the text is preceded by ${words.join(' or ')}`;
}
