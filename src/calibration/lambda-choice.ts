/** λ chosen on the contributors' calibration texts, without writing a merge. */

import { formatRecipe } from '../formats/recipe-format';
import type { Runner } from '../forward/runner';
import { mean } from '../linalg/numbers';
import type { Plan } from '../merge/plan/plan';
import { withLambda } from '../merge/plan/plan-lambda';
import type { LambdaReport } from '../reports/importance';
import { openRecords, type RecordHeader } from '../store/masks';
import {
  type CalibrationMeter,
  type CalibrationSize,
  type Contributor,
  calibrationHash,
  calibrationTitle,
  heldOutSize,
  readingsFor,
} from './calibration';

// The best λ by perplexity, on a coarse grid.

/** Of the study behind docs/importance.md, extended downwards: strong fine-tunes of several models want little. */
export const LAMBDA_GRID = [
  0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.4, 1.7, 2, 2.5, 3, 3.6, 4.3, 5.2,
] as const;

/** Where the search begins, and the places on the grid that it steps over until the lowest point has a higher one on either side. */
const WIDE = { start: 1, step: 4 } as const;

interface LambdaPoint {
  lambda: number;
  /** Mean −ln p per token of each contributor's text, in nats. */
  losses: number[];
}

/**
 * Walks from λ = 1 to where neither neighbor on the grid has a lower mean loss over the contributors; of equals the smaller.
 *
 * @param measure the contributors' losses at a λ
 * @returns the chosen λ and everything measured, ascending
 */
export async function searchLambda(
  measure: (lambda: number) => Promise<number[]>,
): Promise<{ chosen: number; curve: LambdaPoint[] }> {
  const known = new Map<number, number>();
  const points: LambdaPoint[] = [];
  for (let next = nextLambda(known); next !== undefined; next = nextLambda(known)) {
    const losses = await measure(next);
    points.push({ lambda: next, losses });
    known.set(next, mean(losses));
  }
  return { chosen: lowestLambda(known)!, curve: points.sort((a, b) => a.lambda - b.lambda) };
}

/**
 * The λ that is to be measured next; undefined when both neighbors on the grid of the lowest are known. Wide steps find a
 * valley, parabolas through its three points in ln λ where its bottom lies. Losses have a single minimum along λ as a rule;
 * where they have two, this finds one of them.
 *
 * @param known mean losses by λ
 * @param worth what must still be gained: where the parabola promises less, that is enough
 */
export function nextLambda(
  known: ReadonlyMap<number, number>,
  { start, step }: { start: (typeof LAMBDA_GRID)[number]; step: number } = WIDE,
  worth = 0,
): number | undefined {
  const lowest = lowestLambda(known);
  if (lowest === undefined) return start;
  const isKnown = (index: number) => known.has(LAMBDA_GRID[index]!);
  const here = LAMBDA_GRID.findIndex((lambda) => lambda >= lowest);
  const places = LAMBDA_GRID.map((_, index) => index);
  const below = places.findLast((index) => index < here && isKnown(index));
  const above = places.find((index) => index > here && isKnown(index));
  if (below === undefined && here > 0) return LAMBDA_GRID[Math.max(0, here - step)];
  const last = LAMBDA_GRID.length - 1;
  if (above === undefined && here < last) return LAMBDA_GRID[Math.min(last, here + step)];
  const free = (from: number, to: number) => places.slice(from + 1, to);
  const [down, up] = [free(below ?? here, here), free(here, above ?? here)];
  if (down.length + up.length === 0) return undefined;
  const bottom =
    below === undefined || above === undefined ? undefined : vertex([below, here, above].map(pointAt));
  if (bottom && known.get(lowest)! - bottom.y < worth) return undefined;
  const open = [...down, ...up];
  const middle = (Math.log(LAMBDA_GRID[open[0]!]!) + Math.log(LAMBDA_GRID[open.at(-1)!]!)) / 2;
  const far = (index: number) => Math.abs(Math.log(LAMBDA_GRID[index]!) - (bottom?.x ?? middle));
  return LAMBDA_GRID[open.reduce((a, b) => (far(b) < far(a) ? b : a))];

  function pointAt(index: number): Point {
    const lambda = LAMBDA_GRID[index]!;
    return { x: Math.log(lambda), y: known.get(lambda)! };
  }
}

/** The λ of the least loss, of equals the smaller; undefined where none is known. */
export function lowestLambda(known: ReadonlyMap<number, number>): number | undefined {
  return [...known].sort(([a, x], [b, y]) => x - y || a - b)[0]?.[0];
}

interface Point {
  x: number;
  y: number;
}

/** Lowest point of the parabola through three points; undefined where they lie on a line. */
function vertex([a, b, c]: readonly Point[]): Point | undefined {
  const left = (b!.x - a!.x) * (b!.y - c!.y);
  const right = (b!.x - c!.x) * (b!.y - a!.y);
  if (left === right) return undefined;
  const x = b!.x - ((b!.x - a!.x) * left - (b!.x - c!.x) * right) / (2 * (left - right));
  // Newton's form of the parabola
  const slope = (b!.y - a!.y) / (b!.x - a!.x);
  const curvature = ((c!.y - b!.y) / (c!.x - b!.x) - slope) / (c!.x - a!.x);
  return { x, y: a!.y + (x - a!.x) * (slope + curvature * (x - b!.x)) };
}

/** Number of λ values usually tried. */
export const USUAL_TRIES = 5;
/** Share of the held-out windows that values of λ are compared on, and the fewest of them. */
const PART = { stride: 3, least: 4 };

interface FindLambdaOptions {
  plan: Plan;
  contributors: readonly Contributor[];
  /** sha256 of the files of the base. */
  base: string;
  /** Of the calibration; λ is measured on a quarter of it, on other text of the same kind. */
  size: CalibrationSize;
  engine: Runner['engine'];
  /** Opens the merge of a plan as a model that runs; nothing is written. */
  openMerge(plan: Plan): Promise<{ runner: Runner; close(): void }>;
  signal?: AbortSignal;
  progress?: CalibrationMeter;
}

/**
 * The λ of a plan: found before, or searched for now.
 * @throws AmalgamError `Canceled`, `NonFinite` and what reading and running throw
 */
export async function findLambda(options: FindLambdaOptions): Promise<LambdaReport> {
  const { plan, contributors, engine, size, base } = options;
  const hashes: string[] = [];
  for (const { source } of contributors) hashes.push(await calibrationHash(source, size));
  const models = contributors.map(({ model }, i) => [model, hashes[i]]);
  const folder = await openRecords(
    JSON.stringify(['lambda', 4, formatRecipe(plan.recipe), models, base, engine.kind]),
    `λ of a merge of ${contributors.map(({ id }) => id).join(', ')} (${plan.recipe.mergeMethod})`,
  );
  const found = await folder.find<LambdaHeader>('lambda');
  if (found) return { ...found.header.report, seconds: 0, reused: true };
  const report = await searchNow(options);
  await folder.write<LambdaHeader>({ name: 'lambda', report }, []);
  return report;
}

interface LambdaHeader extends RecordHeader {
  report: LambdaReport;
}

/**
 * Searches for λ by the mean over the contributors of the mean loss on a part of the held-out text of each:
 * all values are measured on the same windows, so that what differs is λ.
 */
async function searchNow(options: FindLambdaOptions): Promise<LambdaReport> {
  const { plan, contributors, signal, progress, engine } = options;
  const begun = performance.now();
  const size = heldOutSize(options.size);
  const reading = {
    ...{ size: options.size, use: 'held-out' as const, engine: engine.kind },
    ...(signal && { signal }),
  };
  const texts = await readingsFor(contributors, reading, progress);
  const parts = texts.map(({ sequences }) => sequences.filter(isPart));
  progress?.begin('searching', USUAL_TRIES);
  const measure = async (lambda: number) => {
    progress?.advance(0, `λ ${lambda}`);
    const merge = await options.openMerge(withLambda(plan, lambda));
    try {
      return await meanLosses(merge.runner, parts, signal);
    } finally {
      merge.close();
      progress?.advance(1, `λ ${lambda}`);
    }
  };
  const { chosen, curve } = await searchLambda(measure);
  return {
    chosen,
    curve: curve.map(({ lambda, losses }) => ({ lambda, ...perplexities(losses) })),
    texts: contributors.map(({ id, source }, i) => ({
      id,
      calibration: calibrationTitle(source, { ...size, windows: parts[i]!.length }),
      tokens: parts[i]!.reduce((sum, ids) => sum + ids.length - 1, 0),
    })),
    seconds: (performance.now() - begun) / 1000,
    reused: false,
  };
}

function perplexities(losses: readonly number[]): { perplexity: number; each: number[] } {
  return {
    perplexity: Math.exp(losses.reduce((a, b) => a + b, 0) / losses.length),
    each: losses.map(Math.exp),
  };
}

/** Whether a window is one of those that values of λ are compared on, at even distances. */
function isPart(_: unknown, at: number, { length }: readonly unknown[]): boolean {
  return at % Math.max(1, Math.min(PART.stride, Math.floor(length / PART.least))) === 0;
}

/** Mean −ln p per token of each list of sequences, the first token of a sequence not scored. */
export async function meanLosses(
  runner: Runner,
  texts: readonly (readonly (readonly number[])[])[],
  signal?: AbortSignal,
): Promise<number[]> {
  const all = texts.flatMap((sequences, text) => sequences.map((ids) => ({ ids, text })));
  const sums = texts.map(() => ({ loss: 0, tokens: 0 }));
  for (let first = 0; first < all.length; ) {
    let end = first;
    for (let rows = 0; end < all.length; end++) {
      rows += all[end]!.ids.length;
      if (end > first && rows > runner.rowsPerPass) break;
    }
    const part = all.slice(first, end);
    const { losses } = await runner.pass({
      sequences: part.map(({ ids }) => ({ ids, from: 1 })),
      output: 'loss',
      ...(signal && { signal }),
    });
    for (const [i, { text }] of part.entries()) {
      for (const loss of losses[i]!) sums[text]!.loss += loss;
      sums[text]!.tokens += losses[i]!.length;
    }
    first = end;
  }
  return sums.map(({ loss, tokens }) => loss / tokens);
}
