import { useDeferredValue } from 'react';
import { Button } from '../parts/Button';
import { CloseIcon } from '../parts/icons';
import { useLayersSource } from '../screens/layers-source';
import { setView } from '../state/studio';
import { useFacts, useStudio } from '../studio-context';
import { ModelOverview } from './ModelOverview';
import { TensorDetail } from './TensorDetail';

/** The right panel: the selected tensor's numbers, or those of the whole model while none is selected. */
export function Inspector() {
  const studio = useStudio();
  const selected = useFacts((s) => s.view.selected);
  const source = useLayersSource();
  // while a slider moves, the charts go first
  const later = useDeferredValue(source);
  const tensor = source.tensors.find((t) => t.name === selected);
  // as a drawer on narrow screens it would hide half of a tab that has nothing to do with tensors
  const fits = useFacts((s) => s.view.tab === 'plan' || s.view.tab === 'layers');
  return (
    <aside
      className="inspector"
      aria-label="Inspector"
      data-open={(tensor !== undefined && fits) || undefined}
    >
      {tensor ? (
        <>
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
          <TensorDetail
            tensor={tensor}
            report={source.reports.get(tensor.name)}
            contributors={source.contributors}
          />
        </>
      ) : (
        <ModelOverview source={later} />
      )}
    </aside>
  );
}
