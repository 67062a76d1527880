/** A model opened to be looked at layer by layer: the tokens it is run over, its weights within reach. */

import type { Backend } from '../../backend/backend';
import { AmalgamError } from '../../errors';
import { tokenize } from '../../evaluate/job';
import type { EvaluateInput } from '../../evaluate/perplexity';
import { openPlannedWeights } from '../../evaluate/planned-weights';
import { plannedChatTemplate, plannedTokenizer } from '../../evaluate/running-model';
import type { GuardedTokenizer } from '../../foreign/foreign-text';
import { counted } from '../../formats/quantity';
import type { Sequence } from '../../forward/chunk';
import { openRunner } from '../../forward/runner';
import type { OpenModels } from '../../host/models';
import type { ProgressMeter } from '../../host/progress-meter';
import type { Inputs } from '../../host/weight-inputs';
import { type Plan, requireClean } from '../../merge/plan/plan';
import type { Calibration, CalibrationInfo, CollapseProgress, CollapseStep } from './report';
import type { OpenedStack, SearchOptions } from './search';
import { collapsePlan, type DepthModel, depthModel, type Stack } from './stack';

/** The model of a clean copy plan. @throws what `requireClean` and `depthModel` throw */
export function depthModelOf(plan: Plan, models: OpenModels): DepthModel {
  requireClean(plan);
  return depthModel(plan, (folder, file) => models.file(folder, file).file);
}

/** Input of a model made from a text. @throws AmalgamError errors of the tokenizer and the chat template */
export type EncodeText = (text: string) => Promise<EvaluateInput>;

/** Opens the tokenizer on first use. */
export function textEncoder(model: DepthModel, models: OpenModels, signal: AbortSignal): EncodeText {
  let made: Promise<GuardedTokenizer> | undefined;
  return async (text) => {
    made ??= plannedTokenizer(model.plan, models, model.architecture.vocab, signal);
    return tokenize(text, await made, () => plannedChatTemplate(model.plan, models, signal));
  };
}

/** Fewest tokens for a meaningful measurement. */
const LEAST_TOKENS = 8;

/**
 * Cuts every text into windows of at most `window` tokens that do not overlap; positions restart in each.
 *
 * @param texts token ids of each text, what stands in front included
 * @throws AmalgamError `TextEmpty`, `TextTooShort`
 */
export function cutTexts(texts: readonly (readonly number[])[], window: number): Sequence[] {
  const empty = texts.findIndex((ids) => ids.length === 0);
  if (texts.length === 0 || empty >= 0) {
    throw new AmalgamError(
      'TextEmpty',
      texts.length === 0 ? 'There is no calibration text.' : `Calibration text ${empty + 1} has no tokens.`,
      'Give texts of the kind the model is for; a page is enough.',
    );
  }
  const tokens = texts.reduce((sum, ids) => sum + ids.length, 0);
  if (tokens < LEAST_TOKENS) {
    throw new AmalgamError(
      'TextTooShort',
      `The calibration text has ${counted(tokens, 'token')}; ${LEAST_TOKENS} is the least, and a few hundred make sense.`,
      'Give a longer text, or several.',
    );
  }
  return texts.flatMap((ids) =>
    Array.from({ length: Math.ceil(ids.length / window) }, (_, i) => ({
      ids: ids.slice(i * window, (i + 1) * window),
    })),
  );
}

interface CutCalibration {
  sequences: Sequence[];
  info: CalibrationInfo;
}

/** @throws AmalgamError `TextEmpty`, `TextTooShort`, `Usage`, and errors of the tokenizer */
export async function cutCalibration(
  { input, window }: Calibration,
  encode: EncodeText,
): Promise<CutCalibration> {
  const texts = 'ids' in input ? [input.ids] : await encodeAll(input.texts, encode);
  const sequences = cutTexts(texts, window);
  const tokens = sequences.reduce((sum, { ids }) => sum + ids.length, 0);
  return { sequences, info: { sequences: sequences.length, tokens, window } };
}

async function encodeAll(texts: readonly string[], encode: EncodeText): Promise<number[][]> {
  const ids: number[][] = [];
  for (const text of texts) ids.push(text.trim() === '' ? [] : Array.from((await encode(text)).ids));
  return ids;
}

/** Options of the search in this session; steps are reported with the pass after them. */
export function searchOptions(
  model: DepthModel,
  { sequences, info: { window } }: CutCalibration,
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
