import '../styles/measure.css';
import { useMemo } from 'react';
import type { ErrorReport } from '../../errors';
import { formatAbout, formatCount } from '../../formats/quantity';
import { QUICK_CHARACTERS } from '../../reports/text-parts';
import { LinkButton } from '../parts/Button';
import { ErrorCard } from '../parts/Message';
import { measure, openMeasure, whyNotMeasure } from '../state/measure';
import {
  conclusion,
  expectedSeconds,
  measureTable,
  missingCells,
  partIn,
  type MeasureTable as Table,
  tableErrors,
} from '../state/measure-table';
import { isOfSample } from '../state/sample-texts';
import { editSlice } from '../state/studio';
import { useReady, useStudio, useStudioState } from '../studio-context';
import { FrontPlot } from './FrontPlot';
import { MeasureTable } from './MeasureTable';
import { TaskChoice, TextChoice } from './TextChoice';
import { useTableRows } from './use-table-rows';

/** One table of every model and merge on every text and task, and the sentence that follows from it. */
export function MeasureTab() {
  useReady(openMeasure);
  const failure = useStudioState((s) => s.measure.error);
  const table = useTable();
  const errors = [...(failure ? [failure] : []), ...tableErrors(table.rows).map(named)];
  return (
    <div className="stack loose screen measure-screen">
      <header className="stack">
        <div className="stack tight">
          <Finding table={table} />
          <Protocol table={table} />
        </div>
        <div className="row wrap tight">
          <TextChoice />
          <TaskChoice />
        </div>
      </header>
      {errors.map((error) => (
        <ErrorCard key={`${error.code} ${error.message}`} error={error} />
      ))}
      <MeasureTable table={table} />
      <FrontPlot table={table} />
    </div>
  );
}

function useTable(): Table {
  const rows = useTableRows();
  const state = useStudioState((s) => s.measure);
  return useMemo(() => measureTable(rows, state), [rows, state]);
}

const named = ({ rows, error }: { rows: string[]; error: ErrorReport }): ErrorReport => ({
  ...error,
  message: `${rows.join(', ')}: ${error.message}`,
});

/** What follows from the table, where it is outside the error, and what would tell more. */
function Finding({ table }: { table: Table }) {
  const said = conclusion(table);
  if (!said) return <Beginning table={table} />;
  return (
    <p className="measure-lead" role="status">
      <strong>{said.lead}</strong>
      {said.rest}{' '}
      {said.open.length > 0 ? <MeasureMore table={table} rows={said.open.map(({ own }) => own.row)} /> : null}
    </p>
  );
}

function Beginning({ table }: { table: Table }) {
  const isSample = useStudioState(isOfSample);
  const isOpening = useStudioState((s) => s.measure.opening === 'opening');
  const isEmpty = table.rows.length === 0;
  const needsText = !isEmpty && table.columns.length === 0 && !isSample && !isOpening;
  return (
    <p className="measure-lead" role="status">
      <strong>{isEmpty ? 'Nothing to measure yet.' : 'No merge is measured yet.'}</strong>{' '}
      <span className="quiet">
        {needsText
          ? 'Add a text of the kind that your merge is for. Without one, each contributor generates its own.'
          : ''}
      </span>
    </p>
  );
}

/** The rows that cannot be told apart on a beginning, on the whole texts. */
function MeasureMore({ table, rows }: { table: Table; rows: readonly Table['rows'][number]['row'][] }) {
  const studio = useStudio();
  const state = useStudioState((s) => s.measure);
  const why = useStudioState(whyNotMeasure);
  const isLonger = state.texts.some(({ chosen, text }) => chosen && text.length > 3 * QUICK_CHARACTERS);
  const leader = table.leader?.row;
  if (state.amount === 'full' || !isLonger || !leader || table.isAccuracy) return null;
  const own = [leader, ...rows];
  const missing = missingCells(measureTable(own, { ...state, amount: 'full' }));
  const seconds = expectedSeconds(missing, table);
  return (
    <LinkButton
      disabled={why !== null}
      title={why ?? undefined}
      onClick={() => {
        editSlice(studio, 'measure', { amount: 'full' });
        void measure(studio, own);
      }}
    >
      Measure these on full texts{seconds === null ? '' : `, ${formatAbout(seconds)}`}
    </LinkButton>
  );
}

/** What is scored, how much of it, and how to read the errors. */
function Protocol({ table }: { table: Table }) {
  const studio = useStudio();
  const amount = useStudioState((s) => s.measure.amount);
  const { columns, leader, isAccuracy, isChosen, comparisons } = table;
  const hasTexts = columns.some(({ kind }) => kind === 'text');
  const isDrawn = leader !== null && table.rows.some(({ by }) => by.apart !== null);
  const isChosenHere = leader !== null && !isChosen && table.rows.some(({ row }) => row.group === 'tried');
  const isChoosing = leader !== null && partIn(leader.by) === 'choosing';
  const isSplit = table.rows.some(({ by }) => by.isElsewhere);
  const all = comparisons > 1 ? ` for all ${comparisons} comparisons together` : '';
  return (
    <p className="small quiet measure-protocol">
      {isAccuracy ? 'Accuracy in percent, higher is better' : 'Perplexity, lower is better'}
      {isAccuracy || columns.length === 0
        ? ''
        : `, on the third of each text that ${isChoosing ? 'merges are chosen' : `nothing is tuned${isChosenHere ? '' : ' or chosen'}`} on`}
      {hasTexts ? (
        <>
          {', of '}
          <LinkButton
            title="A beginning takes seconds; full texts tell more apart"
            onClick={() => editSlice(studio, 'measure', { amount: amount === 'quick' ? 'full' : 'quick' })}
          >
            {amount === 'quick' ? `the first ${formatCount(3 * QUICK_CHARACTERS)} characters` : 'full texts'}
          </LinkButton>
        </>
      ) : null}
      {isDrawn ? `. ± and bars: the difference from ${leader.row.label}, 95 %${all}.` : '.'}
      {isDrawn ? (
        <span className="measure-legend">
          {` Line: ${leader.row.label}; dashed: the base`}
          {table.rows.some(({ by }) => by.tuned) ? '; thin ring: on the part it was tuned on' : ''}
          {isSplit ? '; faint: on the part that merges are chosen on alone.' : '.'}
        </span>
      ) : null}
    </p>
  );
}
