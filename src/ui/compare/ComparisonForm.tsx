import { Button } from '../parts/Button';
import { LabelledNumber } from '../parts/LabelledNumber';
import { Problem } from '../parts/Problem';
import { SaveTo } from '../parts/SaveTo';
import { Toggle } from '../parts/Toggle';
import { whyNoTool } from '../state/job';
import { whyNotSaved } from '../state/saved-output';
import { useStudio, useStudioState } from '../studio-context';
import { compare, editComparison } from './comparing';
import { usePair } from '../parts/PairPicker';
import { pairProblem } from '../state/pair';

/** What is measured, where the report goes, and the button. */
export function ComparisonForm() {
  const studio = useStudio();
  const { threshold, top, spectra, timeEngines } = useStudioState((s) => s.comparison);
  const busy = useStudioState(whyNoTool);
  const unsaved = useStudioState(whyNotSaved);
  const webgpu = useStudioState((s) => s.engine.info?.webgpu);
  const pair = usePair();
  const problem = thresholdProblem(threshold, top);
  return (
    <div className="tool-form">
      <div className="row wrap tool-fields">
        <LabelledNumber
          label="changed above"
          name="Threshold: an element counts as changed above it"
          value={threshold}
          step={1e-6}
          min={0}
          max={1}
          invalid={problem !== null}
          onChange={(next) => editComparison(studio, { threshold: next })}
        />
        <LabelledNumber
          label="most changed"
          name="Rows of the tables of most changed tensors"
          value={top}
          min={0}
          max={10_000}
          invalid={problem !== null}
          onChange={(next) => editComparison(studio, { top: next })}
        />
        <Toggle
          label="LoRA analysis"
          title="Spectrum of every modified matrix: does the change look like a LoRA?"
          checked={spectra}
          onChange={(next) => editComparison(studio, { spectra: next })}
        />
        <Toggle
          label="Time both engines"
          title="Measures every tensor on the GPU and on the CPU: the seconds of each, and how far they disagree."
          why={
            webgpu && !webgpu.available
              ? `There is only one engine: ${webgpu.why ?? 'no WebGPU here.'}`
              : null
          }
          checked={timeEngines}
          onChange={(next) => editComparison(studio, { timeEngines: next })}
        />
      </div>
      <Problem>{problem}</Problem>
      <div className="row wrap tool-actions">
        <Button
          className="strong"
          why={busy ?? pairProblem(pair) ?? problem}
          onClick={() => void compare(studio)}
        >
          Measure difference
        </Button>
        <SaveTo what="Report files to" />
      </div>
      {unsaved ? <p className="small quiet">{unsaved} The comparison works without report files.</p> : null}
    </div>
  );
}

function thresholdProblem(threshold: number, top: number): string | null {
  if (!(threshold >= 0)) return 'The threshold is 0 or more.';
  return Number.isInteger(top) && top >= 0 ? null : 'The number of rows is a whole number from 0.';
}
