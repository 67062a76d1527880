/** The best λ by perplexity, on a coarse grid. */

/** Of the study behind docs/importance.md, extended downwards: strong fine-tunes of several models want little. */
export const LAMBDA_GRID = [
  0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.4, 1.7, 2, 2.5, 3, 3.6, 4.3, 5.2,
] as const;

const START = LAMBDA_GRID.indexOf(1);
/** Places on the grid that are stepped over: first far, then near. */
const STEPS = [4, 2, 1];

export interface LambdaPoint {
  lambda: number;
  /** Mean −ln p per token of each contributor's text, in nats. */
  losses: number[];
}

/**
 * Goes from λ = 1 to where neither neighbour on the grid has a lower mean loss over the contributors; of equals the
 * smaller. Losses have one valley along λ as a rule; where they have two, this finds one of them.
 *
 * @param measure the contributors' losses at a λ
 * @returns the chosen λ and everything measured, ascending
 */
export async function searchLambda(
  measure: (lambda: number) => Promise<number[]>,
): Promise<{ chosen: number; curve: LambdaPoint[] }> {
  const known = new Map<number, LambdaPoint>();
  const meanAt = async (index: number): Promise<number> => {
    const lambda = LAMBDA_GRID[index];
    if (lambda === undefined) return Number.POSITIVE_INFINITY;
    const point = known.get(index) ?? { lambda, losses: await measure(lambda) };
    known.set(index, point);
    return mean(point.losses);
  };
  let best = START;
  for (const step of STEPS) {
    for (let moved = true; moved; ) {
      moved = false;
      for (const next of [best - step, best + step]) {
        const [here, there] = [await meanAt(best), await meanAt(next)];
        if (there < here || (there === here && next < best)) {
          best = next;
          moved = true;
          break;
        }
      }
    }
  }
  const curve = [...known].sort(([a], [b]) => a - b).map(([, point]) => point);
  return { chosen: LAMBDA_GRID[best]!, curve };
}

function mean(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0) / values.length;
}
