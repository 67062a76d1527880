import { Slider } from 'radix-ui';

interface NumberSliderProps {
  value: number;
  min: number;
  max: number;
  step: number;
  label: string;
  describedBy?: string | undefined;
  onChange(value: number): void;
}

/** A slider that fills from 0 where 0 lies within it, so that a negative weight looks negative. */
export function NumberSlider({ value, min, max, step, label, describedBy, onChange }: NumberSliderProps) {
  const at = (v: number) => (100 * (Math.min(max, Math.max(min, v)) - min)) / (max - min);
  const origin = at(0);
  const left = Math.min(origin, at(value));
  return (
    <Slider.Root
      className="slider"
      min={min}
      max={max}
      step={step}
      value={[Math.min(max, Math.max(min, value))]}
      onValueChange={([next]) => next !== undefined && onChange(Number(next.toFixed(10)))}
    >
      <Slider.Track className="slider-track">
        <span
          className="slider-fill"
          style={{ left: `${left}%`, width: `${Math.abs(at(value) - origin)}%` }}
        />
        {min < 0 && max > 0 ? <span className="slider-zero" style={{ left: `${origin}%` }} /> : null}
      </Slider.Track>
      <Slider.Thumb className="slider-thumb" aria-label={label} aria-describedby={describedBy} />
    </Slider.Root>
  );
}
