import { type KeyboardEvent, type PointerEvent, useRef } from 'react';

interface NumberSliderProps {
  value: number;
  min: number;
  max: number;
  step: number;
  label: string;
  describedBy?: string | undefined;
  onChange(value: number): void;
}

/** Which way a key moves, in steps; Shift makes an arrow ten. */
const STEPS_OF_KEYS = new Map([
  ['ArrowRight', 1],
  ['ArrowUp', 1],
  ['ArrowLeft', -1],
  ['ArrowDown', -1],
  ['PageUp', 10],
  ['PageDown', -10],
  ['Home', Number.NEGATIVE_INFINITY],
  ['End', Number.POSITIVE_INFINITY],
]);

/** Width of the thumb, which stays within the track: as in `controls.css`. */
const THUMB = 14;

/**
 * A slider that fills from 0 where 0 lies within it, so that a negative weight looks negative. Its box has a layout of
 * its own (`contain` in the style sheet): a step lays out nothing else of the page.
 */
export function NumberSlider({ value, min, max, step, label, describedBy, onChange }: NumberSliderProps) {
  const thumb = useRef<HTMLSpanElement>(null);
  const shown = Math.min(max, Math.max(min, value));
  const at = (v: number) => (100 * (v - min)) / (max - min);
  const origin = at(Math.min(max, Math.max(min, 0)));
  const moveTo = (wanted: number) => {
    const within = Math.min(max, Math.max(min, wanted));
    const next = Number(Math.min(max, min + Math.round((within - min) / step) * step).toFixed(10));
    if (next !== shown) onChange(next);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const steps = STEPS_OF_KEYS.get(event.key);
    if (steps === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    moveTo(shown + steps * step * (event.shiftKey && event.key.startsWith('Arrow') ? 10 : 1));
  };
  const follow = (event: PointerEvent) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    if (width > THUMB) moveTo(min + ((event.clientX - left - THUMB / 2) / (width - THUMB)) * (max - min));
  };
  return (
    <div className="slider">
      <div
        className="slider-box"
        onPointerDown={(event) => {
          if (event.button !== 0) return;
          event.preventDefault();
          event.currentTarget.setPointerCapture(event.pointerId);
          thumb.current?.focus();
          if (event.target !== thumb.current) follow(event);
        }}
        onPointerMove={(event) => {
          if (event.currentTarget.hasPointerCapture(event.pointerId)) follow(event);
        }}
      >
        <span className="slider-track" />
        <span
          className="slider-fill"
          style={{ left: `${Math.min(origin, at(shown))}%`, width: `${Math.abs(at(shown) - origin)}%` }}
        />
        {min < 0 && max > 0 ? <span className="slider-zero" style={{ left: `${origin}%` }} /> : null}
        {/* the thumb stands at the end of what is as wide as it has come: to be placed from a side lays out the page */}
        <span className="slider-way">
          <span className="slider-come" style={{ width: `${at(shown)}%` }}>
            <span
              ref={thumb}
              className="slider-thumb"
              role="slider"
              tabIndex={0}
              aria-label={label}
              aria-describedby={describedBy}
              aria-orientation="horizontal"
              aria-valuemin={min}
              aria-valuemax={max}
              aria-valuenow={shown}
              onKeyDown={onKeyDown}
            />
          </span>
        </span>
      </div>
    </div>
  );
}
