/** Base, contributors and merge compared on the text that λ is searched for on. */
import type { Plan } from '../merge/plan/plan';
import type { Prepared } from '../merge/tensor/prepared';
import { calibrationTitle, heldOutSize } from './calibration';
import { type CalibrationOptions, openAhead, openPlan, singlePlan } from './calibration-context';
import { heldOutTexts, meanLosses } from './find-lambda';

/** Mean losses of a model on the held-out text of every contributor, in nats per token. */
export interface MeasuredAround {
  texts: { id: string; calibration: string; tokens: number }[];
  base: number[];
  contributors: { id: string; losses: number[] }[];
  merge: number[];
}

/**
 * Measures base, contributors and the merge of a plan.
 * @param reading a plan of the same models that says what they read
 * @throws AmalgamError as `calibrate`
 */
export async function measureAround(
  plan: Plan,
  prepared: Prepared | undefined,
  reading: Plan,
  options: CalibrationOptions,
): Promise<MeasuredAround> {
  const base = await singlePlan(plan.recipe.baseModel!, options.models);
  const context = await openAhead(reading, options, true, [base, plan]);
  const { open, shared, singles } = context;
  const { progress } = shared;
  try {
    const texts = await heldOutTexts(shared);
    progress.begin('comparing', singles.size + 2);
    const measured = async (id: string, of: Plan, exact: boolean, solved?: Prepared) => {
      const model = await openPlan(of, open, exact, solved);
      try {
        return await meanLosses(model.runner, texts, options.signal);
      } finally {
        model.close();
        progress.advance(1, id);
      }
    };
    const contributors = [];
    for (const [id, single] of singles) contributors.push({ id, losses: await measured(id, single, true) });
    return {
      texts: shared.contributors.map(({ id, source }, i) => ({
        id,
        calibration: calibrationTitle(source, heldOutSize(shared.size)),
        tokens: texts[i]!.reduce((sum, ids) => sum + ids.length - 1, 0),
      })),
      base: await measured(plan.recipe.baseModel!, base, true),
      contributors,
      merge: await measured('merge', plan, false, prepared),
    };
  } finally {
    context.close();
  }
}
