import { formatReal } from '../../formats/quantity';
import { LinePlot } from '../charts/LinePlot';
import { measuredFront } from '../state/measure-plot';
import type { MeasureTable } from '../state/measure-table';

/** The merges that none is better than on one of two texts or tasks without being worse on the other; nothing where there are not two. */
export function FrontPlot({ table }: { table: MeasureTable }) {
  const front = measuredFront(table);
  if (!front) return null;
  const [first, second] = front.columns;
  const points = front.points.map(({ label, values: [x, y] }) => ({
    ...{ x, y, words: `${label}: ${formatReal(x)}, ${formatReal(y)}` },
  }));
  const ends = (of: readonly number[]) => [Math.min(...of), Math.max(...of)] as const;
  const at = Math.max(
    0,
    front.points.findIndex(({ isLeader }) => isLeader),
  );
  return (
    <figure className="measure-front">
      <LinePlot
        {...{ width: 480, height: 220, left: 48, points, best: points[at]! }}
        along={ends(points.map(({ x }) => x))}
        upward={ends(points.map(({ y }) => y))}
        title={`${first.name} →, ${second.name} ↑`}
        label={`The front of ${points.length} merges between ${first.name} and ${second.name}`}
      />
      <figcaption className="small quiet">
        Merges that none beats on {first.name} without losing on {second.name}.
      </figcaption>
    </figure>
  );
}
