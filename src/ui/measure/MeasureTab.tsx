import '../styles/measure.css';
import { useMemo } from 'react';
import type { ErrorReport } from '../../errors';
import { formatAbout, formatCount } from '../../formats/quantity';
import { QUICK_CHARACTERS } from '../../reports/text-parts';
import { LinkButton } from '../parts/Button';
import { ErrorCard } from '../parts/Message';
import { measure, openMeasure, whyNotMeasure } from '../state/measure';
import { conclusion } from '../state/measure-conclusion';
import type { MeasureText } from '../state/measure-state';
import {
  expectedSeconds,
  isOfChoice,
  measureTable,
  missingCells,
  type MeasureTable as Table,
  tableErrors,
} from '../state/measure-table';
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
  const isOpening = useStudioState((s) => s.measure.opening === 'opening');
  const isEmpty = table.rows.length === 0;
  const needsText = !isEmpty && table.columns.length === 0 && !isOpening;
  return (
    <p className="measure-lead" role="status">
      <strong>{isEmpty ? 'Nothing to measure yet.' : 'No merge is measured yet.'}</strong>{' '}
      <span className="quiet">
        {needsText
          ? 'Without a text, each contributor generates its own. Choose one of the kind that your merge is for.'
          : ''}
      </span>
    </p>
  );
}

/** The rows that cannot be told apart on a beginning, and the models they are judged by, on the whole texts. */
function MeasureMore({ table, rows }: { table: Table; rows: readonly Table['rows'][number]['row'][] }) {
  const studio = useStudio();
  const state = useStudioState((s) => s.measure);
  const why = useStudioState(whyNotMeasure);
  const isLonger = areLonger(state.texts).includes(true);
  const leader = table.leader?.row;
  if (state.amount === 'full' || !isLonger || !leader || table.isAccuracy) return null;
  const models = table.rows.map(({ row }) => row).filter(({ group }) => group === 'models');
  const own = [...new Set([...models, leader, ...rows])];
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

/** Of each chosen text, whether it is longer than the beginning that is read of it. */
const areLonger = (texts: readonly MeasureText[]) =>
  texts.filter(({ chosen }) => chosen).map(({ text }) => text.length > 3 * QUICK_CHARACTERS);

/** What is scored, how much of it, and how to read the errors. */
function Protocol({ table }: { table: Table }) {
  const studio = useStudio();
  const amount = useStudioState((s) => s.measure.amount);
  const longer = areLonger(useStudioState((s) => s.measure.texts));
  const { columns, leader, isAccuracy, isChosen, comparisons } = table;
  const isDrawn = leader !== null && table.rows.some(({ by }) => by.apart !== null);
  const isChosenHere = leader !== null && !isChosen && table.rows.some(({ row }) => row.group === 'tried');
  const cells = table.rows.flatMap((own) => own.cells).filter(({ state }) => state === 'done');
  const faint = cells.filter(isOfChoice);
  const isChoosing = faint.length > 0 && faint.length === cells.length;
  const third = `the third of each text that ${isChoosing ? 'merges are chosen' : `nothing is tuned${isChosenHere ? '' : ' or chosen'}`} on`;
  const whole = columns.filter(({ isWhole }) => isWhole).map(({ name }) => `all of ${name}`);
  const read = [...(whole.length < columns.length ? [third] : []), ...whole].join(' and ');
  const all = comparisons > 1 ? ` for all ${comparisons} comparisons together` : '';
  return (
    <p className="small quiet measure-protocol">
      {isAccuracy ? 'Accuracy in percent, higher is better' : 'Perplexity, lower is better'}
      {isAccuracy || columns.length === 0 ? '' : `, on ${read}`}
      {longer.includes(true) ? (
        <>
          {', of '}
          <LinkButton
            title="A beginning takes seconds; full texts tell more apart"
            onClick={() => editSlice(studio, 'measure', { amount: amount === 'quick' ? 'full' : 'quick' })}
          >
            {amount === 'full'
              ? 'full texts'
              : `${longer.includes(false) ? 'at most ' : ''}the first ${formatCount(3 * QUICK_CHARACTERS)} characters`}
          </LinkButton>
        </>
      ) : null}
      {isDrawn ? `. ± and bars: the difference from ${leader.row.label}, 95 %${all}.` : '.'}
      {isDrawn ? (
        <span className="measure-legend">
          {` Line: ${leader.row.label}; dashed: the base`}
          {table.rows.some(({ by }) => by.tuned && !by.isElsewhere)
            ? '; thin ring: on the part it was tuned on.'
            : '.'}
        </span>
      ) : null}
      {faint.length > 0 && !isChoosing
        ? ` Faint: ${faint.some(({ gap }) => gap) ? `the difference from ${leader?.row.label} ` : ''}on the part that merges are chosen on.`
        : ''}
    </p>
  );
}
