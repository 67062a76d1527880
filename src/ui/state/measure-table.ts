/** The table of the Measure tab: columns, numbers with their errors, and what is missing. Pure. */

import type { ErrorReport } from '../../errors';
import type { Recipe } from '../../formats/recipe';
import { type Contender, type Leading, leading } from '../../reports/conclusion';
import { TEXT_PARTS, type TextPart } from '../../reports/find-best';
import {
  type Estimate,
  type LossBlock,
  margin,
  meanLoss,
  pairedDifference,
} from '../../reports/paired-error';
import { secondsLeft } from '../../reports/time-left';
import { shortName } from './built-recipe';
import { type EvaluationRow, targetKey } from './evaluation-rows';
import { MEAN, type Measured, type MeasureSlice } from './measure-state';
import { chosenTaskNames } from './measure-tasks';
import { partStretches } from './measure-texts';

/** Which tokens or items a number is of: the later parts say more. `all`: of a task that nothing was tuned on. */
export type Part = TextPart | 'all';

export interface TableColumn {
  /** Id of a text, `generated <name>` or `task <name>`. */
  id: string;
  kind: 'text' | 'generated' | 'task';
  name: string;
  /** Of what is scored, and how: with a part and a target the key of a cell. */
  key: string;
  /** Of which there may be numbers; the last is wanted. */
  parts: readonly Part[];
  /** Characters that are scored; 0 of what is not measured by them. */
  characters: number;
  /** It is too short to be cut into parts. */
  isWhole: boolean;
}

/** A number, or why there is none. */
export interface TableCell {
  state: 'none' | 'running' | 'failed' | 'done';
  /** Perplexity, or accuracy. */
  value: number | null;
  unit: 'perplexity' | 'accuracy';
  /** Half the width of its 95 % interval. */
  margin: number | null;
  /** The same of its difference from the row all are compared with; null for that row, and where they scored other tokens. */
  apart: number | null;
  /** It is of another part of the text than that of the row all are compared with: it stands beside nothing. */
  isElsewhere: boolean;
  /** Its difference from that row on this other part; null where that row has no number of it. */
  gap: Estimate | null;
  /** Losses, text by text. */
  texts: readonly (readonly LossBlock[])[];
  /** The same on the part that it was tuned on; null where it was not. */
  tuned: TableCell['texts'] | null;
  /** The same on the part that merges are chosen on; null where it was not read. */
  choosing: TableCell['texts'] | null;
  /** Tokens, or items. */
  count: number;
  /** Cells of one stamp scored the same. */
  stamp: string;
  measured: Measured | null;
  error: ErrorReport | null;
}

export interface TableRow {
  row: EvaluationRow;
  cells: readonly TableCell[];
  /** Over the texts, each counting the same; of one text its cell. */
  mean: TableCell;
  /** By which it is drawn, ordered and judged. */
  by: TableCell;
}

export interface MeasureTable extends Pick<Leading<TableRow>, 'leader' | 'isChosen' | 'comparisons'> {
  columns: readonly TableColumn[];
  /** In the order they are shown in, group by group. */
  rows: readonly TableRow[];
  /** Id of the column of `by`. */
  by: string;
  /** Larger numbers are better. */
  isAccuracy: boolean;
}

const NO_CELL: TableCell = {
  ...{ state: 'none', value: null, unit: 'perplexity', margin: null, apart: null, texts: [], count: 0 },
  ...{ stamp: '', measured: null, error: null, tuned: null, choosing: null, isElsewhere: false, gap: null },
};

/** Key of a cell. */
export function cellKey(column: string, part: Part, target: string): string {
  return `${column} ${part} ${target}`;
}

/** Of a column that is no text of the person's. */
const NOT_CUT = { characters: 0, isWhole: false };

/** The chosen texts and tasks; without a text those that the contributors generated. */
export function tableColumns({ texts, amount, found, tasks }: MeasureSlice): TableColumn[] {
  const chosen = texts
    .filter((text) => text.chosen)
    .map(
      (text): TableColumn => ({
        ...{ id: text.id, kind: 'text', name: text.name, key: text.sha256[amount], parts: TEXT_PARTS },
        characters: partStretches(text, amount).reduce(
          (sum, of) => sum + ('text' in of ? of.text.length : 0),
          0,
        ),
        isWhole: partStretches(text, amount, 'tuning') === partStretches(text, amount),
      }),
    );
  const own = found?.own ? found.texts : [];
  const generated = own.map(({ name }): TableColumn => {
    const id = generatedKey(name);
    return { ...NOT_CUT, ...{ id, kind: 'generated', key: id, parts: TEXT_PARTS }, name: lastName(name) };
  });
  const scored = chosenTaskNames(tasks).map(({ name, sha256 }): TableColumn => {
    const isCut = found?.texts.some((text) => text.kind === 'task' && text.name === name);
    const key = JSON.stringify([name, sha256 ?? '', tasks.limit, tasks.fewshot]);
    const parts: readonly Part[] = isCut ? TEXT_PARTS : ['all'];
    return { ...NOT_CUT, ...{ id: `task ${name}`, kind: 'task', name, key, parts } };
  });
  return [...(chosen.length > 0 ? chosen : generated), ...scored];
}

/** Key of the text of a contributor. */
export const generatedKey = (name: string) => `generated ${name}`;

/** The contributor’s name in `base+adapter`, without its folders. */
const lastName = (id: string) => shortName(id.split('+').at(-1)!);

/** @param rows who can be measured */
export function measureTable(rows: readonly EvaluationRow[], measure: MeasureSlice): MeasureTable {
  const columns = tableColumns(measure);
  const by = columns.some(({ id }) => id === measure.by) ? measure.by : MEAN;
  const isAccuracy = columns.find(({ id }) => id === by)?.kind === 'task';
  const isText = columns.map(({ kind }) => kind !== 'task');
  const made = rows.map((row): TableRow => {
    const cells = columns.map((column) => tableCell(row, column, measure));
    const mean = meanCell(cells.filter((_, c) => isText[c]));
    return { row, cells, mean, by: by === MEAN ? mean : cells[columns.findIndex(({ id }) => id === by)]! };
  });
  const known = mostKnown(made).map(contender);
  const { report, rows: tried = [] } = measure.found ?? {};
  const best = tried.find(({ id }) => id === report?.best);
  // taken over, it is the row of the recipe
  const chosen = known.find(({ own }) => best && targetKey(own.row.target) === targetKey(best.target));
  const { leader: first, isChosen, comparisons } = leading(known, chosen);
  const leader = first?.own;
  const compared = made.map((own): TableRow => {
    if (!leader) return own;
    const against = (cell: TableCell, other: TableCell) => {
      const isElsewhere = cell.state === 'done' && other.state === 'done' && cell.stamp !== other.stamp;
      // rivals were compared on more text
      const same = other.choosing?.map((blocks, t) => blocks.slice(0, cell.texts[t]?.length));
      const gap =
        isElsewhere && partIn(cell) === 'choosing' && same ? pairedDifference(cell.texts, same) : null;
      return { ...cell, apart: apartOf(cell, other, comparisons), isElsewhere, gap };
    };
    const cells = own.cells.map((cell, c) => against(cell, leader.cells[c]!));
    const mean = against(own.mean, leader.mean);
    return { ...own, cells, mean, by: against(own.by, leader.by) };
  });
  const value = ({ by: { texts, gap } }: TableRow) =>
    gap?.mean ?? (texts.length > 0 ? meanLoss(texts).mean : Number.POSITIVE_INFINITY);
  const groups = ['runs', 'tried', 'models'];
  const order = (a: TableRow, b: TableRow) =>
    groups.indexOf(a.row.group) - groups.indexOf(b.row.group) ||
    (a.row.group === 'tried' && Number(a.by.isElsewhere) - Number(b.by.isElsewhere)) ||
    (a.row.group === 'tried' && value(a) !== value(b) ? value(a) - value(b) : 0);
  const lead = compared[made.indexOf(leader!)] ?? null;
  return { columns, rows: compared.toSorted(order), by, isAccuracy, leader: lead, isChosen, comparisons };
}

function tableCell(row: EvaluationRow, column: TableColumn, measure: MeasureSlice): TableCell {
  const target = targetKey(row.target);
  const { parts } = column;
  const keys = parts.map((part) => cellKey(column.key, part, target));
  const known = keys.map((key) => measure.cells.get(key));
  const at = known.findLastIndex((cell) => cell && 'blocks' in cell);
  const measured = known[at];
  if (measured && 'blocks' in measured) {
    const stamp = `${parts[at]} ${measured.score?.info.dataset ?? ''}`;
    const lossesOn = (part: Part) => {
      const own = measure.cells.get(cellKey(column.key, part, target));
      return own && 'blocks' in own ? [own.blocks] : null;
    };
    const isTuned = measure.found?.rows.some((of) => of.tried > 1 && targetKey(of.target) === target);
    const tuned = isTuned && parts[at] !== 'tuning' ? lossesOn('tuning') : null;
    return numberOf([measured.blocks], column.kind === 'task' ? 'accuracy' : 'perplexity', {
      ...{ stamp, measured, tuned, choosing: lossesOn('choosing') },
    });
  }
  if (keys.some((key) => measure.running.has(key))) return { ...NO_CELL, state: 'running' };
  const failed = known.find((cell) => cell);
  const error = failed && 'error' in failed ? failed.error : (row.tried?.error ?? null);
  return error ? { ...NO_CELL, state: 'failed', error } : NO_CELL;
}

/** Perplexity or accuracy of losses. */
export function lossScore(texts: TableCell['texts'], unit: TableCell['unit']): number {
  const { mean } = meanLoss(texts);
  return unit === 'accuracy' ? 1 - mean : Math.exp(mean);
}

function numberOf(
  texts: TableCell['texts'],
  unit: TableCell['unit'],
  rest: Pick<TableCell, 'stamp' | 'measured' | 'tuned' | 'choosing'>,
): TableCell {
  const loss = meanLoss(texts);
  const value = lossScore(texts, unit);
  const count = texts.flat().reduce((sum, { tokens }) => sum + tokens, 0);
  return {
    ...NO_CELL,
    ...{ state: 'done', value, unit, texts, count, ...rest },
    margin: halfOf(loss, unit, value),
  };
}

/** Half the width of the interval: of losses that of a perplexity is as many times as large. */
function halfOf(loss: Estimate, unit: TableCell['unit'], value: number, comparisons = 1): number | null {
  const half = margin(loss, comparisons);
  return half === null || unit === 'accuracy' ? half : half * value;
}

function meanCell(cells: readonly TableCell[]): TableCell {
  const [first] = cells;
  if (!first || cells.length === 1) return first ?? NO_CELL;
  const state = (['running', 'none', 'failed'] as const).find((one) => cells.some((c) => c.state === one));
  if (state) return { ...NO_CELL, state, error: cells.find(({ error }) => error)?.error ?? null };
  const stamp = cells.map((cell) => cell.stamp).join();
  const on = (part: 'tuned' | 'choosing') =>
    cells.every((cell) => cell[part]) ? cells.flatMap((cell) => cell[part]!) : null;
  const rest = { stamp, measured: null, tuned: on('tuned'), choosing: on('choosing') };
  return numberOf(
    cells.flatMap(({ texts }) => texts),
    'perplexity',
    rest,
  );
}

function apartOf(cell: TableCell, other: TableCell, comparisons: number): number | null {
  const isSame = cell.state === 'done' && other.state === 'done' && cell.stamp === other.stamp;
  if (!isSame || cell.texts === other.texts) return null;
  const estimate = pairedDifference(cell.texts, other.texts);
  return estimate && halfOf(estimate, cell.unit, cell.value!, comparisons);
}

/** The part of the text, or of the items, that a number is of. */
export const partIn = ({ stamp }: TableCell) => stamp.split(' ')[0] as Part;

/** A number of what merges are chosen by, which says less than what is reported. */
export const isOfChoice = (cell: TableCell) => ['tuning', 'choosing'].includes(partIn(cell));

/** Rows of which most is known of those with a merge, all measured on the same. */
export function mostKnown(rows: readonly TableRow[]): TableRow[] {
  const rank = ({ by }: TableRow) => [...TEXT_PARTS, 'all'].indexOf(partIn(by));
  const merges = rows.filter(({ row, by }) => row.group !== 'models' && by.state === 'done');
  const most = merges.toSorted((a, b) => rank(b) - rank(a))[0]?.by.stamp;
  return rows.filter(({ by }) => by.state === 'done' && by.stamp === most);
}

/** A row as a merge is compared with. */
export const contender = (own: TableRow): Contender & { own: TableRow } => ({
  ...{ own, label: own.row.label, texts: own.by.texts },
  kind: own.row.group !== 'models' ? 'merge' : own.row.id === 'base' ? 'base' : 'contributor',
});

// Of one merge alone.

/** Perplexity of the merge of a recipe over the columns of the table, as `6.42`, or null. */
export function runPerplexity({ measure }: { measure: MeasureSlice }, recipe: Recipe): string | null {
  if (measure.cells.size === 0) return null;
  const texts = tableColumns(measure).filter(({ kind }) => kind !== 'task');
  const target = targetKey({ recipe });
  const blocks = texts.flatMap(({ key }) => {
    const cell = measure.cells.get(cellKey(key, 'reporting', target));
    return cell && 'blocks' in cell ? [cell.blocks] : [];
  });
  if (blocks.length === 0 || blocks.length < texts.length) return null;
  return Math.exp(meanLoss(blocks).mean).toFixed(2);
}

// What is missing, and how long it takes.

export interface MissingCell {
  row: EvaluationRow;
  column: TableColumn;
}

/** Cells without a number on what is reported. */
export function missingCells({ columns, rows }: Pick<MeasureTable, 'columns' | 'rows'>): MissingCell[] {
  return rows.flatMap(({ row, cells }) =>
    columns.flatMap((column, c) => {
      const { state, stamp, measured } = cells[c]!;
      const isThere = state === 'running' || (stamp.startsWith(column.parts.at(-1)!) && !measured?.partial);
      return isThere ? [] : [{ row, column }];
    }),
  );
}

/** Seconds that these cells take, by what was measured so far; null before the first. */
export function expectedSeconds(
  missing: readonly MissingCell[],
  { rows, columns }: MeasureTable,
): number | null {
  const pace = (kind: TableColumn['kind']) => {
    let [work, seconds] = [0, 0];
    for (const { cells } of rows) {
      for (const [c, { measured, count }] of cells.entries()) {
        if (columns[c]!.kind !== kind || !measured || measured.seconds === 0) continue;
        work += kind === 'task' ? count : columns[c]!.characters;
        seconds += measured.seconds;
      }
    }
    return seconds > 0 ? work / seconds : 0;
  };
  const counts = new Map(
    columns.map(({ id }, c) => [id, Math.max(...rows.map((own) => own.cells[c]!.count))]),
  );
  return secondsLeft(
    ...(['text', 'task'] as const).map((kind) => ({
      perSecond: pace(kind),
      left: missing
        .filter(({ column }) => column.kind === kind)
        .reduce((sum, { column }) => sum + (kind === 'task' ? counts.get(column.id)! : column.characters), 0),
    })),
  );
}

/** Different errors of the table, each with the rows it befell. */
export function tableErrors(rows: readonly TableRow[]): { rows: string[]; error: ErrorReport }[] {
  const found = new Map<string, { rows: string[]; error: ErrorReport }>();
  for (const { row, cells } of rows) {
    for (const { error } of cells) {
      if (!error) continue;
      const entry = found.get(`${error.code} ${error.message}`) ?? { rows: [], error };
      if (!entry.rows.includes(row.label)) entry.rows.push(row.label);
      found.set(`${error.code} ${error.message}`, entry);
    }
  }
  return [...found.values()];
}
