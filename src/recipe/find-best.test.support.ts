import type { Recipe } from '../formats/recipe';
import type { RunTarget } from '../reports/evaluate';
import { BEST_STEPS, type BestRow, type FindBestRequest, type TextPart } from '../reports/find-best';
import { type LossBlock, meanLoss } from '../reports/paired-error';
import { findBest } from './find-best-job';
import type { BestBench, Outcome } from './measured-targets';

export const recipe: Recipe = {
  mergeMethod: 'ties',
  baseModel: 'base',
  models: ['a', 'b'].map((model) => ({ model, parameters: { weight: 1, density: 0.2 } })),
  parameters: { lambda: 1 },
  amalgam: {},
};
const request: FindBestRequest = {
  ...{ recipe, texts: [], steps: BEST_STEPS, budget: 1e6, seed: 3, engine: 'cpu' },
};

export type Loss = (target: RunTarget, part: TextPart) => number;

/** Distance from weights times λ of 0.6 and 1.3: where task arithmetic has its floor. */
export const valley: Loss = (target) => {
  if ('model' in target) return 4;
  const { mergeMethod, parameters, models = [] } = target.recipe;
  if (mergeMethod !== 'task_arithmetic') return 3;
  const [a, b] = models.map((of) => Number(of.parameters.weight) * Number(parameters.lambda ?? 1)) as [
    number,
    number,
  ];
  return 1 + (a - 0.6) ** 2 + (b - 1.3) ** 2;
};

/** A bench of two texts in ten blocks, which fluctuate alike for all, and a little for each. */
export function benchOf(
  loss: Loss,
  fluctuation = 0,
): BestBench & { asked: { targets: RunTarget[]; parts: TextPart[] }[] } {
  const asked: { targets: RunTarget[]; parts: TextPart[] }[] = [];
  const blocksOf = (target: RunTarget, part: TextPart): LossBlock[][] =>
    [0, 1].map((text) =>
      Array.from({ length: 10 }, (_, i) => {
        const turns = 1 + (JSON.stringify(target).length % 4);
        const own = fluctuation * Math.sin((i * turns * Math.PI) / 5 + text);
        return { loss: 64 * (loss(target, part) + Math.sin((i * Math.PI) / 5) + own), tokens: 64 };
      }),
    );
  return {
    key: 'bench',
    texts: ['a', 'b'].map((name) => ({ name, kind: 'generated' })),
    seconds: 0,
    rest: 0,
    reported: 1,
    opening: 0,
    asked,
    async measure(targets, parts) {
      asked.push({ targets: [...targets], parts: [...parts] });
      return targets.map((target): Outcome => {
        if ('recipe' in target && target.recipe.mergeMethod === 'karcher') {
          return { error: { code: 'LimitExceeded', message: 'too large', hint: '' } };
        }
        return { blocks: Object.fromEntries(parts.map((part) => [part, blocksOf(target, part)])) };
      });
    },
    workOf: (grams) => grams.length,
    async solve(grams, _, onProgress) {
      onProgress(1);
      return grams.map(() => true);
    },
  };
}

export async function run(
  bench: BestBench,
  change: Partial<FindBestRequest> = {},
  stopAfter = Number.POSITIVE_INFINITY,
) {
  const stop = new AbortController();
  const told = new Map<string, BestRow>();
  let messages = 0;
  const report = await findBest({ ...request, ...change }, bench, {
    signal: stop.signal,
    onProgress({ rows }) {
      for (const row of rows) told.set(row.id, row);
      if (++messages === stopAfter) stop.abort();
    },
  });
  return { report, told };
}

export const loss = (row: BestRow, part: TextPart) => meanLoss(row.blocks[part]!).mean;
