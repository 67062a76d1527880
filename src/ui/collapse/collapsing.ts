/** Actions of the Collapse tab: measuring layers, collapsing them. */

import { errorFacts } from '../../errors';
import type {
  Calibration,
  CollapseProgress,
  CollapseReport,
  MeasureDepthReport,
} from '../../reports/collapse';
import { pairName } from '../compare/pair-choices';
import { scoredText } from '../state/evaluation-texts';
import type { StudioFacts } from '../state/facts';
import { runTool, whyNoTool } from '../state/job';
import { chooseDestination } from '../state/run';
import { savedOutput, whyNotSaved } from '../state/saved-output';
import type { Studio } from '../state/studio';
import type { Collapsed, CollapseSlice, Survey } from './collapse-facts';
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
export function whyNotSurveyed(facts: StudioFacts): string | null {
  if (collapseModel(facts) === null) return 'Open a model first.';
  return whyNoTool(facts) ?? textProblem(facts) ?? windowProblem(facts.collapse);
}

/** Why nothing can be collapsed now, or null. */
export function whyNotCollapsed(facts: StudioFacts): string | null {
  const { collapse, models } = facts;
  const model = collapseModel(facts);
  if (model === null) return 'Open a model first.';
  const needsText = collapse.planner !== 'manual';
  return (
    whyNoTool(facts) ??
    choicesProblem(collapse, layersOf(models, model)) ??
    (needsText ? textProblem(facts) : null) ??
    windowProblem(collapse) ??
    whyNotSaved(facts)
  );
}

function textProblem({ evaluation }: StudioFacts): string | null {
  if (evaluation.opening === 'opening') return 'Opening the sample texts…';
  return evaluation.texts.some((t) => t.chosen) ? null : 'Choose a text first: the model is run over it.';
}

function windowProblem({ window }: CollapseSlice): string | null {
  return Number.isInteger(window) && window >= 8 ? null : 'The window is a whole number of tokens from 8.';
}

/** The chosen texts, each run by itself; undefined where none is chosen. */
function calibrationOf({ evaluation, collapse }: StudioFacts): Calibration | undefined {
  const texts = evaluation.texts.filter((t) => t.chosen).map((t) => scoredText(t.text, evaluation.amount));
  return texts.length === 0 ? undefined : { input: { texts }, window: collapse.window };
}

/** Measures what every layer does to the stream. Never rejects. */
export async function surveyLayers(studio: Studio): Promise<void> {
  const facts = studio.store.getState();
  const model = collapseModel(facts);
  const calibration = calibrationOf(facts);
  if (model === null || !calibration || whyNotSurveyed(facts) !== null) return;
  const { collapse, engine } = facts;
  const layers = layersOf(facts.models, model);
  const block = layers === null ? collapse.curveBlock : Math.min(collapse.curveBlock, layers - 1);
  const curve = block >= 2 ? { curve: { block, variant: variantOf(collapse), parts: collapse.parts } } : {};
  const started: Survey = { model, status: 'running', report: null, error: null };
  editCollapse(studio, { survey: started });
  const outcome = await runTool<CollapseProgress, MeasureDepthReport>(studio, 'survey', (onProgress) =>
    studio.engine.measureDepth({ model, engine: engine.choice, calibration, ...curve }, onProgress),
  );
  editCollapse(studio, { survey: { ...started, ...settled(outcome) } });
}

/** Collapses layers and writes the shallower model. Never rejects. */
export async function collapseLayers(studio: Studio): Promise<void> {
  const facts = studio.store.getState();
  const model = collapseModel(facts);
  if (model === null || whyNotCollapsed(facts) !== null) return;
  const { collapse, engine } = facts;
  const calibration = calibrationOf(facts);
  const started: Collapsed = { model, status: 'running', steps: [], report: null, saved: null, error: null };
  try {
    const destination = await chooseDestination(studio, collapse.name ?? collapseName(model));
    if (!destination) return;
    editCollapse(studio, { outcome: started });
    const outcome = await runTool<CollapseProgress, CollapseReport>(
      studio,
      'collapse',
      (onProgress) =>
        studio.engine.collapse(
          {
            ...{ model, engine: engine.choice, destination, planner: plannerOf(collapse) },
            ...{ variant: variantOf(collapse), parts: collapse.parts },
            ...(calibration ? { calibration } : {}),
            ...(collapse.perplexity ? {} : { evaluation: null }),
          },
          onProgress,
        ),
      (steps) =>
        studio.store.setState(({ collapse: c }) =>
          c.outcome
            ? { collapse: { ...c, outcome: { ...c.outcome, steps: [...c.outcome.steps, ...steps] } } }
            : {},
        ),
    );
    const files = 'value' in outcome ? filesOf(outcome.value) : [];
    const steps = studio.store.getState().collapse.outcome?.steps ?? [];
    const saved = files.length > 0 ? savedOutput(destination, files) : null;
    editCollapse(studio, { outcome: { ...started, steps, saved, ...settled(outcome) } });
  } catch (thrown) {
    editCollapse(studio, { outcome: { ...started, status: 'failed', error: errorFacts(thrown) } });
  }
}

/** A name for the shallower model: `base-collapsed`. */
export function collapseName(model: string): string {
  return `${pairName('', model).replace(/^-/, '')}-collapsed`;
}

function filesOf({ shards, files }: CollapseReport) {
  return [
    ...shards.map(({ file, bytes, hash }) => ({ name: file, bytes, hash })),
    ...files.map((name) => ({ name })),
  ];
}

function settled<T>(outcome: Awaited<ReturnType<typeof runTool<CollapseProgress, T>>>) {
  if ('value' in outcome) return { status: 'done', report: outcome.value } as const;
  return 'error' in outcome
    ? ({ status: 'failed', error: outcome.error } as const)
    : ({ status: 'cancelled' } as const);
}
