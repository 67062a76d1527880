import { scaleLinear } from 'd3-scale';
import { formatReal } from '../../formats/quantity';

const WIDTH = 320;
const HEIGHT = 140;
const PAD = 8;
/** Room for the numbers of the axis. */
const AXIS = 30;

interface SimilarityCurveProps {
  /** Similarity with the block that begins at `layer` collapsed; null where the result is not finite. */
  curve: readonly { layer: number; similarity: number | null }[];
  block: number;
}

/** Which block would be missed least: similarity to the original over the place of the block. */
export function SimilarityCurve({ curve, block }: SimilarityCurveProps) {
  const found = curve.flatMap(({ layer, similarity }) =>
    similarity === null ? [] : [{ layer, similarity }],
  );
  if (found.length === 0) return <p className="small quiet">No block leaves a model with finite numbers.</p>;
  const values = found.map((f) => f.similarity);
  const best = found.reduce((a, b) => (b.similarity > a.similarity ? b : a));
  const [low = 0, high = 1] = scaleLinear()
    .domain([Math.min(...values), Math.max(1, ...values)])
    .nice(4)
    .domain();
  const x = scaleLinear()
    .domain([0, Math.max(1, curve.length - 1)])
    .range([AXIS + PAD, WIDTH - PAD]);
  const y = scaleLinear()
    .domain([low, high])
    .range([HEIGHT - PAD, PAD]);
  const words = curve
    .map(
      ({ layer, similarity }) =>
        `layers ${layer} to ${layer + block - 1} ${similarity === null ? 'not finite' : formatReal(similarity)}`,
    )
    .join(', ');
  return (
    <>
      <svg
        className="similarity"
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`Similarity to the original with ${block} layers as one: ${words}`}
      >
        {y.ticks(4).map((tick) => (
          <g key={tick}>
            <line className="similarity-grid" x1={AXIS} x2={WIDTH} y1={y(tick)} y2={y(tick)} />
            <text className="similarity-tick" x={AXIS - 5} y={y(tick) + 3}>
              {tick}
            </text>
          </g>
        ))}
        <polyline
          className="chart-line"
          stroke="var(--accent)"
          points={found.map((f) => `${x(f.layer)},${y(f.similarity)}`).join(' ')}
        />
        {found.map((f) => (
          <circle
            key={f.layer}
            className="similarity-point"
            data-best={f.layer === best.layer || undefined}
            cx={x(f.layer)}
            cy={y(f.similarity)}
            r={f.layer === best.layer ? 4 : 2.5}
          />
        ))}
      </svg>
      <div className="axis" aria-hidden="true">
        <span>block at layer 0</span>
        <span>{curve.length - 1}</span>
      </div>
      <p className="readout">
        <span>
          best: layers {best.layer} to {best.layer + block - 1} as one
        </span>
        <span>{formatReal(best.similarity)}</span>
      </p>
    </>
  );
}
