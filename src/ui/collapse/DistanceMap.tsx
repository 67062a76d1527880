// biome-ignore-all lint/a11y/useSemanticElements: a grid of coloured cells: <table> would bring its own layout.
// biome-ignore-all lint/a11y/useFocusableInteractive: one tab stop; the grid moves within by arrow keys.
import { type CSSProperties, type KeyboardEvent, memo, useMemo, useRef, useState } from 'react';
import { formatReal } from '../../formats/quantity';
import { type ColorScale, colorScale, domain } from '../charts/color-scale';
import { Legend } from '../charts/Legend';
import { realTick, type ShownMetric } from '../charts/metrics';
import { useShownTheme } from '../studio-context';

const METRIC: ShownMetric = {
  label: 'Angular distance',
  meaning:
    'arccos(cosine) / π between the residual stream at two depths: 0 the same direction, 0.5 unrelated.',
  full: { min: 0, max: null },
  diverging: false,
  absent: 'not measured',
  format: formatReal,
  tick: realTick,
  phrase: (v) => `distance ${formatReal(v)}`,
};

/** How far the stream turns from any depth to any other: (L + 1)² cells, one tab stop, arrow keys move. */
export function DistanceMap({ distance }: { distance: readonly (readonly number[])[] }) {
  const theme = useShownTheme();
  const root = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<[number, number]>([0, distance.length - 1]);
  const scale = useMemo(() => {
    const { min, max } = domain(METRIC, distance.flat(), 'full');
    return colorScale(METRIC, min, max, theme);
  }, [distance, theme]);
  const last = distance.length - 1;
  const [from, to] = [Math.min(at[0], last), Math.min(at[1], last)];
  const value = distance[from]?.[to] ?? null;
  const focus = (i: number, j: number) => {
    setAt([i, j]);
    root.current?.querySelector<HTMLElement>(`[data-at="${i},${j}"]`)?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const moves: Record<string, [number, number]> = {
      ArrowUp: [from - 1, to],
      ArrowDown: [from + 1, to],
      ArrowLeft: [from, to - 1],
      ArrowRight: [from, to + 1],
      Home: [from, 0],
      End: [from, last],
    };
    const next = moves[event.key];
    if (!next) return;
    event.preventDefault();
    const inside = (n: number) => Math.min(last, Math.max(0, n));
    focus(inside(next[0]), inside(next[1]));
  };
  const point = (target: EventTarget) => {
    const found =
      target instanceof Element ? target.closest<HTMLElement>('[data-at]')?.dataset.at : undefined;
    const [i, j] = (found ?? '').split(',').map(Number);
    if (i !== undefined && j !== undefined) setAt([i, j]);
  };
  return (
    <>
      <div
        ref={root}
        className="distance-map"
        role="grid"
        aria-label={`${METRIC.label} of the stream between depths 0 to ${last}`}
        aria-readonly="true"
        style={{ '--depths': distance.length } as CSSProperties}
        onKeyDown={onKeyDown}
        onPointerOver={(event) => point(event.target)}
        onFocus={(event) => point(event.target)}
      >
        {distance.map((row, i) => (
          <MapRow
            // biome-ignore lint/suspicious/noArrayIndexKey: a depth is its index.
            key={i}
            from={i}
            row={row}
            scale={scale}
            active={from === i ? to : null}
          />
        ))}
      </div>
      <Legend scale={scale} tick={METRIC.tick} value={value} />
      <p className="readout" aria-hidden="true">
        <span>
          before layer {Math.min(from, to)} →{' '}
          {Math.max(from, to) === last ? 'after the last' : `before layer ${Math.max(from, to)}`}
        </span>
        <span>{value === null ? '' : formatReal(value)}</span>
      </p>
    </>
  );
}

interface MapRowProps {
  from: number;
  row: readonly number[];
  scale: ColorScale;
  /** Column of the cell that Tab reaches. */
  active: number | null;
}

const MapRow = memo(function MapRow({ from, row, scale, active }: MapRowProps) {
  return (
    <div role="row" className="distance-row">
      {row.map((value, to) => (
        <span
          // biome-ignore lint/suspicious/noArrayIndexKey: a depth is its index.
          key={to}
          role="gridcell"
          className="distance-cell"
          data-at={`${from},${to}`}
          data-active={active === to || undefined}
          tabIndex={active === to ? 0 : -1}
          aria-label={`depth ${from} to depth ${to}, ${METRIC.phrase(value)}`}
          style={{ background: scale.color(value) }}
        />
      ))}
    </div>
  );
});
