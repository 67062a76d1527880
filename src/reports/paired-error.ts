/**
 * Errors of mean losses, and of the difference between two models that read the same tokens. Tokens depend on their neighbors,
 * so they are added up in blocks, and the blocks' deviations give the error (non-overlapping block means, Carlstein 1986). Pure.
 */

/** Sum of the losses of consecutive tokens, in nats; of an item of a task, 1 − its metric. */
export interface LossBlock {
  loss: number;
  tokens: number;
}

/** Blocks of the texts of a model, text by text. */
export type TextBlocks = readonly (readonly LossBlock[])[];

/** Fewest tokens of a block, and most blocks of a text: longer texts have longer blocks. */
export const BLOCK_TOKENS = 64;
const MOST_BLOCKS = 128;
/** Blocks from which on Student's t asks for less than a sixth more than of very many. */
export const ENOUGH_BLOCKS = 10;

/** Why a number has no error. */
export const TOO_SHORT = 'Too short for an error: a text needs 1\u202f200 characters or more.';

/** Blocks of the losses of a text, token by token; the last one takes what is left. */
export function lossBlocks(losses: ArrayLike<number>): LossBlock[] {
  const wanted = Math.max(BLOCK_TOKENS, Math.ceil(losses.length / MOST_BLOCKS));
  const count = Math.max(1, Math.floor(losses.length / wanted));
  return Array.from({ length: count }, (_, i) => {
    const begin = i * wanted;
    const end = i + 1 === count ? losses.length : begin + wanted;
    let loss = 0;
    for (let token = begin; token < end; token++) loss += losses[token]!;
    return { loss, tokens: end - begin };
  });
}

/** A mean over texts, every text counting the same, in nats per token. */
export interface Estimate {
  mean: number;
  /** Standard error; null where a text is too short to have one. */
  stderr: number | null;
  /** Of the error, by Welch and Satterthwaite. */
  degrees: number;
}

/** Mean loss over texts with its error. The error of e^mean, a perplexity, is e^mean times as large. */
export function meanLoss(texts: TextBlocks): Estimate {
  const each = texts.map(textMean);
  const variance = each.reduce((sum, { square }) => sum + (square ?? Number.NaN), 0);
  const spread = each.reduce((sum, { square, degrees }) => sum + (square ?? Number.NaN) ** 2 / degrees, 0);
  return {
    mean: each.reduce((sum, { mean }) => sum + mean, 0) / each.length,
    stderr: Number.isNaN(variance) ? null : Math.sqrt(variance) / each.length,
    degrees: variance > 0 ? variance ** 2 / spread : each.reduce((sum, { degrees }) => sum + degrees, 0),
  };
}

/** Mean of a text as the ratio of two sums, and its squared error (Cochran 1977, 6.3). */
function textMean(blocks: readonly LossBlock[]): { mean: number; square: number | null; degrees: number } {
  const tokens = blocks.reduce((sum, block) => sum + block.tokens, 0);
  const mean = blocks.reduce((sum, { loss }) => sum + loss, 0) / tokens;
  const degrees = blocks.length - 1;
  if (degrees < 1) return { mean, square: null, degrees: 0 };
  const squares = blocks.reduce((sum, block) => sum + (block.loss - mean * block.tokens) ** 2, 0);
  return { mean, square: ((squares / degrees) * blocks.length) / tokens ** 2, degrees };
}

/**
 * Mean loss of one model minus that of another on the same texts, with the error of the difference, which is smaller than
 * that of either. Null where they did not score the same tokens: with other tokenizers.
 */
export function pairedDifference(of: TextBlocks, against: TextBlocks): Estimate | null {
  const same = (a: readonly LossBlock[], b: readonly LossBlock[] | undefined) =>
    a.length === b?.length && a.every(({ tokens }, i) => tokens === b[i]!.tokens);
  if (of.length !== against.length || !of.every((blocks, t) => same(blocks, against[t]))) return null;
  return meanLoss(
    of.map((blocks, t) =>
      blocks.map(({ loss, tokens }, i) => ({ loss: loss - against[t]![i]!.loss, tokens })),
    ),
  );
}

/**
 * Half the width of the interval that holds the true mean in 95 of 100 cases; null where there is no error.
 *
 * @param comparisons how many such intervals all hold theirs at once in 95 of 100 cases (Bonferroni)
 */
export function margin({ stderr, degrees }: Estimate, comparisons = 1): number | null {
  return stderr === null ? null : stderr * quantile(degrees, 0.025 / comparisons);
}

/** Whether a difference is outside its error: `lower` is better. What is not cannot be told apart. */
export function verdict(difference: Estimate | null, comparisons = 1): 'lower' | 'higher' | 'alike' {
  const within = difference && margin(difference, comparisons);
  if (within === null || difference === null || Math.abs(difference.mean) <= within) return 'alike';
  return difference.mean < 0 ? 'lower' : 'higher';
}

/** What Student's t exceeds with probability p < 0.075, to 1 % from 3 degrees of freedom on (Abramowitz and Stegun 26.7.5). */
function quantile(degrees: number, p: number): number {
  const z = normalQuantile(p);
  const terms = [
    (z ** 3 + z) / 4,
    (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96,
    (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / 384,
    (79 * z ** 9 + 776 * z ** 7 + 1482 * z ** 5 - 1920 * z ** 3 - 945 * z) / 92160,
  ];
  return terms.reduce((sum, term, i) => sum + term / degrees ** (i + 1), z);
}

/** What a standard normal number exceeds with probability p < 0.075 (Wichura 1988, AS 241, PPND7). */
function normalQuantile(p: number): number {
  const r = Math.sqrt(-Math.log(p)) - 1.6;
  return (
    (((0.17023821103 * r + 1.3067284816) * r + 2.75681539) * r + 1.4234372777) /
    ((0.12021132975 * r + 0.7370016425) * r + 1)
  );
}
