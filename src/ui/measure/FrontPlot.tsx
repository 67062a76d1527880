import { formatReal } from '../../formats/quantity';
import { LinePlot } from '../charts/LinePlot';
import { measuredFront } from '../state/measure-plot';
import type { MeasureTable } from '../state/measure-table';

/** The front between two texts or tasks, a ring around the best of the table; nothing where there is none. */
export function FrontPlot({ table }: { table: MeasureTable }) {
  const { columns, points: found } = measuredFront(table);
  if (found.length === 0) return null;
  const points = found.map(({ row, values: [x, y] }) => ({
    ...{ x: x!, y: y!, row, words: `${row.label}: ${formatReal(x!)}, ${formatReal(y!)}` },
  }));
  const ends = (of: readonly number[]) => [Math.min(...of), Math.max(...of)] as const;
  const [first, second] = columns.map(({ name }) => name);
  return (
    <figure className="measure-front">
      <LinePlot
        {...{ width: 420, height: 200, left: 48, points }}
        best={points.find(({ row }) => row === table.leader?.row)}
        along={ends(points.map(({ x }) => x))}
        upward={ends(points.map(({ y }) => y))}
        title={`${first} →, ${second} ↑`}
        label={`The front between ${first} and ${second}: ${points.map(({ words }) => words).join('; ')}`}
      />
    </figure>
  );
}
