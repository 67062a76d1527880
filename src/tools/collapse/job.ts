/** Collapsing layers, from a reference to a committed checkpoint; and only measuring what could be collapsed. */

import type { Backend } from '../../backend/backend';
import { DEFAULT_PROTOCOL, type EvaluateInput, evaluateTexts } from '../../evaluate/perplexity';
import { openBackend } from '../../host/backends';
import type { OpenModels } from '../../host/models';
import { type ProgressMeter, progressMeter } from '../../host/progress-meter';
import { withResources } from '../../host/resources';
import { type Inputs, openForReading } from '../../host/weight-inputs';
import { warningsOf } from '../../inputs/problems';
import type { Plan } from '../../merge/plan/plan';
import { AMALGAM_VERSION } from '../../merge/version';
import { type Architecture, partOf } from '../../models/architecture';
import { overTexts } from '../../reports/evaluate';
import { pairedDifference } from '../../reports/paired-error';
import { hubModel, writePlan } from '../write-plan';
import {
  cutCalibration,
  depthModelOf,
  type EncodeText,
  openStack,
  searchOptions,
  textEncoder,
} from './calibration';
import { checkSettings } from './choose-layers';
import { variantOf } from './options';
import type {
  Calibration,
  CollapseProgress,
  CollapseReport,
  CollapseRequest,
  MeasureLayersReport,
  MeasureLayersRequest,
} from './report';
import { findStack, leastLayers, measureModel } from './search';
import { collapsePlan, type DepthModel, removedLayers, type Stack, wholeStack } from './stack';
import { collapseCard, collapseNotes } from './words';

/**
 * Block influence, angular distances and, where asked for, the similarity curve of a model.
 *
 * @param copyPlan the plan of copying a model
 * @throws AmalgamError `PlanHasErrors`, `ArchitectureUnsupported`, `TextEmpty`, `TextTooShort`, `Canceled`, and what sources,
 *   engine and running throw
 */
async function runMeasureLayers(
  request: MeasureLayersRequest,
  models: OpenModels,
  signal: AbortSignal,
  onProgress: (progress: CollapseProgress) => void,
  copyPlan: (model: string) => Promise<Plan>,
): Promise<MeasureLayersReport> {
  const begin = performance.now();
  const whole = await copyPlan(request.model);
  const model = depthModelOf(whole, models);
  const calibration = await cutCalibration(request.calibration, textEncoder(model, models, signal));
  return withResources(async ({ keep }) => {
    const engine = keep(await openBackend(request.engine));
    const meter = progressMeter<CollapseProgress>(onProgress, () => engine);
    const inputs = keep(await openForReading(model.plan, models, meter, signal));
    const options = searchOptions(model, calibration, { engine, inputs }, meter, signal);
    const { measure, curve } = await measureModel(request.curve, options);
    meter.flush();
    return {
      model: request.model,
      engine: engine.kind,
      adapter: engine.adapter,
      seconds: (performance.now() - begin) / 1000,
      layers: options.layers,
      calibration: calibration.info,
      ...measure,
      ...(curve && { curve }),
    };
  });
}

/**
 * Collapses layers and writes the shallower model. Whatever fails, nothing is left at the destination.
 *
 * @param copyPlan the plan of copying a model
 * @throws AmalgamError `PlanHasErrors`, `ArchitectureUnsupported`, `Usage`, `NothingToCollapse`, `TextEmpty`,
 *   `TextTooShort`, `NonFinite`, `Canceled`, and what sources, engine and destination throw
 */
async function runCollapse(
  request: CollapseRequest,
  models: OpenModels,
  signal: AbortSignal,
  onProgress: (progress: CollapseProgress) => void,
  copyPlan: (model: string) => Promise<Plan>,
): Promise<CollapseReport> {
  const begin = performance.now();
  const whole = await copyPlan(request.model);
  const model = depthModelOf(whole, models);
  const layers = model.architecture.blocks.length;
  const settings = { highest: layers - 1, ...request.settings, variant: variantOf(request.settings) };
  checkSettings(settings, layers);
  const encode = textEncoder(model, models, signal);
  const calibration = await cutCalibration(request.calibration, encode);
  const evaluation =
    request.perplexity === false ? null : await evaluationInputs(request.calibration, encode);
  const found = await withResources(async ({ keep }) => {
    const engine = keep(await openBackend(request.engine));
    const meter = progressMeter<CollapseProgress>(onProgress, () => engine);
    const opened = { engine, inputs: keep(await openForReading(model.plan, models, meter, signal)) };
    const chosen = await findStack(settings, searchOptions(model, calibration, opened, meter, signal));
    const { stack } = chosen;
    const perplexity = evaluation && (await measureCost(evaluation, model, stack, opened, meter, signal));
    return { ...chosen, perplexity, kind: engine.kind, adapter: engine.adapter };
  });
  const { stack, saliency, kind: engine, adapter, ...measured } = found;
  const { plan, config } = collapsePlan(model, stack);
  const report = {
    ...{ model: request.model, engine, adapter, version: AMALGAM_VERSION, settings },
    layers: { before: layers, after: stack.length },
    parameters: { before: parametersOf(whole), after: parametersOf(plan) },
    removed: removedLayers(stack, layers),
    stack: [...stack],
    ...measured,
    ...(saliency && {
      experts: { before: expertsOf(model.architecture), after: expertsOf(config.architecture), saliency },
    }),
    calibration: calibration.info,
    notes: [
      ...warningsOf(whole.problems),
      ...collapseNotes(settings, stack, model.architecture, config.spelledOut, leastLayers(settings, layers)),
    ],
  };
  const made = { model: request.model, settings, stack };
  const written = await writePlan(
    plan,
    { key: 'collapse', made, card: collapseCard(report, hubModel(model.plan, models)) },
    { ...request, engine },
    models,
    signal,
    (progress) => onProgress({ ...progress, finished: [] }),
  );
  return { ...report, ...written, seconds: (performance.now() - begin) / 1000 };
}

/** The texts of the calibration as perplexity is measured on them, each by itself as Evaluate does. */
async function evaluationInputs({ input }: Calibration, encode: EncodeText): Promise<EvaluateInput[]> {
  if ('ids' in input) return [{ ids: input.ids, bos: null }];
  const read: EvaluateInput[] = [];
  for (const text of input.texts) read.push(await encode(text));
  // of one token nothing is scored; alone it is refused
  const scored = read.filter(({ ids }) => ids.length > 1);
  return scored.length > 0 ? scored : read;
}

/** Perplexity of the original and of the collapsed model. */
async function measureCost(
  inputs: readonly EvaluateInput[],
  model: DepthModel,
  stack: Stack,
  opened: { engine: Backend; inputs: Inputs },
  meter: ProgressMeter<CollapseProgress>,
  signal: AbortSignal,
): Promise<NonNullable<CollapseReport['perplexity']>> {
  meter.begin('evaluating', 0, 0);
  const measure = async (of: Stack, title: string) => {
    const { runner, close } = await openStack(model, of, opened);
    try {
      const reports = await evaluateTexts(runner, inputs, DEFAULT_PROTOCOL, {
        signal,
        onProgress: ({ tokensDone, tokens }) =>
          meter.advance(0, `${title}, ${Math.floor((100 * tokensDone) / tokens)} %`),
      });
      return reports;
    } finally {
      close();
    }
  };
  const before = await measure(wholeStack(model.architecture.blocks.length), 'original');
  const after = await measure(stack, 'collapsed');
  const blocksOf = (reports: typeof after) => reports.map(({ blocks = [] }) => blocks);
  return {
    ...{ before: overTexts(before), after: overTexts(after) },
    change: pairedDifference(blocksOf(after), blocksOf(before)),
  };
}

function expertsOf({ blocks }: Architecture): number {
  return Math.max(0, ...blocks.map((block) => partOf(block, 'experts')?.experts.length ?? 0));
}

function parametersOf(plan: Plan): number {
  return plan.tensors.reduce((sum, { elements }) => sum + elements, 0);
}

/** The calls of the tool. */
export const jobs = { measureLayers: runMeasureLayers, collapse: runCollapse } as const;
