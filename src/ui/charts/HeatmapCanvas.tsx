import { memo, useLayoutEffect, useRef, useSyncExternalStore } from 'react';
import { useMedia, useShownTheme } from '../studio-context';
import { type Arrangement, heatmapLayout } from './heatmap-layout';
import { type HeatmapInks, type HeatmapPicture, paintHeatmap } from './heatmap-paint';
import type { Pixels } from './heatmap-pixels';

interface HeatmapCanvasProps extends HeatmapPicture {
  columns: number;
  arrangement: Arrangement;
}

/** The colors under the cells of a grid. The cells' labels have their meaning. */
export const HeatmapCanvas = memo(function HeatmapCanvas(props: HeatmapCanvasProps) {
  const element = useRef<HTMLCanvasElement>(null);
  const width = useRef(0);
  const inks = useRef<HeatmapInks | null>(null);
  const painted = useRef<Pixels | null>(null);
  const paint = useRef(() => {});
  const look = [
    useShownTheme(),
    useMedia('(forced-colors: active)'),
    useMedia('(prefers-contrast: more)'),
  ].join();
  const ratio = usePixelRatio();

  // biome-ignore lint/correctness/useExhaustiveDependencies: the style sheet answers to `look`.
  useLayoutEffect(() => {
    inks.current = null;
  }, [look]);

  useLayoutEffect(() => {
    paint.current = () => {
      const canvas = element.current;
      const context = canvas?.getContext('2d');
      if (!canvas || !context || width.current === 0) return;
      const layout = heatmapLayout(props.data, props.columns, width.current, props.arrangement);
      const [across, down] = [Math.round(layout.width * ratio), Math.round(layout.height * ratio)];
      if (canvas.width !== across || canvas.height !== down) {
        canvas.width = across;
        canvas.height = down;
        canvas.style.width = `${across / ratio}px`;
        canvas.style.height = `${down / ratio}px`;
      }
      inks.current ??= inksOf(canvas);
      painted.current = paintHeatmap(context, props, layout, inks.current, ratio, painted.current);
    };
    paint.current();
  });

  useLayoutEffect(() => {
    const around = element.current?.parentElement;
    if (!around) return;
    // called once at the start, and before the page is painted: no frame is without its colors
    const observer = new ResizeObserver(([entry]) => {
      width.current = entry?.contentRect.width ?? 0;
      paint.current();
    });
    observer.observe(around);
    return () => observer.disconnect();
  }, []);

  // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a canvas takes no focus.
  return <canvas ref={element} className="heat-canvas" aria-hidden="true" />;
});

function inksOf(canvas: HTMLCanvasElement): HeatmapInks {
  const { fontSize, fontFamily, color, fill, stroke } = getComputedStyle(canvas);
  return { font: `${fontSize} ${fontFamily}`, text: color, bar: fill, track: stroke };
}

/** Device pixels a CSS pixel has, now and after the page is zoomed or moved to another screen. */
function usePixelRatio(): number {
  return useSyncExternalStore(watchPixelRatio, () => devicePixelRatio);
}

function watchPixelRatio(changed: () => void): () => void {
  let list = matchMedia(`(resolution: ${devicePixelRatio}dppx)`);
  const onChange = () => {
    list = matchMedia(`(resolution: ${devicePixelRatio}dppx)`);
    list.addEventListener('change', onChange, { once: true });
    changed();
  };
  list.addEventListener('change', onChange, { once: true });
  return () => list.removeEventListener('change', onChange);
}
