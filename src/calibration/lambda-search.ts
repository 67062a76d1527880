/** The best λ by perplexity, on a coarse grid. */

import { mean } from '../linalg/numbers';

/** Of the study behind docs/importance.md, extended downwards: strong fine-tunes of several models want little. */
export const LAMBDA_GRID = [
  0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.4, 1.7, 2, 2.5, 3, 3.6, 4.3, 5.2,
] as const;

const START = LAMBDA_GRID.indexOf(1);
/** Places on the grid that are stepped over until the lowest point has a higher one on either side. */
const STEP = 4;

interface LambdaPoint {
  lambda: number;
  /** Mean −ln p per token of each contributor's text, in nats. */
  losses: number[];
}

/**
 * Goes from λ = 1 to where neither neighbour on the grid has a lower mean loss over the contributors; of equals the
 * smaller. Wide steps find a valley, parabolas through its three points in ln λ where its bottom lies. Losses have one
 * valley along λ as a rule; where they have two, this finds one of them.
 *
 * @param measure the contributors' losses at a λ
 * @returns the chosen λ and everything measured, ascending
 */
export async function searchLambda(
  measure: (lambda: number) => Promise<number[]>,
): Promise<{ chosen: number; curve: LambdaPoint[] }> {
  const known = new Map<number, LambdaPoint>();
  const lossAt = (index: number) => mean(known.get(index)!.losses);
  for (
    let next: number | undefined = START;
    next !== undefined;
    next = placeToTry([...known.keys()], lossAt)
  ) {
    const lambda = LAMBDA_GRID[next]!;
    known.set(next, { lambda, losses: await measure(lambda) });
  }
  const curve = [...known].sort(([a], [b]) => a - b).map(([, point]) => point);
  return { chosen: LAMBDA_GRID[lowest([...known.keys()], lossAt)]!, curve };
}

function lowest(known: readonly number[], lossAt: (index: number) => number): number {
  return known.reduce((a, b) => (lossAt(b) < lossAt(a) || (lossAt(b) === lossAt(a) && b < a) ? b : a));
}

/** The place on the grid to be measured next; undefined when both neighbors of the lowest are known. */
function placeToTry(known: readonly number[], lossAt: (index: number) => number): number | undefined {
  const here = lowest(known, lossAt);
  const below = Math.max(-1, ...known.filter((index) => index < here));
  const above = Math.min(LAMBDA_GRID.length, ...known.filter((index) => index > here));
  if (below < 0 && here > 0) return Math.max(0, here - STEP);
  if (above === LAMBDA_GRID.length && here + 1 < above) return Math.min(above - 1, here + STEP);
  const [down, up] = [here - below > 1, above - here > 1];
  if (!down && !up) return undefined;
  if (!down || !up) return bottomIn(...(up ? ([here, above] as const) : ([below, here] as const)));
  return bottomIn(below, above);

  /** The place nearest to the bottom of the parabola that is neither the lowest nor beyond what lies between two. */
  function bottomIn(from: number, to: number): number {
    const bottom =
      below < 0 || above === LAMBDA_GRID.length ? undefined : vertex([below, here, above].map(pointAt));
    const free = LAMBDA_GRID.map((_, index) => index).filter((i) => i > from && i < to && i !== here);
    const wanted = bottom ?? (Math.log(LAMBDA_GRID[free[0]!]!) + Math.log(LAMBDA_GRID[free.at(-1)!]!)) / 2;
    const far = (index: number) => Math.abs(Math.log(LAMBDA_GRID[index]!) - wanted);
    return free.reduce((a, b) => (far(b) < far(a) ? b : a));
  }
  function pointAt(index: number): Point {
    return { x: Math.log(LAMBDA_GRID[index]!), y: lossAt(index) };
  }
}

interface Point {
  x: number;
  y: number;
}

/** Where the parabola through three points is lowest; undefined where they lie on a line. */
function vertex([a, b, c]: readonly Point[]): number | undefined {
  const left = (b!.x - a!.x) * (b!.y - c!.y);
  const right = (b!.x - c!.x) * (b!.y - a!.y);
  if (left === right) return undefined;
  return b!.x - ((b!.x - a!.x) * left - (b!.x - c!.x) * right) / (2 * (left - right));
}
