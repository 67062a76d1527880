import '../styles/recipe-edit.css';
import { type KeyboardEvent, type PointerEvent, useRef, useState } from 'react';
import { formatCounted, formatSetting } from '../../formats/quantity';
import type { NumberSpec } from '../../merge/method';
import { Button } from '../parts/Button';
import {
  curveRange,
  curveStep,
  curveWithMorePoints,
  MOST_POINTS,
  snapped,
  withoutPoint,
} from '../state/recipe-validation';
import { useStudioState } from '../studio-context';

interface CurveEditorProps {
  points: readonly number[];
  spec: NumberSpec;
  /** `density of kitchen`. */
  label: string;
  onChange(points: number[]): void;
}

/**
 * A parameter over the layers. Points are sliders: dragged, or moved by the arrow keys (with Shift ten steps at once;
 * Left and Right go to the next point, Insert adds one between every two, Delete removes it).
 */
export function CurveEditor({ points, spec, label, onChange }: CurveEditorProps) {
  const layers = useStudioState((s) => s.plan.report?.layers ?? 0);
  const models = useStudioState((s) => Math.max(1, s.plan.contributors.length));
  const last = points.at(-1) ?? 1;
  const plot = useRef<HTMLDivElement>(null);
  // while a point is dragged the frame stays as it was
  const [frame, setFrame] = useState<{ min: number; max: number } | null>(null);
  const [shown, setShown] = useState<number | null>(null);
  const { min, max } = frame ?? curveRange(spec, points);
  const step = curveStep(spec);
  const across = (index: number) => (100 * index) / Math.max(1, points.length - 1);
  const down = (value: number) => 100 * (1 - (value - min) / (max - min));
  const set = (index: number, value: number) =>
    onChange(points.map((point, i) => (i === index ? snapped(value, spec) : point)));
  const focus = (index: number) =>
    plot.current?.querySelector<HTMLElement>(`[data-point="${index}"]`)?.focus();
  const more = () => onChange(curveWithMorePoints(points));
  const remove = (index: number) => {
    onChange(withoutPoint(points, index));
    focus(Math.min(index, points.length - 2));
  };
  const onKeyDown = (event: KeyboardEvent, index: number) => {
    const value = points[index] ?? min;
    const key = event.key === 'Backspace' ? 'Delete' : event.key;
    const to = movedBy(key, event.shiftKey ? 10 * step : step, value, { min, max });
    if (to !== null) set(index, to);
    else if (key === 'ArrowRight') focus(index + 1);
    else if (key === 'ArrowLeft') focus(index - 1);
    else if (key === 'Delete') remove(index);
    else if (key === 'Insert' && 2 * points.length - 1 <= MOST_POINTS) more();
    else return;
    event.preventDefault();
  };
  const drag = (event: PointerEvent<HTMLElement>, index: number) => {
    if (!event.currentTarget.hasPointerCapture(event.pointerId) || !plot.current) return;
    const box = plot.current.getBoundingClientRect();
    const at = Math.min(1, Math.max(0, (event.clientY - box.top) / box.height));
    set(index, max - at * (max - min));
  };
  const place = (index: number) => layerWords(index / Math.max(1, points.length - 1), layers);
  const read = shown !== null && points[shown] !== undefined ? shown : null;
  return (
    <fieldset className="curve" aria-label={`${label} over the layers`}>
      <div className="curve-plot" ref={plot}>
        <svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">
          {min < 0 && max > 0 ? (
            <line className="curve-zero" x1="0" x2="100" y1={down(0)} y2={down(0)} />
          ) : null}
          <polygon
            className="curve-area"
            points={`0,${down(Math.max(0, min))} ${line(points, across, down)} 100,${down(Math.max(0, min))}`}
          />
          <polyline className="curve-line" points={line(points, across, down)} />
        </svg>
        {points.map((value, index) => (
          <span
            // biome-ignore lint/suspicious/noArrayIndexKey: points have no other name than their place.
            key={index}
            className="curve-point"
            data-point={index}
            role="slider"
            tabIndex={0}
            aria-label={`${label}, point ${index + 1} of ${points.length}`}
            aria-orientation="vertical"
            aria-valuemin={min}
            aria-valuemax={max}
            aria-valuenow={value}
            aria-valuetext={`${formatSetting(value, step)} at ${place(index)}`}
            style={{ left: `${across(index)}%`, top: `${down(value)}%` }}
            onKeyDown={(event) => onKeyDown(event, index)}
            onPointerDown={(event) => {
              event.currentTarget.setPointerCapture(event.pointerId);
              setFrame({ min, max });
            }}
            onPointerMove={(event) => drag(event, index)}
            onLostPointerCapture={() => setFrame(null)}
            onPointerEnter={() => setShown(index)}
            onPointerLeave={() => setShown(null)}
            onFocus={() => setShown(index)}
            onBlur={() => setShown(null)}
          />
        ))}
      </div>
      <div className="axis curve-axis">
        <span>{layers > 0 ? 'layer 0' : 'first layer'}</span>
        <span className="numeric ink" aria-hidden="true">
          {read === null ? '' : `${place(read)}: ${formatSetting(points[read]!, step)}`}
        </span>
        <span>{layers > 0 ? layers - 1 : 'last'}</span>
      </div>
      <div className="row tight curve-tools">
        <span className="spacer" />
        {spec.auto ? (
          <Button
            className="little"
            tip={`LiNeS (Wang et al. 2024): from 1/${models} in the first layer up to all of it in the last, where fine-tunes differ most. In our table 1–13 % worse than one λ`}
            onClick={() => onChange([snapped(last / models, spec), last])}
          >
            LiNeS
          </Button>
        ) : null}
        <span className="small quiet">{formatCounted(points.length, 'point')}</span>
        <Button
          iconOnly
          className="little"
          aria-label={`Fewer points: ${label}`}
          why={points.length <= 2 ? 'A curve has two points at least.' : null}
          onClick={() => onChange(withoutPoint(points, points.length - 2))}
        >
          −
        </Button>
        <Button
          iconOnly
          className="little"
          aria-label={`More points: ${label}`}
          tip="A point more between every two"
          why={2 * points.length - 1 > MOST_POINTS ? `A curve has ${MOST_POINTS} points at most.` : null}
          onClick={more}
        >
          +
        </Button>
      </div>
    </fieldset>
  );
}

/** Where a key takes a point, or null for a key that moves none. */
function movedBy(key: string, by: number, value: number, { min, max }: { min: number; max: number }) {
  if (key === 'ArrowUp') return value + by;
  if (key === 'ArrowDown') return value - by;
  if (key === 'PageUp') return value + 10 * by;
  if (key === 'PageDown') return value - 10 * by;
  if (key === 'Home') return min;
  return key === 'End' ? max : null;
}

/** `layer 3`, or `between layers 2 and 3`. */
function layerWords(t: number, layers: number): string {
  if (layers < 2) return `${Math.round(100 * t)} % of the depth`;
  const at = t * (layers - 1);
  const near = Math.round(at);
  return Math.abs(at - near) < 1e-9
    ? `layer ${near}`
    : `between layers ${Math.floor(at)} and ${Math.ceil(at)}`;
}

function line(
  points: readonly number[],
  across: (index: number) => number,
  down: (value: number) => number,
): string {
  return points.map((value, i) => `${across(i)},${down(value)}`).join(' ');
}
