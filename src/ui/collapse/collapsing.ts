/** Actions of the Collapse tab: measuring layers, collapsing them. */

import { calibrationOptions } from '../../collapse/options';
import { errorReport } from '../../errors';
import type { Calibration, CollapseProgress, CollapseReport } from '../../reports/collapse';
import { isInRange } from '../../reports/option';
import { scoredText } from '../state/evaluation-texts';
import { ended, runTool, whyNoTool } from '../state/job';
import { tensorProgress } from '../state/job-state';
import { fileNameOf } from '../state/model-choices';
import { chooseDestination } from '../state/run';
import { savedOutput, whyNotSaved } from '../state/saved-output';
import type { Studio } from '../state/studio';
import type { StudioState } from '../state/studio-state';
import type { Collapsed, CollapseSlice, Survey } from './collapse-state';
import { choicesProblem, collapseModel, layersOf, plannerOf, variantOf } from './planning';

export function editCollapse(studio: Studio, change: Partial<CollapseSlice>): void {
  studio.store.setState((s) => ({ collapse: { ...s.collapse, ...change } }));
}

/** Chooses a layer on the map, or lets go of it; from then on layers are chosen by hand. */
export function toggleLayer(studio: Studio, layer: number): void {
  const { manual } = studio.store.getState().collapse;
  const next = manual.includes(layer) ? manual.filter((l) => l !== layer) : [...manual, layer];
  editCollapse(studio, { planner: 'manual', manual: next.sort((a, b) => a - b) });
}

/** Why layers cannot be measured now, or null. */
export function whyNotSurveyed(state: StudioState): string | null {
  if (collapseModel(state) === null) return 'Open a model first.';
  return whyNoTool(state) ?? textProblem(state) ?? windowProblem(state.collapse);
}

/** Why nothing can be collapsed now, or null. */
export function whyNotCollapsed(state: StudioState): string | null {
  const { collapse, models } = state;
  const model = collapseModel(state);
  if (model === null) return 'Open a model first.';
  const needsText = collapse.planner !== 'manual';
  return (
    whyNoTool(state) ??
    choicesProblem(collapse, layersOf(models, model)) ??
    (needsText ? textProblem(state) : null) ??
    windowProblem(collapse) ??
    whyNotSaved(state)
  );
}

function textProblem({ evaluation }: StudioState): string | null {
  if (evaluation.opening === 'opening') return 'Opening the sample texts…';
  return evaluation.texts.some((t) => t.chosen) ? null : 'Choose a text first: the model is run over it.';
}

function windowProblem({ window }: CollapseSlice): string | null {
  const { window: option } = calibrationOptions;
  return isInRange(option, window) ? null : `The window is a whole number of tokens from ${option.min}.`;
}

/** The chosen texts, each run by itself; undefined where none is chosen. */
function calibrationOf({ evaluation, collapse }: StudioState): Calibration | undefined {
  const texts = evaluation.texts.filter((t) => t.chosen).map((t) => scoredText(t.text, evaluation.amount));
  return texts.length === 0 ? undefined : { input: { texts }, window: collapse.window };
}

/** Measures what every layer does to the stream. Never rejects. */
export async function surveyLayers(studio: Studio): Promise<void> {
  const state = studio.store.getState();
  const model = collapseModel(state);
  const calibration = calibrationOf(state);
  if (model === null || !calibration || whyNotSurveyed(state) !== null) return;
  const { collapse, engine } = state;
  const layers = layersOf(state.models, model);
  const block = layers === null ? collapse.curveBlock : Math.min(collapse.curveBlock, layers - 1);
  const curve = block >= 2 ? { curve: { block, variant: variantOf(collapse), parts: collapse.parts } } : {};
  const started: Survey = { model, status: 'running', report: null, error: null };
  editCollapse(studio, { survey: started });
  const outcome = await runTool(
    studio,
    'survey',
    (onProgress) =>
      studio.worker.measureDepth({ model, engine: engine.choice, calibration, ...curve }, onProgress),
    tensorProgress,
  );
  editCollapse(studio, { survey: { ...started, ...ended(outcome) } });
}

/** Collapses layers and writes the shallower model. Never rejects. */
export async function collapseLayers(studio: Studio): Promise<void> {
  const state = studio.store.getState();
  const model = collapseModel(state);
  if (model === null || whyNotCollapsed(state) !== null) return;
  const { collapse, engine } = state;
  const calibration = calibrationOf(state);
  const started: Collapsed = { model, status: 'running', steps: [], report: null, saved: null, error: null };
  try {
    const destination = await chooseDestination(studio, collapse.name ?? collapseName(model));
    if (!destination) return;
    editCollapse(studio, { outcome: started });
    const outcome = await runTool(
      studio,
      'collapse',
      (onProgress) =>
        studio.worker.collapse(
          {
            ...{ model, engine: engine.choice, destination, planner: plannerOf(collapse) },
            ...{ variant: variantOf(collapse), parts: collapse.parts },
            ...(calibration ? { calibration } : {}),
            ...(collapse.perplexity ? {} : { evaluation: null }),
          },
          onProgress,
        ),
      tensorProgress,
      ({ finished: steps }: CollapseProgress) =>
        studio.store.setState(({ collapse: c }) =>
          c.outcome && steps.length > 0
            ? { collapse: { ...c, outcome: { ...c.outcome, steps: [...c.outcome.steps, ...steps] } } }
            : {},
        ),
    );
    const files = 'value' in outcome ? filesOf(outcome.value) : [];
    const steps = studio.store.getState().collapse.outcome?.steps ?? [];
    const saved = files.length > 0 ? savedOutput(destination, files) : null;
    editCollapse(studio, { outcome: { ...started, steps, saved, ...ended(outcome) } });
  } catch (thrown) {
    editCollapse(studio, { outcome: { ...started, status: 'failed', error: errorReport(thrown) } });
  }
}

/** A name for the shallower model: `base-collapsed`. */
export function collapseName(model: string): string {
  return `${fileNameOf(model)}-collapsed`;
}

function filesOf({ shards, files }: CollapseReport) {
  return [
    ...shards.map(({ file, bytes, hash }) => ({ name: file, bytes, hash })),
    ...files.map((name) => ({ name })),
  ];
}
