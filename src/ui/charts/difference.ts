/** One heatmap less another: what a change of settings does, cell by cell. Pure. */

import { NBSP } from '../../formats/quantity';
import type { Cell, Heatmap } from './heatmap-data';
import { type Measured, mean } from './measured';
import { type Metric, realTick, valueText } from './metrics';

/** `b` − `a`, laid out as `b`; a cell that lacks a value on either side has none. */
export function differenceOf(a: Heatmap, b: Heatmap): Heatmap {
  const before = new Map(cellsOf(a).map((cell) => [cell.name, cell]));
  const minus = (cell: Cell): Cell => {
    const old = before.get(cell.name)?.measured;
    if (!cell.measured || !old)
      return { ...cell, state: cell.measured ? 'pending' : cell.state, measured: null };
    // the range of what a cell stands for is that of B alone
    const { range: _, ...place } = cell;
    return {
      ...place,
      measured: {
        value: cell.measured.value - old.value,
        weight: cell.measured.weight,
        error: cell.measured.error + old.error,
      },
    };
  };
  const rows = b.rows.map(({ cells, ...row }) => {
    const changed = cells.map((cell) => cell && minus(cell));
    return { ...row, cells: changed, mean: mean(changed.map((cell) => cell?.measured)) };
  });
  const loose = b.loose.map(minus);
  const all = [...rows.flatMap((row) => row.cells), ...loose];
  return { rows, loose, mean: mean(all.map((cell) => cell?.measured)) };
}

/** `b` − `a` of one tensor, with the error of both. */
export function differenceText(metric: Metric, a: Measured, b: Measured): string {
  const error = a.error + b.error;
  return valueText(differenceMetric(metric), { value: b.value - a.value, weight: b.weight, error });
}

/** A metric's differences as a metric of their own: signed, colored around 0. */
export function differenceMetric(metric: Metric): Metric {
  const signed = (text: (value: number) => string) => (value: number) =>
    value > 0 ? `+${text(value)}` : text(value);
  const points = (value: number) => `${(value * 100).toFixed(1).replace('-', '\u2212')}${NBSP}pp`;
  const format = metric.isShare ? points : metric.format;
  const { short = metric.format } = metric;
  return {
    ...metric,
    meaning: 'B minus A.',
    full: { min: -1, max: 1 },
    diverging: true,
    format: signed(format),
    tick: signed(metric.isShare ? (value) => `${realTick(value * 100)}${NBSP}pp` : metric.tick),
    short: signed((value) => short(value).replace('-', '\u2212')),
    phrase: (value) => (value === 0 ? 'no difference' : `${signed(format)(value)} against A`),
  };
}

function cellsOf(map: Heatmap): Cell[] {
  return [...map.rows.flatMap((row) => row.cells.flatMap((cell) => cell ?? [])), ...map.loose];
}
