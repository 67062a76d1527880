/** What follows from the table of the Measure tab, in a sentence. Pure. */
import { formatCount, formatCounted } from '../../formats/quantity';
import { type Conclusion, conclusion as concluded } from '../../reports/conclusion';
import { decimalsOf } from './measure-plot';
import { MEAN } from './measure-state';
import { contender, type MeasureTable, mostKnown, partIn, type TableRow } from './measure-table';

/** What can be said of a merge of the table, its leader if none is named; null before it was measured. */
export function conclusion(
  table: MeasureTable,
  id = table.leader?.row.id,
): Conclusion<{ own: TableRow }> | null {
  const all = mostKnown(table.rows).map(contender);
  const of = all.find(({ own }) => own.row.id === id);
  const leader = all.find(({ own }) => own.row.id === table.leader?.row.id);
  if (!of || !leader) return null;
  const left = table.rows.filter(
    ({ row, by }) => row.group !== 'models' && by.isElsewhere && partIn(by) === 'choosing',
  ).length;
  const values = all.map(({ own }) => own.by);
  const digit = 10 ** -decimalsOf(table, values) / (table.isAccuracy ? 1 : leader.own.by.value!);
  return concluded(of, { ...table, all, leader, scope: scopeWords(table), left, least: digit / 2 });
}

/** `on 4 × 1 500 characters`. */
function scopeWords({ columns, by, leader }: MeasureTable): string {
  const own = columns.filter(({ id, kind }) => (by === MEAN ? kind !== 'task' : id === by));
  const [first] = own;
  const { count } = leader!.by;
  const part = partIn(leader!.by);
  const of = part !== 'reporting' && part !== 'all' && part ? ` of the ${part} part` : '';
  if (first?.kind === 'task') return `on ${formatCounted(count, 'item')}${of}`;
  if (first?.kind === 'generated') {
    return `on ${formatCounted(count, 'token')}${of} that the contributors generated`;
  }
  const lengths = own.map((column) => column.characters);
  const [least, most] = [Math.min(...lengths), Math.max(...lengths)];
  const characters = `${least < 0.9 * most ? `${formatCount(least)}–` : ''}${formatCount(most)}`;
  return own.length > 1
    ? `on ${own.length}\u00a0×\u00a0${characters}\u00a0characters${of}`
    : `on ${first!.isWhole ? 'all ' : ''}${characters} characters${of || ` of ${first!.name}`}`;
}
