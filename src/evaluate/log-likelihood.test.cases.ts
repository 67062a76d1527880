/** lm-evaluation-harness's own log-likelihoods against ours: ids, numbers, greedy flags, accuracies, refusals. */
import { expect } from 'vitest';
import { createTokenizer, type TokenizerFiles } from '../foreign/tokenizer';
import type { Runner } from '../forward/runner';
import { encodePairs, type PairIds } from './encoded-pairs';
import { type Scored, type ScoringOptions, startScoring } from './log-likelihood';

export const LM_EVAL_FIXTURE = 'e2e/fixtures/golden/lm-eval/loglikelihood.json';

/** Entry of one model in `loglikelihood.json`. */
export interface LogLikelihoodGolden {
  prefix_token_id: number;
  max_length: number;
  pairs: {
    context: string;
    continuation: string;
    context_ids: number[] | null;
    continuation_ids: number[] | null;
    loglikelihood: number | null;
    is_greedy: boolean | null;
    refused: string | null;
  }[];
  multiple_choice: {
    q: string;
    choices: string[];
    gold: number;
    loglikelihoods: number[];
    pred: number;
    pred_norm: number;
  }[];
  acc: number;
  acc_norm: number;
}

/** Of a sum of log-likelihoods, in nats. */
export const LOG_LIKELIHOOD_LIMIT = 1e-3;

/** Scores items whole. */
export async function scoreAll(
  runner: Runner,
  items: readonly (readonly PairIds[])[],
  maxLength: number,
  more: Partial<ScoringOptions> = {},
): Promise<Scored[][]> {
  const scored: Scored[][] = [];
  const scoring = startScoring(runner, items, {
    maxLength,
    share: true,
    onItem: (i, own) => {
      scored[i] = own;
    },
    ...more,
  });
  while (await scoring.step());
  scoring.close();
  return scored;
}

/** Everything that the golden has of a model; returns how far the numbers are off at most. */
export async function checkLogLikelihoods(
  golden: LogLikelihoodGolden,
  files: TokenizerFiles,
  runner: Runner,
): Promise<number> {
  const made = createTokenizer(files, 'the model');
  const tokenizer = {
    ...made,
    encodeAll: async (texts: readonly string[]) => texts.map((text) => made.encode(text)),
  };
  expect(tokenizer.prefixToken?.id).toBe(golden.prefix_token_id);
  let far = 0;
  const near = (got: number, wanted: number) => {
    far = Math.max(far, Math.abs(got - wanted));
    expect(Math.abs(got - wanted)).toBeLessThanOrEqual(LOG_LIKELIHOOD_LIMIT);
  };

  const pairs = await encodePairs(tokenizer, golden.pairs, golden.max_length);
  const scored = await scoreAll(
    runner,
    pairs.map((pair) => ('context' in pair ? [pair] : [])).filter((item) => item.length > 0),
    golden.max_length,
  );
  let next = 0;
  for (const [i, wanted] of golden.pairs.entries()) {
    const pair = pairs[i]!;
    expect('refused' in pair, wanted.continuation).toBe(wanted.refused !== null);
    if ('refused' in pair) {
      expect(pair.refused).toMatch(/No token of the continuation is left/);
      continue;
    }
    if (wanted.context_ids) expect(pair.context).toEqual(wanted.context_ids);
    if (wanted.continuation_ids) expect(pair.continuation).toEqual(wanted.continuation_ids);
    const [own] = scored[next++]!;
    near(own!.loglikelihood, wanted.loglikelihood!);
    expect(own!.isGreedy).toBe(wanted.is_greedy);
  }

  const { multiple_choice: questions } = golden;
  const choices = await encodePairs(
    tokenizer,
    questions.flatMap((q) => q.choices.map((c) => ({ context: q.q, continuation: ` ${c}` }))),
    golden.max_length,
  );
  const items = questions.map((q) => choices.splice(0, q.choices.length) as PairIds[]);
  const answers = await scoreAll(runner, items, golden.max_length);
  const apart = await scoreAll(runner, items, golden.max_length, { share: false });
  for (const [q, { loglikelihoods }] of questions.entries()) {
    for (const [c, wanted] of loglikelihoods.entries()) {
      near(answers[q]![c]!.loglikelihood, wanted);
      near(apart[q]![c]!.loglikelihood, wanted);
    }
  }
  return far;
}
