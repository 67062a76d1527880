import { scaleLog } from 'd3-scale';
import { formatReal } from '../../formats/quantity';

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
    .range([1 / 24, 1]);
  return (
    <BarStrip
      className="spectrum"
      heights={shown.map(y)}
      mark={mark}
      label={`Spectrum: ${shown.length} singular values from ${formatReal(first)} down to ${formatReal(last)}, on a logarithmic scale; ${markWords} at ${mark}`}
      axis={[`σ₁ ${formatReal(first)}`, markWords, `σ${subscript(shown.length)} ${formatReal(last)}`]}
    />
  );
}

interface BarStripProps {
  className: string;
  /** Shares of the height of the strip. */
  heights: readonly number[];
  /** So many are drawn solid; absent: all. */
  mark?: number;
  label: string;
  /** Words below, from end to end. */
  axis: readonly string[];
}

/** Bars side by side over all of the width. */
export function BarStrip({ className, heights, mark = heights.length, label, axis }: BarStripProps) {
  return (
    <figure className={className}>
      <svg viewBox={`0 0 ${heights.length} 1`} preserveAspectRatio="none" role="img" aria-label={label}>
        {heights.map((height, i) => (
          <rect
            // biome-ignore lint/suspicious/noArrayIndexKey: a bar is its place.
            key={i}
            className={i < mark ? 'spectrum-kept' : 'spectrum-rest'}
            x={i + 0.05}
            width={0.9}
            y={1 - height}
            height={height}
          />
        ))}
        {mark < heights.length ? <line className="chart-cut" x1={mark} x2={mark} y1={0} y2={1} /> : null}
      </svg>
      <div className="axis" aria-hidden="true">
        {axis.map((words) => (
          <span key={words}>{words}</span>
        ))}
      </div>
    </figure>
  );
}

function subscript(n: number): string {
  return [...String(n)].map((digit) => '₀₁₂₃₄₅₆₇₈₉'[Number(digit)]).join('');
}
