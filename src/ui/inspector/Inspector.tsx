import { type ReactNode, Suspense } from 'react';
import type { PlanTensor } from '../../reports/plan';
import { type LayersRun, shownRuns, useNow, useRuns, writesFactors } from '../layers/runs';
import { Button } from '../parts/Button';
import { CloseIcon } from '../parts/icons';
import { REST_MS, useDebounced } from '../parts/use-debounced';
import { NOW } from '../state/runs';
import { setView } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';
import { detailOf } from '../tool-details';
import { ModelOverview } from './ModelOverview';
import { TensorDetail } from './TensorDetail';
import { TensorRuns } from './TensorRuns';

/** The right panel: what is selected in the tab beside it, or the whole model while nothing is. */
export function Inspector() {
  const detail = detailOf(useStudioState((s) => s.view.tab));
  return detail ? <Suspense>{detail}</Suspense> : <MergeInspector />;
}

/** The selected tensor's numbers in the merge, or those of the whole model while none is selected. */
function MergeInspector() {
  const selected = useStudioState((s) => s.view.selected);
  const inLayers = useStudioState((s) => s.view.tab === 'layers');
  if (selected === null) return <WholeModel />;
  return inLayers ? <TensorOfShown name={selected} /> : <TensorOfRecipe name={selected} />;
}

function WholeModel() {
  const source = useNow();
  // it looks at every tensor: once a slider rests
  const later = useDebounced(source, source.state === 'predicted' ? REST_MS : 0);
  return (
    <Panel detail={false} open={false}>
      <ModelOverview source={later} />
    </Panel>
  );
}

/** What stands in the first column of Layers, and what the other columns have beside it. */
function TensorOfShown({ name }: { name: string }) {
  const shown = shownRuns(useRuns());
  const tensor = shown[0]?.tensors.find((t) => t.name === name);
  if (!shown[0] || !tensor) return <WholeModel />;
  return (
    <Panel detail open>
      {shown.length > 1 && !writesFactors(shown[0]) ? <TensorRuns name={name} runs={shown} /> : null}
      <TensorOf run={shown[0]} tensor={tensor} />
    </Panel>
  );
}

function TensorOfRecipe({ name }: { name: string }) {
  const now = useNow();
  // as a drawer on narrow screens it would hide half of a tab that has nothing to do with tensors
  const fits = useStudioState((s) => s.view.tab === 'plan');
  const tensor = now.tensors.find((t) => t.name === name);
  if (!tensor) return <WholeModel />;
  return (
    <Panel detail open={fits}>
      <TensorOf run={now} tensor={tensor} />
    </Panel>
  );
}

function TensorOf({ run, tensor }: { run: LayersRun; tensor: PlanTensor }) {
  return (
    <TensorDetail
      tensor={tensor}
      report={run.reports.get(tensor.name)}
      contributors={run.contributors}
      of={run.id === NOW ? null : run.name}
      factor={writesFactors(run)}
    />
  );
}

interface PanelProps {
  /** Something is selected, and can be let go. */
  detail: boolean;
  /** Shown where the panel is a drawer. */
  open: boolean;
  children: ReactNode;
}

/** The panel itself, which a tool fills for its own tab. */
export function Panel({ detail, open, children }: PanelProps) {
  const studio = useStudio();
  return (
    <aside className="inspector" aria-label="Inspector" data-open={open || undefined}>
      {detail ? (
        <Button
          variant="quiet"
          iconOnly
          className="inspector-close"
          tip="Back to the whole model"
          aria-label="Close the tensor"
          onClick={() => setView(studio, { selected: null })}
        >
          <CloseIcon />
        </Button>
      ) : null}
      {children}
    </aside>
  );
}
