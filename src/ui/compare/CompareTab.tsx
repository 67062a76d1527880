import { OpenModels } from '../parts/ModelSelect';
import { Segmented } from '../parts/Segmented';
import { ToolBar } from '../parts/ToolBar';
import { useStudio, useStudioState } from '../studio-context';
import '../styles/tools.css';
import { ComparisonForm } from './ComparisonForm';
import { ComparisonResult } from './ComparisonResult';
import { editComparison } from './comparing';
import { ExtractForm } from './ExtractForm';
import { ExtractResult } from './ExtractResult';
import { PairPicker } from './PairPicker';

/** Two models: how they differ, tensor by tensor, and their difference as a LoRA. */
export function CompareTab() {
  const studio = useStudio();
  const mode = useStudioState((s) => s.comparison.mode);
  return (
    <div className="screen tool-screen">
      <PairPicker />
      <div className="row wrap tool-actions">
        <Segmented
          label="What to do with the pair"
          value={mode}
          options={[
            { value: 'difference', label: 'Difference' },
            { value: 'extract', label: 'Extract a LoRA' },
          ]}
          onChange={(next) => editComparison(studio, { mode: next })}
        />
        <OpenModels />
      </div>
      {mode === 'difference' ? (
        <>
          <ComparisonForm />
          <ToolBar kinds={['comparison']} />
          <ComparisonResult />
        </>
      ) : (
        <>
          <ExtractForm />
          <ToolBar kinds={['extraction']} />
          <ExtractResult />
        </>
      )}
    </div>
  );
}
