/** The plot of the Measure tab: a scale for all numbers of a column, and how many digits they have. Pure. */
import { paretoFront } from '../../reports/find-best';
import { meanLoss } from '../../reports/paired-error';
import type { MeasureTable, TableCell } from './measure-table';

/** A linear scale, from the least number to the largest that is not far off. */
export interface PlotScale {
  least: number;
  most: number;
}

/** So many times the median is far off: a merge that broke would leave one dot of all others. */
const FAR_OFF = 1.5;

/** The scale of all numbers with their intervals; null before two differ. */
export function plotScale({ rows }: Pick<MeasureTable, 'rows'>): PlotScale | null {
  const done = rows.flatMap(({ by }) =>
    by.value === null || by.isElsewhere ? [] : [{ value: by.value, half: by.apart ?? 0 }],
  );
  const values = done.map(({ value }) => value).sort((a, b) => a - b);
  const median = values[Math.floor((values.length - 1) / 2)] ?? 0;
  const near = done.filter(({ value }) => value <= FAR_OFF * median);
  const ends = (near.length > 1 ? near : done).flatMap(({ value, half }) => [value - half, value + half]);
  const [least, most] = [Math.min(...ends), Math.max(...ends)];
  return most > least ? { least, most } : null;
}

/** Where a number lies on the scale, in [0, 1]; null beyond its end. */
export function placeOn({ least, most }: PlotScale, value: number): number | null {
  const at = (value - least) / (most - least);
  return at > 1 ? null : Math.max(0, at);
}

/** Half the width of the interval that is shown: of the difference from the leader where there is one, else of the number. */
export const shownHalf = ({ leader }: Pick<MeasureTable, 'leader'>, { apart, margin: own }: TableCell) =>
  leader ? apart : own;

/** Decimals of a column: so many that its errors have one digit or two, and its numbers three; without an error three. */
export function decimalsOf(table: Pick<MeasureTable, 'leader'>, cells: readonly TableCell[]): number {
  const middle = (values: readonly number[]) =>
    values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)];
  const halves = cells.flatMap((cell) => shownHalf(table, cell) ?? []);
  const half = middle(halves.filter((of) => of > 0));
  const value = middle(cells.flatMap(({ value: of }) => of ?? []));
  if (half === undefined || value === undefined) return 3;
  const places = (of: number) => Math.ceil(-Math.log10(of));
  return Math.min(4, Math.max(0, places(half), 2 + places(value * 1.001)));
}

/**
 * The merges that none is better than on one of two texts, or two tasks, without being worse on the other, with both numbers,
 * from the best on the first to the best on the second; none where there are not two, or fewer than two such merges.
 */
export function measuredFront({ columns, rows }: Pick<MeasureTable, 'columns' | 'rows'>) {
  const kinds = [true, false].map((isTask) => columns.filter(({ kind }) => (kind === 'task') === isTask));
  const two = kinds.find(({ length }) => length === 2) ?? [];
  const all = rows.flatMap(({ row, cells }) => {
    const own = two.map((column) => cells[columns.indexOf(column)]!);
    const values = own.flatMap(({ value }) => value ?? []);
    const losses = own.map(({ texts }) => meanLoss(texts).mean) as [number, number];
    const isBeside = own.every(({ isElsewhere }) => !isElsewhere);
    return row.group !== 'models' && values.length === 2 && isBeside ? [{ row, values, losses }] : [];
  });
  const points = paretoFront(all);
  return { columns: two, points: points.length < 2 ? [] : points };
}
