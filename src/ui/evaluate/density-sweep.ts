/** Perplexity over density, method by method: which merges are measured, and the curves they make. Pure. */

import type { MergeMethod } from '../../merge/method';
import { methods } from '../../merge/methods/index';
import type { ModelInfo } from '../../reports/models';
import { methodName } from '../format/method-name';
import { buildRecipe } from '../state/built-recipe';
import { type EvaluationRow, recipeByMethod, targetKey } from '../state/evaluation-rows';
import type { EvaluationSlice } from '../state/evaluation-state';
import { outcomeKey } from '../state/evaluation-table';
import { effectiveSpecs, type RecipeState, setContributorParameter } from '../state/recipe-state';
import { recipeProblems } from '../state/recipe-validation';

interface SweepRow extends EvaluationRow {
  method: MergeMethod;
  density: number;
}

interface SweepPoint {
  density: number;
  /** e to the mean loss over the chosen texts; null until it is measured on each of them. */
  perplexity: number | null;
  failed: boolean;
}

export interface SweepCurve {
  method: MergeMethod;
  points: SweepPoint[];
}

/** Most densities of one sweep. */
const MOST = 20;

/** Densities in ascending order, or why the text is none. */
export function parseDensities(text: string): number[] | string {
  const words = text.split(/[\s,;]+/).filter(Boolean);
  const values = [...new Set(words.map(Number))].sort((a, b) => a - b);
  if (values.length < 2) return 'Write at least two densities.';
  if (values.length > MOST) return `At most ${MOST} densities at a time.`;
  const all = values.every((v) => v > 0 && v <= 1);
  return all ? values : 'Densities are above 0 and at most 1.';
}

/** Methods that keep a share of each change, and fit this recipe. */
export function sweepMethods(recipe: RecipeState, models: readonly ModelInfo[]): MergeMethod[] {
  return methods.filter((method) => {
    const changed = recipeByMethod(recipe, method);
    const settings = effectiveSpecs(method.modelParameters, changed.parameters);
    const hasDensity = settings.some(({ name, spec }) => name === 'density' && spec.kind === 'number');
    return hasDensity && recipeProblems(changed, models, method).length === 0;
  });
}

/** `TIES`; `DELLA (della_linear)` where methods share the name of their paper. */
export function shortTitle({ id, title }: MergeMethod): string {
  const name = methodName({ title });
  const alone = methods.filter((other) => methodName(other) === name).length === 1;
  return alone ? name : `${name} (${id})`;
}

/** The recipe's own method and the two best-known ways of dropping. */
export function proposedMethods(recipe: RecipeState, fitting: readonly MergeMethod[]): string[] {
  const known = new Set([recipe.method, 'ties', 'dare_ties']);
  return fitting.filter(({ id }) => known.has(id)).map(({ id }) => id);
}

/** The recipe by a method, every contributor with this density. */
export function recipeAt(recipe: RecipeState, method: MergeMethod, density: number): RecipeState {
  return recipe.contributors.reduce(
    (made, { ref }) => setContributorParameter(made, ref, 'density', density),
    recipeByMethod(recipe, method),
  );
}

/** Every merge of a sweep, as rows that can be measured. */
export function sweepRows(
  recipe: RecipeState,
  models: readonly ModelInfo[],
  chosen: readonly MergeMethod[],
  densities: readonly number[],
): SweepRow[] {
  return chosen.flatMap((method) =>
    densities.map((density): SweepRow => {
      const changed = recipeAt(recipe, method, density);
      return {
        id: `sweep ${method.id} ${density}`,
        group: 'merges',
        label: `${shortTitle(method)} ${density}`,
        title: `${method.title} with density ${density}`,
        colour: null,
        target: { recipe: buildRecipe(changed, models, method) },
        method,
        current: false,
        density,
      };
    }),
  );
}

/** What is known of these rows on the chosen texts, as one curve per method. */
export function sweepCurves(rows: readonly SweepRow[], evaluation: EvaluationSlice): SweepCurve[] {
  const texts = evaluation.texts.filter((t) => t.chosen);
  const curves = new Map<string, SweepCurve>();
  for (const { method, density, target } of rows) {
    const outcomes = texts.map((text) =>
      evaluation.outcomes.get(outcomeKey(targetKey(target), text, evaluation)),
    );
    const losses = outcomes.flatMap((o) => (o && 'report' in o ? [o.report.meanNll] : []));
    const whole = losses.length === texts.length && losses.length > 0;
    const curve = curves.get(method.id) ?? { method, points: [] };
    curve.points.push({
      density,
      perplexity: whole ? Math.exp(losses.reduce((a, b) => a + b, 0) / losses.length) : null,
      failed: outcomes.some((o) => o && 'error' in o),
    });
    curves.set(method.id, curve);
  }
  return [...curves.values()];
}

/** Where a point is: its method and density. */
export interface SweepPlace {
  method: MergeMethod;
  density: number;
  perplexity: number;
}

/** Every measured point, curve by curve. */
export function measuredPoints(curves: readonly SweepCurve[]): SweepPlace[] {
  return curves.flatMap(({ method, points }) =>
    points.flatMap(({ density, perplexity }) =>
      perplexity === null ? [] : [{ method, density, perplexity }],
    ),
  );
}

/** The least perplexity; of equal ones the lower density. Null before anything is measured. */
export function bestPoint(curves: readonly SweepCurve[]): SweepPlace | null {
  return measuredPoints(curves).reduce<SweepPlace | null>(
    (best, p) =>
      !best ||
      p.perplexity < best.perplexity ||
      (p.perplexity === best.perplexity && p.density < best.density)
        ? p
        : best,
    null,
  );
}

/** Is the job at work a sweep? */
export function isSweep({ work }: EvaluationSlice): boolean {
  return work?.groups[0]?.[0]?.rowId.startsWith('sweep ') ?? false;
}
