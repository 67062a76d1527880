import { scaleLinear } from 'd3-scale';
import { type CSSProperties, type ReactNode, useState } from 'react';
import { formatCounted, formatPercent } from '../../formats/quantity';
import { type Estimate, margin } from '../../reports/paired-error';
import { LinkButton } from '../parts/Button';
import { Cut, modelColor, RunLetter, Swatch } from '../parts/Section';
import type { EvaluationRow } from '../state/evaluation-rows';
import {
  decimalsOf,
  measuredFront,
  type PlotScale,
  placeOn,
  plotScale,
  shownHalf,
} from '../state/measure-plot';
import { MEAN } from '../state/measure-state';
import {
  isOfChoice,
  lossScore,
  partIn,
  type MeasureTable as Table,
  type TableCell,
  type TableColumn,
  type TableRow,
} from '../state/measure-table';
import { takeSettings } from '../state/predicted-runs';
import { editSlice } from '../state/studio';
import { useStudio } from '../studio-context';
import { Measuring, Trying } from './MeasureActions';

const GROUPS = [
  { id: 'runs', title: 'Runs' },
  { id: 'tried', title: 'Tried in memory' },
  { id: 'models', title: 'For comparison' },
] as const;

/** Tried merges that are shown before the others are asked for. */
const FEW = 6;

/** A column as it is drawn. */
interface Shown {
  id: string;
  name: string;
  title: string;
  decimals: number;
  cellOf(row: TableRow): TableCell;
}

const isText = ({ kind }: TableColumn) => kind !== 'task';

/** The mean over the texts where there are several, then every text and task. */
function shownColumns(table: Table): Shown[] {
  const { columns, rows } = table;
  const mean = { id: MEAN, name: 'mean', title: 'Geometric mean over the texts' };
  const made = [
    ...(columns.filter(isText).length > 1 ? [{ ...mean, cellOf: (own: TableRow) => own.mean }] : []),
    ...columns.map(({ id, name }, c) => ({
      id,
      name,
      title: name,
      cellOf: (own: TableRow) => own.cells[c]!,
    })),
  ];
  return made.map((column) => ({ ...column, decimals: decimalsOf(table, rows.map(column.cellOf)) }));
}

/** Whether rows are drawn, ordered and judged by a column: the mean of one text is the text. */
function isJudge({ by, columns }: Table, id: string): boolean {
  const texts = columns.filter(isText);
  return by === id || (by === MEAN && texts.length === 1 && texts[0]!.id === id);
}

/** Runs, what was tried, and the models; a dot with its interval on one scale, then the numbers. */
export function MeasureTable({ table }: { table: Table }) {
  const columns = shownColumns(table);
  const scale = plotScale(table);
  const front = measuredFront(table).points;
  const hasLambda = table.rows.some(({ row }) => row.lambda !== '');
  const width = 3 + columns.length + (hasLambda ? 1 : 0);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region is reached by keyboard too.
    <section className="scroll-x measure-scroll" tabIndex={0} aria-label="Table of measurements">
      <table className="wide measure-table">
        <caption className="visually-hidden">
          Perplexity of every model and merge on each text, accuracy on each task, with 95 % intervals.
        </caption>
        <thead>
          <tr>
            <th scope="col">
              <span className="visually-hidden">model or merge</span>
            </th>
            <PlotHead scale={scale} />
            {columns.map((column) => (
              <Head key={column.id} column={column} table={table} />
            ))}
            {hasLambda ? (
              <th
                scope="col"
                className="measure-lambda"
                title="Of what was tried in memory: tuned for each method that has one"
              >
                λ
              </th>
            ) : null}
            <th scope="col">
              <span className="visually-hidden">what can be done</span>
            </th>
          </tr>
        </thead>
        {GROUPS.map(({ id, title }) => (
          <Group key={id} id={id} title={title} table={table} width={width}>
            {(own) => (
              <Row
                key={own.row.id}
                {...{ own, table, columns, scale, hasLambda }}
                isFront={front.some(({ row }) => row === own.row)}
              />
            )}
          </Group>
        ))}
      </table>
    </section>
  );
}

interface GroupProps {
  id: EvaluationRow['group'];
  title: string;
  table: Table;
  width: number;
  children(row: TableRow): ReactNode;
}

/** A group of rows under its heading, which has what adds rows or numbers to it. */
function Group({ id, title, table, width, children }: GroupProps) {
  const [all, setAll] = useState(false);
  const own = table.rows.filter(({ row }) => row.group === id);
  const shown = id === 'tried' && !all && own.length > FEW + 1 ? own.slice(0, FEW) : own;
  if (id === 'models' && own.length === 0) return null;
  return (
    <tbody>
      <tr className="measure-group">
        <th scope="rowgroup" colSpan={width}>
          <div className="row wrap tight measure-group-line">
            <span>{title}</span>
            {id === 'runs' ? <Measuring table={table} /> : null}
            {id === 'tried' ? <Trying table={table} /> : null}
          </div>
        </th>
      </tr>
      {shown.map(children)}
      {shown.length < own.length || (all && own.length > FEW + 1) ? (
        <tr>
          <td colSpan={width}>
            <LinkButton aria-expanded={all} onClick={() => setAll(!all)}>
              {all ? 'fewer' : `${own.length - shown.length} more`}
            </LinkButton>
          </td>
        </tr>
      ) : null}
    </tbody>
  );
}

/** Numbers along the scale. */
function PlotHead({ scale }: { scale: PlotScale | null }) {
  const line = scale && scaleLinear().domain([scale.least, scale.most]);
  // two at least: one alone is no scale
  const ticks = (line && [2, 3, 5].map((count) => line.ticks(count)).find(({ length }) => length > 1)) ?? [];
  return (
    <th scope="col" className="plot-head">
      <span className="visually-hidden">drawn</span>
      <span className="dot-ticks" aria-hidden="true">
        {ticks.map((tick) => (
          <span key={tick} className="mono tiny" style={at(placeOn(scale!, tick) ?? 1)}>
            {tick}
          </span>
        ))}
      </span>
    </th>
  );
}

const at = (place: number) => ({ '--at': place }) as CSSProperties;

/** A column; rows are drawn and ordered by the one that is pressed. */
function Head({ column: { id, name, title }, table }: { column: Shown; table: Table }) {
  const studio = useStudio();
  const sorted = table.isAccuracy ? 'descending' : 'ascending';
  return (
    <th scope="col" {...(isJudge(table, id) ? { 'aria-sort': sorted } : {})}>
      <button type="button" className="measure-by" onClick={() => editSlice(studio, 'measure', { by: id })}>
        <Cut text={name} title={`${title}: draw and order by it`} />
      </button>
    </th>
  );
}

interface RowProps {
  own: TableRow;
  table: Table;
  columns: readonly Shown[];
  scale: PlotScale | null;
  hasLambda: boolean;
  isFront: boolean;
}

function Row({ own, table, columns, scale, hasLambda, isFront }: RowProps) {
  const { row } = own;
  const base = table.rows.find((other) => other.row.id === 'base');
  return (
    <tr data-leader={row === table.leader?.row || undefined} data-current={row.current || undefined}>
      <th scope="row" title={row.title}>
        <span className="row tight">
          {row.place >= 0 ? <RunLetter place={row.place} /> : null}
          {row.color === null ? null : <Swatch color={row.color} />}
          <Cut text={row.label} />
          {row.current ? <span className="tag measure-now">this recipe</span> : null}
          {isFront ? (
            <span
              className="tag"
              title="No merge is better on one of the two without being worse on the other"
            >
              front
            </span>
          ) : null}
          {row.overfit ? (
            <span className="tag" data-tone="warn" title={row.overfit}>
              overfit
            </span>
          ) : null}
        </span>
      </th>
      <td className="plot-cell" aria-hidden="true">
        {scale ? <Dot own={own} scale={scale} leader={table.leader} base={base} /> : null}
      </td>
      {columns.map(({ id, cellOf, decimals }) => (
        <td key={id}>
          <Value cell={cellOf(own)} {...{ table, decimals }} />
        </td>
      ))}
      {hasLambda ? (
        <td className="measure-lambda">{row.lambda || <span className="faint">–</span>}</td>
      ) : null}
      <td className="measure-do">
        <RowAction row={row} />
      </td>
    </tr>
  );
}

function RowAction({ row: { label, tried, target } }: { row: EvaluationRow }) {
  const studio = useStudio();
  return tried && 'recipe' in target ? (
    <LinkButton
      aria-label={`Use ${label}`}
      title="Puts this merge into the recipe"
      onClick={() => takeSettings(studio, target.recipe)}
    >
      use
    </LinkButton>
  ) : null;
}

interface DotProps {
  own: TableRow;
  scale: PlotScale;
  leader: TableRow | null;
  base: TableRow | undefined;
}

/** The number of a row with its interval, on the scale of all; lines at the best merge and at the base. */
function Dot({ own, scale, leader, base }: DotProps) {
  const lines = [
    { kind: 'base', value: base?.by.value },
    { kind: 'leader', value: leader?.by.value },
  ];
  const { row, by } = own;
  // a number of another part of the text stands beside none of these
  const value = by.isElsewhere ? null : by.value;
  const place = value === null ? null : placeOn(scale, value);
  return (
    <span className="dot-track">
      {lines.map(({ kind, value }) =>
        value == null ? null : (
          <span key={kind} className="dot-line" data-kind={kind} style={at(placeOn(scale, value) ?? 1)} />
        ),
      )}
      {value !== null && by.apart !== null && place !== null ? (
        <span
          className="dot-bar"
          style={
            {
              '--at': placeOn(scale, value - by.apart) ?? 1,
              '--to': placeOn(scale, value + by.apart) ?? 1,
            } as CSSProperties
          }
        />
      ) : null}
      {value === null ? null : (
        <span
          className="dot"
          data-group={row.id === 'base' ? 'base' : row.group}
          data-beyond={place === null || undefined}
          style={{ ...at(place ?? 1), ...(row.color === null ? {} : { color: modelColor(row.color) }) }}
        />
      )}
      {value !== null && by.tuned ? (
        <span
          className="dot"
          data-group={row.group}
          data-tuned=""
          style={at(placeOn(scale, lossScore(by.tuned, by.unit)) ?? 1)}
        />
      ) : null}
    </span>
  );
}

interface ValueProps {
  cell: TableCell;
  table: Table;
  decimals: number;
}

/** A number with its error, in as many digits as that allows. */
function Value({ cell, table, decimals }: ValueProps) {
  const { state, value, error } = cell;
  if (state === 'running') return <span className="faint">…</span>;
  if (state === 'failed') {
    return (
      <span className="tone-bad" title={error ? `${error.message} ${error.hint}` : undefined}>
        failed
      </span>
    );
  }
  if (value === null) return <span className="faint">–</span>;
  const scaled = cell.unit === 'accuracy' ? 100 : 1;
  const digits = cell.unit === 'accuracy' ? Math.max(1, decimals - 2) : decimals;
  const half = shownHalf(table, cell);
  const [number, spread] = cell.gap
    ? gapWords(cell.gap, cell.unit)
    : [(scaled * value).toFixed(digits), half === null ? '' : halfWords(scaled * half, digits)];
  return (
    <span className="measure-value" data-faint={isOfChoice(cell) || undefined} title={tooltip(cell, table)}>
      {number}
      {spread ? <small> {spread}</small> : null}
    </span>
  );
}

/** `±0.12`; of a difference that is smaller than the last digit `±<0.01`, of the same losses `=`. */
function halfWords(half: number, digits: number): string {
  const least = 10 ** -digits;
  return half === 0 ? '=' : half < least / 2 ? `±<${least.toFixed(digits)}` : `±${half.toFixed(digits)}`;
}

/** `+4.2%` and `±0.3`; of an accuracy in points. */
function gapWords(gap: Estimate, unit: TableCell['unit']): [string, string] {
  const ratio = Math.exp(gap.mean);
  const [change, of, sign] = unit === 'accuracy' ? [-gap.mean, 1, ''] : [ratio - 1, ratio, '%'];
  const half = margin(gap);
  const size = Math.abs(100 * change).toFixed(1);
  return [
    `${size === '0.0' ? '' : change < 0 ? '−' : '+'}${size}${sign}`,
    half === null ? '' : halfWords(100 * half * of, 1),
  ];
}

function tooltip(cell: TableCell, { leader, comparisons }: Table): string {
  const { value, unit, margin: own, apart, count, measured, texts, tuned } = cell;
  const isTask = unit === 'accuracy';
  const whole = (of: number) => (isTask ? formatPercent(of) : of.toFixed(4));
  const part = partIn(cell);
  return [
    `${whole(value!)}${own === null ? '' : ` ± ${whole(own)} by itself (95 %)`}`,
    ...(leader === null || apart === null
      ? []
      : apart === 0
        ? [`the same losses as ${leader.row.label}`]
        : [
            `± ${whole(apart)} beside ${leader.row.label} (95 % for ${formatCounted(comparisons, 'comparison')})`,
          ]),
    `${formatCounted(count, isTask ? 'item' : 'token')}${part === 'all' ? '' : ` of the ${part} part`}`,
    ...(tuned ? [`${whole(lossScore(tuned, unit))} on the part it was tuned on`] : []),
    ...(isTask
      ? []
      : [`loss ${Math.log(value!).toFixed(4)} nats${texts.length > 1 ? ', the mean over the texts' : ''}`]),
    ...(measured?.bitsPerByte == null ? [] : [`${measured.bitsPerByte.toFixed(4)} bits per byte`]),
    ...(measured && measured.leftOut > 0
      ? [`without ${formatCounted(measured.leftOut, 'conversation')} that its chat template refuses`]
      : []),
    ...Object.entries(measured?.score?.metrics ?? {}).map(
      ([metric, found]) =>
        `${metric} ${found.value.toFixed(3)}${found.stderr === null ? '' : ` ± ${found.stderr.toFixed(3)} (1 s.e.)`}`,
    ),
    ...(measured?.earlier == null ? [] : [`measured ${new Date(measured.earlier).toLocaleString()}`]),
  ].join('\n');
}
