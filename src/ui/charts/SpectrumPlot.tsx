import { scaleLinear, scaleLog } from 'd3-scale';
import { formatReal } from '../../formats/quantity';

const WIDTH = 256;
const HEIGHT = 96;

interface SpectrumPlotProps {
  /** Descending. */
  singularValues: readonly number[];
  /** Up to here the spectrum is drawn solid: what a rank keeps, or what holds 95 % of the change. */
  mark: number;
  /** `rank 8`, `95 % of the change`. */
  markWords: string;
}

/** Singular values as bars on a logarithmic axis, the first `mark` of them solid. */
export function SpectrumPlot({ singularValues, mark, markWords }: SpectrumPlotProps) {
  const first = singularValues[0] ?? 0;
  const shown = singularValues.filter((v) => v > first * 1e-7);
  const last = shown.at(-1) ?? 0;
  if (shown.length === 0) return <p className="small quiet">The change is zero: it has no directions.</p>;
  const y = scaleLog()
    .domain([Math.min(last, first / 10), first])
    .range([4, HEIGHT]);
  const x = scaleLinear().domain([0, shown.length]).range([0, WIDTH]);
  const width = Math.max(1, WIDTH / shown.length - 1);
  return (
    <figure className="spectrum">
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Spectrum: ${shown.length} singular values from ${formatReal(first)} down to ${formatReal(last)}, on a logarithmic scale; ${markWords} at ${mark}`}
      >
        {shown.map((value, i) => (
          <rect
            // biome-ignore lint/suspicious/noArrayIndexKey: the place in the spectrum is what a bar is.
            key={i}
            className={i < mark ? 'spectrum-kept' : 'spectrum-rest'}
            x={x(i)}
            y={HEIGHT - y(value)}
            width={width}
            height={y(value)}
          />
        ))}
        {mark < shown.length ? (
          <line className="chart-cut" x1={x(mark)} x2={x(mark)} y1={0} y2={HEIGHT} />
        ) : null}
      </svg>
      <div className="axis" aria-hidden="true">
        <span>σ₁ {formatReal(first)}</span>
        <span>{markWords}</span>
        <span>
          σ{subscript(shown.length)} {formatReal(last)}
        </span>
      </div>
    </figure>
  );
}

function subscript(n: number): string {
  return [...String(n)].map((digit) => '₀₁₂₃₄₅₆₇₈₉'[Number(digit)]).join('');
}
