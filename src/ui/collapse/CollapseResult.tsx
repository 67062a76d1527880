import { useState } from 'react';
import { formatParameters, formatPercent, formatReal, formatSeconds } from '../../formats/quantity';
import type { CollapseReport, CollapseStep } from '../../reports/collapse';
import { Button } from '../parts/Button';
import { type Cost, Costs } from '../parts/Costs';
import { SavedFiles } from '../parts/SavedFiles';
import { Section } from '../parts/Section';
import { ToolBar } from '../parts/ToolBar';
import { ToolEnd } from '../parts/ToolEnd';
import { choiceName } from '../state/model-choices';
import { openOutput } from '../state/opened-output';
import type { SavedOutput } from '../state/saved-state';
import { notify } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';
import { CollapseButton } from './CollapseForm';
import { layerWords } from './planning';

/** The shallower model: what went, what it cost, where it is. */
export function CollapseResult() {
  const outcome = useStudioState((s) => s.collapse.outcome);
  return (
    <Section title="3 · Write what is left" className="evaluate-section">
      <CollapseButton />
      <ToolBar kinds={['collapse']} />
      {outcome ? (
        <>
          <ToolEnd run={outcome} stopped="Stopped. Nothing was saved." nothing="NothingToCollapse" />
          {outcome.report ? <CollapseCosts report={outcome.report} /> : null}
          <Steps steps={outcome.report?.steps ?? outcome.steps} />
          {outcome.saved ? <Written saved={outcome.saved} /> : null}
        </>
      ) : (
        <p className="quiet" role="status">
          Nothing collapsed yet. The result is a checkpoint like any other: it can be merged, compared,
          measured.
        </p>
      )}
    </Section>
  );
}

function CollapseCosts({ report }: { report: CollapseReport }) {
  const { model, layers, parameters, removed, similarity, perplexity, notes, seconds } = report;
  const items: Cost[] = [
    ['Layers', `${layers.before} → ${layers.after}`, `without ${layerWords(removed)}`],
    [
      'Parameters',
      formatParameters(parameters.after),
      `${formatPercent(1 - parameters.after / parameters.before)} fewer`,
    ],
    similarity
      ? ['Similarity', formatReal(similarity.mean), 'cosine of what leaves']
      : ['Similarity', '–', 'not measured'],
    perplexity
      ? [
          'Perplexity',
          `${formatReal(perplexity.before.perplexity)} → ${formatReal(perplexity.after.perplexity)}`,
          'on the chosen texts',
        ]
      : ['Perplexity', '–', 'not measured'],
    ['Time', formatSeconds(seconds), report.engine === 'webgpu' ? 'WebGPU' : 'CPU'],
  ];
  return (
    <>
      <h3 className="collapse-title" role="status">
        {choiceName(model)} without {removed.length === 1 ? 'layer' : 'layers'} {layerWords(removed)}
      </h3>
      <Costs items={items} />
      {notes.length > 0 ? (
        <ul className="findings">
          {notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      ) : null}
    </>
  );
}

/** What the greedy search tried, in order. */
function Steps({ steps }: { steps: readonly CollapseStep[] }) {
  if (steps.length === 0) return null;
  return (
    <details className="tool-more" open={steps.length <= 12}>
      <summary>What was tried: {steps.length}</summary>
      <table className="plain-table collapse-steps">
        <thead>
          <tr>
            <th scope="col">layer</th>
            <th scope="col">folded into</th>
            <th scope="col">similarity</th>
            <th scope="col">kept</th>
            <th scope="col">layers</th>
          </tr>
        </thead>
        <tbody>
          {steps.map((step, i) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: steps only come at the end.
            <tr key={i}>
              <td>{step.layer}</td>
              <td>{step.count}</td>
              <td>{step.similarity === null ? 'not finite' : formatReal(step.similarity)}</td>
              <td>{step.accepted ? 'yes' : 'no'}</td>
              <td>{step.layers}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

function Written({ saved }: { saved: SavedOutput }) {
  const studio = useStudio();
  const [opening, setOpening] = useState(false);
  const known = useStudioState((s) => s.models.some((m) => m.ref === saved.name));
  const open = async () => {
    setOpening(true);
    const ref = await openOutput(
      studio,
      saved,
      saved.files.map((f) => f.name),
    );
    setOpening(false);
    if (ref !== null)
      notify(studio, 'note', `Opened ${ref}.`, 'Choose it in a recipe, or measure how it differs.');
  };
  return (
    <>
      <SavedFiles saved={saved} />
      <div className="row">
        <Button why={known ? 'It is already open.' : opening ? 'Opening…' : null} onClick={() => void open()}>
          Open it as a model
        </Button>
      </div>
    </>
  );
}
