import type { LambdaReport } from '../../reports/importance';
import { acrossScale, PlotAxes, PlotPoint, type PlotRoom, upwardScale } from '../charts/PlotFrame';
import '../styles/lambda.css';

const ROOM: PlotRoom = { width: 560, height: 200, left: 46, right: 20, top: 22, bottom: 32, foot: 3 };

/** The search for λ: perplexity over the values tried, the chosen one marked. The table says the same in words. */
export function LambdaPlot({ lambda }: { lambda: LambdaReport }) {
  const { chosen, curve } = lambda;
  const tried = curve.filter((point) => Number.isFinite(point.perplexity));
  const best = tried.find((point) => point.lambda === chosen);
  if (!best) return null;
  const highest = Math.max(...tried.map((point) => point.perplexity));
  const x = acrossScale(ROOM, [0, tried.at(-1)!.lambda]);
  const bounds = [best.perplexity, Math.max(highest, best.perplexity * 1.001)] as const;
  const y = upwardScale(ROOM, bounds, highest > 10 * best.perplexity, 4);
  const words = `λ ${chosen}: perplexity ${best.perplexity.toFixed(3)}`;
  return (
    <figure className="lambda">
      <svg
        className="plot-drawing"
        viewBox={`0 0 ${ROOM.width} ${ROOM.height}`}
        role="img"
        aria-label={`Perplexity over λ, ${tried.length} values from ${tried[0]!.lambda} to ${tried.at(-1)!.lambda}; chosen ${words}`}
      >
        <PlotAxes room={ROOM} x={x} y={y} along={6} up={y.ticks(4)} format={y.tickFormat(4)} title="λ" />
        <polyline
          className="plot-line"
          stroke="var(--accent)"
          points={tried.map((point) => `${x(point.lambda)},${y(point.perplexity)}`).join(' ')}
        />
        {tried.map((point) => (
          <PlotPoint
            key={point.lambda}
            x={x(point.lambda)}
            y={y(point.perplexity)}
            words={`λ ${point.lambda}: perplexity ${point.perplexity.toFixed(3)}`}
            className="lambda-point"
            fill="var(--accent)"
          />
        ))}
        <circle className="plot-ring lambda-chosen" cx={x(chosen)} cy={y(best.perplexity)} r={7} />
      </svg>
      <figcaption>
        Chosen: <strong>{words}</strong>, the geometric mean over{' '}
        {lambda.texts.map((t) => `${t.id} (${t.calibration})`).join(', ')}
        {lambda.reused ? '; found before with the same models and settings' : ''}.
      </figcaption>
      <details>
        <summary>As a table</summary>
        <table className="plain-table" data-numbers>
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
