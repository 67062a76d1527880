/** Settings of a merge tuned by CMA-ES, generation by generation: of one merge, or of several toward different aims at once. */
import { normals } from '../backend/philox';
import type { Recipe } from '../formats/recipe';
import { openCmaEs } from '../linalg/cma-es';
import type { BestRow } from '../reports/find-best';
import { type LossBlock, meanLoss } from '../reports/paired-error';
import { NEGLIGIBLE } from './candidates';
import type { Outcome } from './measured-targets';
import type { SearchSpace } from './search-space';

/** A search ends when so many generations together brought nothing that anybody notices. */
export const PATIENCE = 2;

/** What is to be small: a mean of the texts' losses in which they count differently. */
export type Aim = readonly number[] | null;

/** Loss of a merge by an aim, from its losses text by text. */
export function aimedLoss(texts: readonly LossBlock[][], aim: Aim): number {
  if (!aim) return meanLoss(texts).mean;
  return texts.reduce((sum, text, i) => sum + aim[i]! * meanLoss([text]).mean, 0);
}

export interface TuningStart {
  row: BestRow;
  space: SearchSpace;
}

export function openTuning({ row, space }: TuningStart, seed: number, aim: Aim) {
  const cma = openCmaEs(space.start, 1);
  /** The least loss after each generation. */
  const least = [aimedLoss(row.blocks.tuning!, aim)];
  let asked: Recipe[] = [];
  let best: { recipe: Recipe; tuning: LossBlock[][] } | undefined;
  return {
    row,
    aim,
    population: cma.population,
    get generations() {
      return least.length - 1;
    },
    /** Where it found something better than where it began. */
    get best() {
      return best;
    },
    get ended() {
      const then = least.at(-1 - PATIENCE);
      return then !== undefined && then - least.at(-1)! < NEGLIGIBLE;
    },
    ask(): Recipe[] {
      const drawn = normals(cma.population * space.start.length, [seed, least.length]);
      asked = cma.ask(drawn).map((point) => space.recipe(space.values(point)));
      return asked;
    },
    tell(outcomes: readonly Outcome[]): void {
      const losses = outcomes.map((outcome) =>
        'error' in outcome ? Number.POSITIVE_INFINITY : aimedLoss(outcome.blocks.tuning!, aim),
      );
      cma.tell(losses);
      const now = least.at(-1)!;
      const at = losses.indexOf(Math.min(...losses));
      const outcome = outcomes[at]!;
      if (losses[at]! < now && 'blocks' in outcome) {
        best = { recipe: asked[at]!, tuning: outcome.blocks.tuning! };
      }
      least.push(Math.min(now, losses[at]!));
    },
  };
}

/** Aims from one text alone to the other, at even distances. */
export function aimsBetween(points: number): number[][] {
  return Array.from({ length: points }, (_, i) => {
    const share = i / (points - 1);
    return [1 - share, share];
  });
}
