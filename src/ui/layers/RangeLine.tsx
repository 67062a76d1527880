import { type Metric, valueText } from '../charts/metrics';
import { setView } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';
import { type LayersView, type Statistics, statisticsOf } from './columns';

/** Mean, spread and ends of A, B and their difference over a range of layers; the range is typed or dragged in the plot. */
export function RangeLine({ view }: { view: LayersView }) {
  const studio = useStudio();
  const layers = useStudioState((s) => s.view.layers);
  const { columns, difference, grid, metric } = view;
  const [first, last] = [grid.layers[0]?.layer ?? 0, grid.layers.at(-1)?.layer ?? 0];
  const [from, to] = layers ?? [first, last];
  const set = (next: [number, number]) =>
    setView(studio, { layers: next[0] === first && next[1] === last ? null : next });
  const rows: { label: string; metric: Metric; of: Statistics | null }[] = [
    ...columns.map(({ letter, data }) => ({
      label: letter,
      metric,
      of: statisticsOf(data, layers),
    })),
    ...(difference
      ? [{ label: 'B − A', metric: difference.metric, of: statisticsOf(difference.data, layers) }]
      : []),
  ];
  return (
    <div className="row wrap apart range-line small">
      <span className="row">
        Statistics of layers
        <input
          className="field"
          type="number"
          aria-label="First layer of the range"
          min={first}
          max={to}
          value={from}
          onChange={(event) => set([Math.max(first, Math.min(to, Number(event.target.value))), to])}
        />
        to
        <input
          className="field"
          type="number"
          aria-label="Last layer of the range"
          min={from}
          max={last}
          value={to}
          onChange={(event) => set([from, Math.min(last, Math.max(from, Number(event.target.value)))])}
        />
        {layers ? (
          <button type="button" className="link" onClick={() => setView(studio, { layers: null })}>
            all
          </button>
        ) : null}
      </span>
      {rows.map(({ label, metric, of }) =>
        of ? (
          <span key={label}>
            <strong>{label}</strong> mean {valueText(metric, of.mean)}, sd{' '}
            {metric.format(of.deviation).replace('+', '')}, {metric.format(of.least)} to{' '}
            {metric.format(of.most)}
          </span>
        ) : null,
      )}
    </div>
  );
}
