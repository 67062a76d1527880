import { scaleLinear, scaleLog } from 'd3-scale';
import type { LambdaReport } from '../../reports/importance';
import '../styles/lambda.css';

const WIDTH = 560;
const HEIGHT = 200;
const LEFT = 46;
const RIGHT = 20;
const TOP = 22;
const BOTTOM = 32;

/** The search for λ: perplexity over the values tried, the chosen one marked. The table says the same in words. */
export function LambdaPlot({ lambda }: { lambda: LambdaReport }) {
  const { chosen, curve } = lambda;
  const tried = curve.filter((point) => Number.isFinite(point.perplexity));
  const best = tried.find((point) => point.lambda === chosen);
  if (!best) return null;
  const values = tried.map((point) => point.perplexity);
  const highest = Math.max(...values);
  const x = scaleLinear()
    .domain([0, tried.at(-1)!.lambda])
    .range([LEFT, WIDTH - RIGHT]);
  // far from the valley a merge can be worse by orders of magnitude
  const far = highest > 10 * best.perplexity;
  const y = (far ? scaleLog() : scaleLinear())
    .domain([best.perplexity, Math.max(highest, best.perplexity * 1.001)])
    .nice(4)
    .range([HEIGHT - BOTTOM, TOP]);
  const words = `λ ${chosen}: perplexity ${best.perplexity.toFixed(3)}`;
  return (
    <figure className="lambda">
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`Perplexity over λ, ${tried.length} values from ${tried[0]!.lambda} to ${tried.at(-1)!.lambda}; chosen ${words}`}
      >
        {y.ticks(4).map((tick) => (
          <g key={tick}>
            <line className="lambda-grid" x1={LEFT} x2={WIDTH - RIGHT} y1={y(tick)} y2={y(tick)} />
            <text className="lambda-tick" x={LEFT - 6} y={y(tick)} dy="0.32em" textAnchor="end">
              {y.tickFormat(4)(tick)}
            </text>
          </g>
        ))}
        {x.ticks(6).map((tick) => (
          <text key={tick} className="lambda-tick" x={x(tick)} y={HEIGHT - BOTTOM + 14} textAnchor="middle">
            {tick}
          </text>
        ))}
        <text className="lambda-tick" x={(LEFT + WIDTH - RIGHT) / 2} y={HEIGHT - 3} textAnchor="middle">
          λ
        </text>
        <polyline
          className="lambda-line"
          points={tried.map((point) => `${x(point.lambda)},${y(point.perplexity)}`).join(' ')}
        />
        {tried.map((point) => (
          <circle
            key={point.lambda}
            className="lambda-point"
            cx={x(point.lambda)}
            cy={y(point.perplexity)}
            r={3.5}
          >
            <title>{`λ ${point.lambda}: perplexity ${point.perplexity.toFixed(3)}`}</title>
          </circle>
        ))}
        <circle className="lambda-chosen" cx={x(chosen)} cy={y(best.perplexity)} r={7} />
      </svg>
      <figcaption>
        Chosen: <strong>{words}</strong>, the geometric mean over{' '}
        {lambda.texts.map((t) => `${t.id} (${t.calibration})`).join(', ')}
        {lambda.reused ? '; found before with the same models and settings' : ''}.
      </figcaption>
      <details>
        <summary>As a table</summary>
        <table className="lambda-table">
          <thead>
            <tr>
              <th scope="col">λ</th>
              <th scope="col">mean</th>
              {lambda.texts.map((t) => (
                <th key={t.id} scope="col">
                  {t.id}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {curve.map((point) => (
              <tr key={point.lambda} data-chosen={point.lambda === chosen || undefined}>
                <th scope="row">{point.lambda}</th>
                <td>{point.perplexity.toFixed(3)}</td>
                {point.each.map((value, i) => (
                  <td key={lambda.texts[i]?.id ?? i}>{value.toFixed(3)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </figure>
  );
}
