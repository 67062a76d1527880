import { memo, useCallback, useDeferredValue, useRef } from 'react';
import { type Metric, type MetricId, metricById, metrics } from '../charts/metrics';
import { formatBytes, formatCounted } from '../format/quantity';
import { Button } from '../parts/Button';
import { Message } from '../parts/Message';
import { Segmented } from '../parts/Segmented';
import { REST_MS, useSettled } from '../parts/use-settled';
import { measureDeltas } from '../state/delta-statistics';
import { pinLayers, unpinLayers } from '../state/pin';
import { setView, showTab } from '../state/studio';
import { useFacts, useStudio } from '../studio-context';
import { LayersCharts } from './LayersCharts';
import { LayersExport } from './LayersExport';
import { LayersTable } from './LayersTable';
import { type LayersSource, useLayersSource } from './layers-source';

/** Layer × module charts of the last or running merge, one per contributor or pair, on one scale. */
export function LayersTab() {
  const source = useLayersSource();
  // the charts follow a slider step by step, the numbers once it rests
  const later = useDeferredValue(useSettled(source, source.state === 'predicted' ? REST_MS : 0));
  const metric = metricById(useFacts((s) => s.view.metric));
  const opening = useFacts((s) => s.opening.length > 0 || s.engine.status === 'starting');
  const failed = useFacts((s) => (s.plan.status === 'failed' ? s.plan.error : null));
  if (source.tensors.length === 0) {
    return (
      <div className="screen">
        {failed ? (
          <Message tone="error" title={failed.message} hint={failed.hint} />
        ) : (
          <div className="empty" role="status">
            <strong>{opening ? 'Opening the models…' : 'Nothing to draw yet'}</strong>
            <span>
              The chart takes its rows and columns from the plan.
              {opening ? '' : ' Complete the recipe first.'}
            </span>
          </div>
        )}
      </div>
    );
  }
  return (
    <div className="screen fill">
      <FirstError />
      <Toolbar metric={metric} source={source} />
      <LayersCharts metric={metric} source={source} />
      <LayersTable source={later} />
    </div>
  );
}

/** What keeps the recipe from being merged, where the chart would be looked at in vain. */
function FirstError() {
  const studio = useStudio();
  const problems = useFacts((s) => s.plan.facts?.problems);
  const error = problems?.find((p) => p.severity === 'error');
  if (!error) return null;
  return (
    <Message tone="error" title={error.message} hint={error.remedy}>
      <button type="button" className="link" onClick={() => showTab(studio, 'plan')}>
        See the plan
      </button>
    </Message>
  );
}

function Toolbar({ metric, source }: { metric: Metric; source: LayersSource }) {
  const latest = useRef(source);
  latest.current = source;
  const shown = useCallback(() => latest.current, []);
  const empty = source.reports.size === 0;
  return (
    <div className="layers-bar">
      <MetricChoice metric={metric.id} />
      <div className="row layers-actions">
        <PinButton empty={empty} shown={shown} />
        <LayersExport empty={empty} shown={shown} />
      </div>
      <ScaleChoice />
      <p className="small quiet layers-meaning">
        {metric.meaning} <StatusText source={source} />
      </p>
    </div>
  );
}

const MetricChoice = memo(function MetricChoice({ metric }: { metric: MetricId }) {
  const studio = useStudio();
  return (
    <div className="scroll-x layers-metric">
      <Segmented<MetricId>
        label="Metric"
        value={metric}
        options={metrics.map((m) => ({ value: m.id, label: m.label }))}
        onChange={(id) => setView(studio, { metric: id })}
      />
    </div>
  );
});

const ScaleChoice = memo(function ScaleChoice() {
  const studio = useStudio();
  const scale = useFacts((s) => s.view.scale);
  return (
    <Segmented
      label="Colour scale"
      value={scale}
      options={[
        { value: 'full', label: 'Full scale' },
        { value: 'fit', label: 'Fit' },
      ]}
      onChange={(next) => setView(studio, { scale: next })}
    />
  );
});

interface PinButtonProps {
  /** Nothing is measured yet. */
  empty: boolean;
  /** What the charts show when it is asked: the button itself does not follow a slider. */
  shown(): LayersSource;
}

/** Holds the charts as they are, to see the next setting or merge beside them. */
const PinButton = memo(function PinButton({ empty, shown }: PinButtonProps) {
  const studio = useStudio();
  const pinned = useFacts((s) => s.pinned !== null);
  if (pinned) return <Button onClick={() => unpinLayers(studio)}>Unpin A</Button>;
  return (
    <Button
      tip="Keep these charts, to see another setting or merge beside them"
      why={empty ? 'Nothing is measured yet.' : null}
      onClick={() => pinLayers(studio, shown())}
    >
      Pin as A
    </Button>
  );
});

function StatusText({ source }: { source: LayersSource }) {
  const { measured, expected, state } = source;
  if (state === 'planned') return <Unmeasured />;
  if (state === 'predicted') return <Predicted measured={measured} expected={expected} />;
  if (state === 'outdated') return <em>From the last merge; the recipe has changed since.</em>;
  if (measured < expected) {
    return (
      <em>
        {measured} of {formatCounted(expected, 'tensor')} measured.
      </em>
    );
  }
  return null;
}

/** Before anything is known: why, and what there is to do. */
function Unmeasured() {
  const studio = useStudio();
  const profile = useFacts((s) => s.profile);
  const plan = useFacts((s) => s.plan.facts);
  if (profile.status === 'measuring') return <em>Measuring the changes…</em>;
  if (profile.status === 'failed') return <em>{profile.error?.message}</em>;
  if (profile.status !== 'offered' || !plan) {
    return <em>Not measured yet: press Merge and it fills in, tensor by tensor.</em>;
  }
  const cost =
    plan.bytesToDownload > 0
      ? `downloads ${formatBytes(plan.bytesToDownload)}`
      : `reads ${formatBytes(plan.bytesToRead)}`;
  return (
    <>
      <button type="button" className="link" onClick={() => void measureDeltas(studio)}>
        Measure the changes now
      </button>{' '}
      ({cost}), or press Merge and it fills in, tensor by tensor.
    </>
  );
}

function Predicted({ measured, expected }: { measured: number; expected: number }) {
  if (measured < expected) {
    return (
      <em>
        {measured} of {formatCounted(expected, 'tensor')} measured.
      </em>
    );
  }
  return (
    <em>
      Predicted from the models’ changes: move a slider and it redraws. A merge gives the exact figures.
    </em>
  );
}
