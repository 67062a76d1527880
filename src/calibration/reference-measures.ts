/** Base and contributors compared on the text that a merge's λ is chosen on, and on their continuations of a prompt. */

import { generate, WRITING_RESIDENT_BYTES } from '../evaluate/generation';
import type { RunningModel } from '../evaluate/running-model';
import type { Plan } from '../merge/plan/plan';
import type { Prepared } from '../merge/tensor/prepared';
import { calibrationTitle, heldOutSize, readingFor, tokensToWrite } from './calibration';
import { type CalibrationOptions, openAhead, openPlan, singlePlan } from './calibration-context';
import { heldOutTexts, meanLosses } from './lambda-choice';

/** A prompt that models continue with the likeliest token at each step. */
interface Prompt {
  text: string;
  /** Most tokens that are written. */
  tokens: number;
}

/** Mean losses of a model on the held-out text of every contributor, in nats per token. */
export interface MeasuredAround {
  texts: { id: string; calibration: string; tokens: number }[];
  base: number[];
  contributors: { id: string; losses: number[] }[];
}

export interface Answer {
  id: string;
  text: string;
}

/**
 * Measures base and contributors, and has them continue a prompt.
 * @param reading a plan of these models that says what they read
 * @throws AmalgamError as `calibrate`
 */
export async function measureAround(
  reading: Plan,
  prompt: Prompt,
  options: CalibrationOptions,
): Promise<MeasuredAround & { answers: Answer[] }> {
  const { baseModel } = reading.recipe;
  const base = await singlePlan(baseModel!, options.models);
  const context = await openAhead(reading, options, true, [base]);
  const { open, shared, singles } = context;
  const { progress } = shared;
  try {
    const texts = await heldOutTexts(shared);
    progress.begin('comparing', singles.size + 1);
    const answers: Answer[] = [];
    const measured = async (id: string, of: Plan) => {
      const model = await openPlan(of, open, true, undefined, { residentBytes: WRITING_RESIDENT_BYTES });
      try {
        const losses = await meanLosses(model.runner, texts, options.signal);
        answers.push({ id, text: await continued(model, prompt, options.signal) });
        return losses;
      } finally {
        model.close();
        progress.advance(1, id);
      }
    };
    const ofBase = await measured(baseModel!, base);
    const contributors = [];
    for (const [id, single] of singles) contributors.push({ id, losses: await measured(id, single) });
    return {
      texts: shared.contributors.map(({ id, source }, i) => ({
        id,
        calibration: calibrationTitle(source, heldOutSize(shared.size)),
        tokens: texts[i]!.reduce((sum, ids) => sum + ids.length - 1, 0),
      })),
      base: ofBase,
      contributors,
      answers,
    };
  } finally {
    context.close();
  }
}

/**
 * Continuation of a prompt by the merge of a plan.
 * @throws AmalgamError as `calibrate`
 */
export async function continuePrompt(
  plan: Plan,
  prepared: Prepared | undefined,
  prompt: Prompt,
  options: CalibrationOptions,
): Promise<string> {
  const { open, close } = await openAhead(plan, options, false);
  try {
    const model = await openPlan(plan, open, false, prepared, { residentBytes: WRITING_RESIDENT_BYTES });
    try {
      return await continued(model, prompt, options.signal);
    } finally {
      model.close();
    }
  } finally {
    close();
  }
}

async function continued(
  model: RunningModel,
  { text, tokens }: Prompt,
  signal: AbortSignal,
): Promise<string> {
  const tokenizer = await model.tokenizer();
  const ids = [...tokenizer.prefix, ...(await tokenizer.encode(text))];
  const decoder = tokenizer.stream(ids);
  try {
    const [written] = await generate(model.runner, [ids], {
      maxTokens: tokens,
      sampling: { temperature: 0, topP: 1, seed: 0 },
      stop: model.ends,
      signal,
    });
    let answer = '';
    for (const id of written!.ids) answer += await decoder.push(id);
    return answer + (await decoder.end());
  } finally {
    decoder.close();
  }
}

// Calibration texts of all contributors, generated before anything reads them so that several can generate at once.

/**
 * Has some of a plan's contributors generate their text, or stores the tokens of the one they are given.
 * @param which indices of the contributors
 * @throws AmalgamError as `calibrate`
 */
export async function writeTexts(
  plan: Plan,
  which: readonly number[],
  options: CalibrationOptions,
): Promise<void> {
  const context = await openAhead(plan, options);
  try {
    const { contributors, size, engine, signal, progress } = context.shared;
    const mine = which.map((i) => contributors[i]!);
    const self = mine.filter(({ source }) => source.kind === 'self').length;
    progress.begin('writing', self * tokensToWrite(size, 'both'));
    for (const contributor of mine) {
      await readingFor(contributor, {
        size,
        use: 'calibration',
        both: true,
        engine: engine.kind,
        signal,
        onProgress: (tokens) => progress.advance(tokens, contributor.id),
      });
    }
  } finally {
    context.close();
  }
}
