import '../../ui/styles/measure.css';
import '../../ui/styles/tools.css';
import { useEffect, useMemo } from 'react';
import { formatCounted, formatParameters, formatPercent, formatReal } from '../../formats/quantity';
import { signedChange } from '../../reports/conclusion';
import { optionsProblem } from '../../reports/option';
import { QUICK_CHARACTERS, scoredText } from '../../reports/text-parts';
import { TextChoice } from '../../ui/measure/TextChoice';
import { Button } from '../../ui/parts/Button';
import { Problem, ToolEnd } from '../../ui/parts/Message';
import { OneModel } from '../../ui/parts/ModelSelect';
import { NumberTable } from '../../ui/parts/NumberTable';
import { ToolForm } from '../../ui/parts/OptionsForm';
import { SavedFiles, SaveTo } from '../../ui/parts/SavedFiles';
import { type Cost, Costs, Section, Sentences } from '../../ui/parts/Section';
import { ToolBar, ToolHead } from '../../ui/parts/ToolBar';
import { whyNoTool } from '../../ui/state/job';
import { openSampleTexts } from '../../ui/state/measure-texts';
import { checkpointOf, choiceName, chosenModel, fileNameOf } from '../../ui/state/roles';
import type { StudioState } from '../../ui/state/studio';
import { beginTool, chooseToolModels, whyNotSaved } from '../../ui/state/tool-jobs';
import { useStudio, useStudioState } from '../../ui/studio-context';
import { layerWords, settingsProblem } from './choose-layers';
import { LayerMap, SimilarityCurve } from './LayerCharts';
import { collapseOptions, settingsOf, variantOf } from './options';
import type { Calibration, CollapseReport, CollapseStep } from './report';

/** One model made shallower: look at its layers, choose which go, write what is left. */
export function Screen() {
  const studio = useStudio();
  const model = useStudioState(modelOf);
  useEffect(() => {
    void openSampleTexts(studio);
  }, [studio]);
  return (
    <div className="stack roomy screen tool-screen">
      <OneModel
        label="Model to prune"
        value={model}
        onChange={(ref) => chooseToolModels(studio, { model: ref })}
      >
        Whole layers are dropped, or folded into the layer before them. Nothing is trained; the loss of
        quality is measured on a text of yours.
      </OneModel>
      <Section title="1 · Measure the layers">
        <TextChoice />
        <Measuring />
        <ToolBar kinds={['measureLayers']} />
      </Section>
      <Section title="2 · Choose which to remove">
        <Choosing />
      </Section>
      <Section title="3 · Write what is left">
        <Writing />
        <ToolBar kinds={['collapse']} />
        <Outcome />
      </Section>
    </div>
  );
}

/** How the model is run over the texts, and the button. */
function Measuring() {
  const studio = useStudio();
  const values = useStudioState((s) => s.tools.values.collapse);
  const quick = useStudioState((s) => s.measure.amount === 'quick');
  const why = useStudioState(whyNotMeasured);
  const job = useMeasured();
  const measure = () => {
    const state = studio.store.getState();
    const [model, layers] = [modelOf(state), layersOf(state)];
    if (model === null) return;
    const block = Math.min(values.block, (layers ?? values.block + 1) - 1);
    const curve = block >= 2 ? { curve: { block, variant: variantOf(values) } } : {};
    void beginTool(studio, 'measureLayers', { model, calibration: calibrationOf(state), ...curve });
  };
  return (
    <>
      <ToolForm tool="collapse" names={['window', 'block']} />
      <div className="row wrap apart">
        <Button variant={job?.report ? 'plain' : 'primary'} why={why} onClick={measure}>
          Measure layers
        </Button>
        <p className="small quiet whole">
          {quick
            ? `The first ${formatCounted(QUICK_CHARACTERS, 'character')} of each text are run through all layers. `
            : 'Full texts are run through all layers. '}
          Use a text of the kind that the model is for.
        </p>
      </div>
      {job ? <ToolEnd run={job} stopped="Stopped. Nothing was measured." /> : null}
    </>
  );
}

/** Planner, target and what becomes of the layers; and what would go. */
function Choosing() {
  const values = useStudioState((s) => s.tools.values.collapse);
  const layers = useStudioState(layersOf);
  const problem = useStudioState(choicesProblem);
  const measured = useMeasured()?.report ?? null;
  const settings = useMemo(() => settingsOf(values), [values]);
  return (
    <>
      <ToolForm tool="collapse" names={CHOSEN} shown={{ variant: variantOf(values) }} />
      <Problem>{problem}</Problem>
      {settings.planner === 'experts' ? (
        <p className="small quiet">Which experts of each layer go is found by running the text.</p>
      ) : (
        <LayerMap
          settings={settings}
          problem={problem}
          measured={measured}
          layers={measured?.layers ?? layers}
        />
      )}
      {measured?.curve && measured.curve.length > 0 ? (
        <SimilarityCurve curve={measured.curve} block={measured.layers - measured.curve.length + 1} />
      ) : null}
    </>
  );
}

const CHOSEN = (Object.keys(collapseOptions) as (keyof typeof collapseOptions)[]).filter(
  (name) => !['window', 'block', 'perplexity'].includes(name),
);

const nameOf = (model: string) => `${fileNameOf(model)}-collapsed`;

/** Where the shallower model goes, and the button. */
function Writing() {
  const studio = useStudio();
  const values = useStudioState((s) => s.tools.values.collapse);
  const why = useStudioState(whyNotCollapsed);
  const model = useStudioState(modelOf);
  const measured = useMeasured()?.report;
  const collapse = () => {
    if (model === null) return;
    const { perplexity } = values;
    const calibration = calibrationOf(studio.store.getState());
    const asked = { model, settings: settingsOf(values), calibration, perplexity };
    void beginTool(studio, 'collapse', asked, nameOf(model));
  };
  return (
    <div className="row wrap apart">
      <Button variant={measured ? 'primary' : 'plain'} why={why} onClick={collapse}>
        Collapse
      </Button>
      <ToolForm tool="collapse" names={['perplexity']} />
      <SaveTo name={model && nameOf(model)} />
    </div>
  );
}

/** The shallower model: removed layers, cost, files. */
function Outcome() {
  const job = useStudioState((s) => s.tools.jobs.collapse);
  if (!job) {
    return (
      <p className="quiet" role="status">
        Nothing collapsed yet. The result is a checkpoint like any other: it can be merged, compared,
        measured.
      </p>
    );
  }
  return (
    <>
      <ToolEnd run={job} stopped="Stopped. Nothing was saved." nothing="NothingToCollapse" />
      {job.report ? <CollapseCosts report={job.report} /> : null}
      <Steps steps={job.report?.steps ?? job.finished} />
      {job.saved ? <SavedFiles saved={job.saved} /> : null}
    </>
  );
}

function CollapseCosts({ report }: { report: CollapseReport }) {
  const { model, layers, parameters, removed, similarity, perplexity, notes, experts } = report;
  const items: Cost[] = [
    experts
      ? ['Experts', `${experts.before} → ${experts.after}`, 'of each layer']
      : ['Layers', `${layers.before} → ${layers.after}`, `without ${layerWords(removed)}`],
    [
      'Parameters',
      formatParameters(parameters.after),
      `${formatPercent(1 - parameters.after / parameters.before)} fewer`,
    ],
    [
      'Similarity',
      formatReal(similarity.mean),
      `cosine of what leaves, from ${formatReal(Math.min(...similarity.sequences))} to ${formatReal(Math.max(...similarity.sequences))} by window`,
    ],
    perplexity
      ? [
          'Perplexity',
          `${formatReal(perplexity.before.perplexity)} → ${formatReal(perplexity.after.perplexity)}`,
          `${perplexity.change ? `${signedChange(perplexity.change)} at 95 %, ` : ''}on the chosen texts`,
        ]
      : ['Perplexity', '–', 'not measured'],
  ];
  return (
    <>
      <ToolHead
        title={
          experts
            ? `${choiceName(model)} with fewer experts`
            : `${choiceName(model)} without ${removed.length === 1 ? 'layer' : 'layers'} ${layerWords(removed)}`
        }
        report={report}
      />
      <Costs items={items} />
      <Sentences words={notes} />
    </>
  );
}

/** Attempts of the greedy search, in order. */
function Steps({ steps }: { steps: readonly CollapseStep[] }) {
  if (steps.length === 0) return null;
  return (
    <details open={steps.length <= 12}>
      <summary className="small quiet">What was tried: {steps.length}</summary>
      <NumberTable
        heads={['layer', 'takes in', 'similarity', 'kept', 'layers']}
        rows={steps.map(({ layer, count, similarity, accepted, layers }, i) => ({
          key: i,
          cells: [
            ...[layer, count, similarity === null ? 'not finite' : formatReal(similarity)],
            ...[accepted ? 'yes' : 'no', layers],
          ],
        }))}
      />
    </details>
  );
}

/** Measurement of the chosen model; undefined where it belongs to another. */
function useMeasured() {
  const model = useStudioState(modelOf);
  const job = useStudioState((s) => s.tools.jobs.measureLayers);
  return job?.request.model === model ? job : undefined;
}

/** The model whose layers are looked at. */
function modelOf(state: StudioState): string | null {
  return chosenModel(state, state.tools.models.model);
}

/** Number of its layers, or null where its config lacks it. */
function layersOf(state: StudioState): number | null {
  const model = modelOf(state);
  return model === null ? null : (checkpointOf(state.models, model)?.layers ?? null);
}

/** The chosen texts, each run separately. */
function calibrationOf({ measure, tools }: StudioState): Calibration {
  const texts = measure.texts.filter((t) => t.chosen).map((t) => scoredText(t.text, measure.amount));
  return { input: { texts }, window: tools.values.collapse.window };
}

/** Why layers cannot be measured now, or null. */
function whyNotMeasured(state: StudioState): string | null {
  const { measure, tools } = state;
  if (modelOf(state) === null) return 'Open a model first.';
  const busy = whyNoTool(state);
  if (busy !== null) return busy;
  if (measure.opening === 'opening') return 'Opening the sample texts…';
  if (!measure.texts.some((t) => t.chosen)) return 'Choose a text first: the model is run over it.';
  return optionsProblem(collapseOptions, tools.values.collapse);
}

/** Why nothing can be collapsed now, or null. */
function whyNotCollapsed(state: StudioState): string | null {
  return whyNotMeasured(state) ?? choicesProblem(state) ?? whyNotSaved(state);
}

/** Why these choices cannot be meant for the model, or null. */
function choicesProblem(state: StudioState): string | null {
  const layers = layersOf(state);
  const { collapse } = state.tools.values;
  const problem = optionsProblem(collapseOptions, collapse);
  return problem ?? (layers === null ? null : settingsProblem(settingsOf(collapse), layers));
}
