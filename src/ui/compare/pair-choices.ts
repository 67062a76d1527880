/** Which models can be compared: opened checkpoints, and adapters on the base they belong to. Pure. */

import { parseModelRef } from '../../formats/recipe';
import type { ModelInfo } from '../../reports/models';
import { contributorId, shortName } from '../state/built-recipe';
import { lineage } from '../state/lineage';
import type { StudioState } from '../state/studio-state';

interface PairChoice {
  /** `path` or `base+adapter`. */
  ref: string;
  label: string;
  group: 'Models' | 'Adapters on their base';
}

type PairState = Pick<StudioState, 'models' | 'recipe' | 'comparison'>;

/** Every model that can be a side; an adapter whose base is not opened stands on the recipe's base. */
export function pairChoices({ models, recipe }: Pick<PairState, 'models' | 'recipe'>): PairChoice[] {
  const checkpoints = models.filter((m) => m.kind === 'checkpoint');
  const names = shownNames(checkpoints);
  const choices: PairChoice[] = checkpoints.map((m) => ({
    ref: m.ref,
    label: names.get(m.ref) ?? m.ref,
    group: 'Models',
  }));
  for (const adapter of models.filter((m) => m.kind === 'adapter')) {
    const base = baseOf(adapter, checkpoints) ?? recipe.base;
    if (base === null) continue;
    choices.push({
      ref: contributorId(base, adapter.ref, models),
      label: `${names.get(base) ?? shortName(base)} + ${shortName(adapter.ref)}`,
      group: 'Adapters on their base',
    });
  }
  return choices;
}

interface ChosenPair {
  base: string | null;
  finetuned: string | null;
}

/** The pair as chosen, else what the recipe suggests: its base, and the last checkpoint or adapter made from it. */
export function pairOf(state: PairState): ChosenPair {
  const { models, recipe, comparison } = state;
  const refs = new Set(pairChoices(state).map((c) => c.ref));
  const known = (ref: string | null) => (ref !== null && refs.has(ref) ? ref : null);
  const base =
    known(comparison.base) ?? known(recipe.base) ?? models.find((m) => m.kind === 'checkpoint')?.ref;
  const made = recipe.contributors.map((c) => contributorId(recipe.base, c.ref, models));
  const suggested = [...made].reverse().find((ref) => refs.has(ref) && ref !== base);
  return { base: base ?? null, finetuned: known(comparison.finetuned) ?? suggested ?? null };
}

/** Why these two cannot be compared, or null. */
export function pairProblem({ base, finetuned }: ChosenPair): string | null {
  if (base === null) return 'Open a model first: it becomes the base of the comparison.';
  return finetuned === null ? 'Choose a model that was fine-tuned from the base.' : null;
}

/** `base`, `workshop`; `base + kitchen` for an adapter on its base. */
export function sideName(ref: string): string {
  const { model, adapter } = parseModelRef(ref);
  const last = (path: string) => path.split('/').filter(Boolean).at(-1) ?? path;
  return adapter ? `${last(model.path)} + ${last(adapter.path)}` : last(model.path);
}

/** A name for the files of this pair: `compare-base-workshop`. */
export function pairName(what: string, ...refs: readonly string[]): string {
  const names = refs.map((ref) => sideName(ref));
  return [what, ...names].join('-').replace(/[^A-Za-z0-9._-]+/g, '-');
}

function baseOf(adapter: ModelInfo, checkpoints: readonly ModelInfo[]): string | null {
  return checkpoints.find((m) => lineage(adapter, m).tone === 'ok')?.ref ?? null;
}

/** Short names where they tell models apart, whole references where they do not. */
function shownNames(models: readonly ModelInfo[]): Map<string, string> {
  const short = models.map((m) => shortName(m.ref));
  return new Map(
    models.map((m, i) => [m.ref, short.filter((name) => name === short[i]).length > 1 ? m.ref : short[i]!]),
  );
}
