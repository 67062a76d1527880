import type { ColorScale } from './color-scale';

interface LegendProps {
  scale: ColorScale;
  tick(value: number): string;
  /** Marked on the ramp. */
  value: number | null;
}

/** The color ramp with its ends and a mark at one value. */
export function Legend({ scale, tick, value }: LegendProps) {
  const at = value === null ? null : (value - scale.min) / (scale.max - scale.min);
  return (
    <div className="legend">
      <span>{tick(scale.min)}</span>
      <span className="ramp" style={{ backgroundImage: `linear-gradient(90deg, ${scale.ramp.join(', ')})` }}>
        {at === null ? null : (
          <span className="ramp-mark" style={{ left: `${Math.min(1, Math.max(0, at)) * 100}%` }} />
        )}
      </span>
      <span>{tick(scale.max)}</span>
    </div>
  );
}
