import { OpenModels } from '../../ui/parts/ModelSelect';
import { Segmented } from '../../ui/parts/Segmented';
import { ToolBar } from '../../ui/parts/ToolBar';
import { useStudio, useStudioState } from '../../ui/studio-context';
import '../../ui/styles/tools.css';
import { ComparisonForm } from '../../ui/compare/ComparisonForm';
import { ComparisonResult } from '../../ui/compare/ComparisonResult';
import { editComparison } from '../../ui/compare/comparing';
import { ExtractForm } from '../../ui/compare/ExtractForm';
import { ExtractResult } from '../extract/Screen';
import { PairPicker } from '../../ui/parts/PairPicker';

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
