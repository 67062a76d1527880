/** What follows from the table of the Measure tab, where it is outside the error of its numbers. Pure. */
import { formatCount, formatCounted } from '../../formats/quantity';
import { type Estimate, margin, verdict } from '../../reports/paired-error';
import type { EvaluationRow } from './evaluation-rows';
import { MEAN } from './measure-state';
import { difference, type MeasureTable } from './measure-table';

export interface Conclusion {
  lead: string;
  rest: string;
  /** Rows that more text might tell apart. */
  open: readonly EvaluationRow[];
}

/** What can be said of the leader; null before a merge was measured. */
export function conclusion(table: MeasureTable): Conclusion | null {
  const { leader, rows, isAccuracy } = table;
  if (!leader) return null;
  const merges = rows.filter(({ row, by }) => row.group !== 'models' && by.stamp === leader.by.stamp);
  const others = merges.filter((own) => own.row !== leader.row);
  const alike = others.filter((own) => verdict(difference(leader.by, own.by)) === 'alike');
  const base = rows.find(({ row }) => row.id === 'base');
  const against = base ? difference(leader.by, base.by) : null;
  const beside = against && verdict(against);
  const { label } = leader.row;
  const scope = scopeWords(table);
  const change = against && changeWords(against, isAccuracy);
  const standing =
    beside === null
      ? null
      : beside === 'alike'
        ? 'cannot be told apart from the base'
        : `is ${beside === 'lower' ? 'better' : 'worse'} than the base by ${change}`;
  const open = [...(beside === 'alike' ? [base!] : []), ...alike].map(({ row }) => row);
  const single = rows
    .filter(({ row, by }) => row.group === 'models' && by.stamp === leader.by.stamp)
    .find(({ row, by }) => row.id !== 'base' && verdict(difference(leader.by, by)) === 'higher');
  const alone = single ? ` ${single.row.label} alone is better.` : '';
  if (others.length === 0) {
    const rest = ` ${standing ?? 'is the only merge that was measured'}, ${scope}.${alone}`;
    return { lead: label, rest, open };
  }
  const names = alike.slice(0, 3).map(({ row }) => row.label);
  const tied =
    alike.length === 0
      ? ''
      : `${alike.length === 1 ? 'one' : alike.length} cannot be told apart from it (${names.join(', ')}${alike.length > 3 ? ', …' : ''})`;
  if (beside === 'higher') {
    const rest = `: ${label} comes nearest, worse by ${change}${tied === '' ? '' : `, and ${tied}`}, ${scope}.`;
    return { lead: `None of ${merges.length} merges is better than the base`, rest, open };
  }
  const so = `${standing === null ? '' : ` It ${standing}.`}${alone}`;
  return tied === ''
    ? { lead: `${label} is the best of ${merges.length} merges`, rest: `, ${scope}.${so}`, open }
    : { lead: `${label} leads ${merges.length} merges`, rest: `, but ${tied}, ${scope}.${so}`, open };
}

/** `7.0 ± 0.8 %` of a perplexity, `3.0 ± 2.1 points` of an accuracy. */
function changeWords(against: Estimate, isAccuracy: boolean): string {
  const ratio = Math.exp(against.mean);
  const size = 100 * Math.abs(isAccuracy ? against.mean : ratio - 1);
  const half = 100 * (margin(against) ?? 0) * (isAccuracy ? 1 : ratio);
  const digits = half >= 1 ? 0 : half >= 0.1 ? 1 : 2;
  return `${size.toFixed(digits)} ± ${half.toFixed(digits)} ${isAccuracy ? 'points' : '%'}`;
}

/** `on 4 × 1 500 characters`. */
function scopeWords({ columns, by, leader }: MeasureTable): string {
  const own = columns.filter(({ id, kind }) => (by === MEAN ? kind !== 'task' : id === by));
  const [first] = own;
  if (first?.kind === 'task') return `on ${formatCounted(leader!.by.count, 'item')}`;
  if (first?.kind === 'generated') {
    return `on ${formatCounted(leader!.by.count, 'token')} that the contributors generated`;
  }
  const characters = Math.max(...own.map((column) => column.characters));
  return `on ${own.length > 1 ? `${own.length} × ` : ''}${formatCount(characters)} characters`;
}
