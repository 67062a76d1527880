/** A model opened to be looked at layer by layer: engine, weights within reach, calibration tokens. */

import type { Backend } from '../backend/backend';
import type { GuardedTokenizer } from '../foreign/foreign-text';
import { tokenize } from '../evaluate/job';
import type { EvaluateInput } from '../evaluate/perplexity';
import { openPlannedWeights } from '../evaluate/planned-weights';
import { plannedChatTemplate, plannedTokenizer } from '../evaluate/running-model';
import type { Sequence } from '../forward/chunk';
import { openRunner } from '../forward/runner';
import { type HashedInputs, openHashedInputs } from '../host/hashed-inputs';
import type { OpenModels } from '../host/models';
import type { ProgressMeter } from '../host/progress-meter';
import { type Inputs, missingBytes } from '../host/weight-inputs';
import { requireClean } from '../merge/plan/clean-plan';
import type { Plan } from '../merge/plan/plan';
import type { Calibration, CalibrationInfo, CollapseProgress, CollapseStep } from '../reports/collapse';
import { calibrationInfo, cutTexts } from './calibration';
import { collapsePlan, type DepthModel, depthModel } from './collapse-plan';
import { calibrationOptions } from './options';
import type { OpenedStack, SearchOptions } from './search';
import type { Stack } from './stack';

/** The model of a clean copy plan. @throws what `requireClean` and `depthModel` throw */
export function depthModelOf(plan: Plan, models: OpenModels): DepthModel {
  requireClean(plan);
  return depthModel(plan, (folder, file) => models.file(folder, file).file);
}

/** What a model reads of a text. @throws AmalgamError what the tokenizer and the chat template throw */
export type EncodeText = (text: string) => Promise<EvaluateInput>;

/** Its tokenizer is opened when it is first needed. */
export function textEncoder(model: DepthModel, models: OpenModels, signal: AbortSignal): EncodeText {
  let made: Promise<GuardedTokenizer> | undefined;
  return async (text) => {
    made ??= plannedTokenizer(model.plan, models, model.architecture.vocab, signal);
    return tokenize(text, await made, () => plannedChatTemplate(model.plan, models, signal));
  };
}

interface CutCalibration {
  sequences: Sequence[];
  window: number;
  info: CalibrationInfo | null;
}

/** @throws AmalgamError `TextEmpty`, `TextTooShort`, `Usage`, and what the tokenizer throws */
export async function cutCalibration(
  calibration: Calibration | undefined,
  encode: EncodeText,
): Promise<CutCalibration> {
  const window = calibration?.window ?? calibrationOptions.window.default;
  if (!calibration) return { sequences: [], window, info: null };
  const texts =
    'ids' in calibration.input ? [calibration.input.ids] : await encodeAll(calibration.input.texts, encode);
  const sequences = cutTexts(texts, window);
  return { sequences, window, info: calibrationInfo(sequences, window) };
}

async function encodeAll(texts: readonly string[], encode: EncodeText): Promise<number[][]> {
  const ids: number[][] = [];
  for (const text of texts) ids.push(text.trim() === '' ? [] : Array.from((await encode(text)).ids));
  return ids;
}

/** Opens the weight files, downloading what is on the Hub. Close the inputs. */
export async function openDepthInputs(
  { plan }: DepthModel,
  models: OpenModels,
  meter: ProgressMeter<CollapseProgress>,
  signal: AbortSignal,
): Promise<HashedInputs> {
  const bytes = await missingBytes(plan.inputs, models);
  if (bytes > 0) meter.begin('downloading', bytes, 0);
  const advance = (came: number, name: string) => meter.advance(came, name);
  const hashing = { begin: (length: number) => meter.begin('hashing', length, 0), advance };
  return openHashedInputs(plan, models, signal, advance, hashing);
}

/** What the search needs of this session; steps go out with the pass after them. */
export function searchOptions(
  model: DepthModel,
  { sequences, window }: CutCalibration,
  opened: { engine: Backend; inputs: Inputs },
  meter: ProgressMeter<CollapseProgress>,
  signal: AbortSignal,
): SearchOptions {
  const steps: CollapseStep[] = [];
  return {
    layers: model.architecture.blocks.length,
    open: (stack) => openStack(model, stack, opened),
    sequences,
    window,
    signal,
    onPhase: (phase, passes) => meter.begin(phase, 0, passes),
    onPass: () => meter.finishTensor(...steps.splice(0)),
    onCandidate: (step) => steps.push(step),
  };
}

/** The model of a stack, weights computed as they are read, in the dtype they would be written in. */
export async function openStack(
  model: DepthModel,
  stack: Stack,
  { engine, inputs }: { engine: Backend; inputs: Inputs },
): Promise<OpenedStack> {
  const { plan, config } = collapsePlan(model, stack);
  const weights = await openPlannedWeights(plan, [engine], inputs.read, false);
  try {
    const runner = openRunner(engine, config.architecture, weights);
    return {
      runner,
      close() {
        runner.close();
        weights.close();
      },
    };
  } catch (error) {
    weights.close();
    throw error;
  }
}
