/** Which models a tool can be given: opened checkpoints, and adapters on the base they belong to. Pure. */
import { parseModelRef, repositoriesOf } from '../../formats/recipe';
import type { ModelInfo } from '../../reports/models';
import { contributorId, shortName } from './built-recipe';
import { lineage } from './roles';
import type { StudioState } from './studio-state';

interface ModelChoice {
  /** `path` or `base+adapter`. */
  ref: string;
  label: string;
  group: 'Models' | 'Adapters on their base';
}

type ModelsState = Pick<StudioState, 'models' | 'recipe'>;

/** Every model that can be chosen; an adapter whose base is not opened stands on the recipe's base. */
export function modelChoices({ models, recipe }: ModelsState): ModelChoice[] {
  const checkpoints = models.filter((m) => m.kind === 'checkpoint');
  const names = shownNames(checkpoints);
  const choices: ModelChoice[] = checkpoints.map((m) => ({
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

/** Every LoRA, on its base where that is open. */
export function loraChoices(state: ModelsState): { value: string; label: string }[] {
  const onBase = modelChoices(state).filter(({ group }) => group === 'Adapters on their base');
  return state.models.flatMap(({ ref, kind }) => {
    if (kind !== 'adapter') return [];
    const own = onBase.find(
      (choice) => parseModelRef(choice.ref).adapter?.path === parseModelRef(ref).model.path,
    );
    return [{ value: own?.ref ?? ref, label: shortName(ref) }];
  });
}

/** The model as chosen, else the recipe's base, else the first checkpoint there is. */
export function chosenModel({ models, recipe }: ModelsState, chosen: string | null): string | null {
  const isOpen = (ref: string | null) => ref !== null && checkpointOf(models, ref) !== undefined;
  const first = models.find((m) => m.kind === 'checkpoint')?.ref ?? null;
  return [chosen, recipe.base].find(isOpen) ?? first;
}

/** The opened checkpoint of `base`, or of `base+adapter`. */
export function checkpointOf(models: readonly ModelInfo[], ref: string): ModelInfo | undefined {
  const [path] = repositoriesOf(ref);
  return models.find((m) => m.ref === path);
}

/** `base`, `workshop`; `base + kitchen` for an adapter on its base. */
export function choiceName(ref: string): string {
  const { model, adapter } = parseModelRef(ref);
  const last = (path: string) => path.split('/').filter(Boolean).at(-1) ?? path;
  return adapter ? `${last(model.path)} + ${last(adapter.path)}` : last(model.path);
}

/** A name for files made of these models: `compare-base-workshop`. */
export function fileNameOf(...parts: readonly string[]): string {
  return parts
    .map(choiceName)
    .join('-')
    .replace(/[^A-Za-z0-9._-]+/g, '-');
}

function baseOf(adapter: ModelInfo, checkpoints: readonly ModelInfo[]): string | null {
  return checkpoints.find((m) => lineage(adapter, m).tone === 'ok')?.ref ?? null;
}

/** Short names where they distinguish the models, whole references where they do not. */
function shownNames(models: readonly ModelInfo[]): Map<string, string> {
  const short = models.map((m) => shortName(m.ref));
  return new Map(
    models.map((m, i) => [m.ref, short.filter((name) => name === short[i]).length > 1 ? m.ref : short[i]!]),
  );
}

// The two models of a comparison, and why there are none. Pure.

type PairState = Pick<StudioState, 'models' | 'recipe'> & {
  tools: { models: Pick<StudioState['tools']['models'], 'base' | 'finetuned'> };
};

interface ChosenPair {
  base: string | null;
  finetuned: string | null;
}

/** The pair as chosen, else what the recipe suggests: its base, and the last checkpoint or adapter made from it. */
export function pairOf(state: PairState): ChosenPair {
  const { models, recipe, tools } = state;
  const refs = new Set(modelChoices(state).map((c) => c.ref));
  const known = (ref: string | null) => (ref !== null && refs.has(ref) ? ref : null);
  const base =
    known(tools.models.base) ?? known(recipe.base) ?? models.find((m) => m.kind === 'checkpoint')?.ref;
  const made = recipe.contributors.map((c) => contributorId(recipe.base, c.ref, models));
  const suggested = [...made].reverse().find((ref) => refs.has(ref) && ref !== base);
  return { base: base ?? null, finetuned: known(tools.models.finetuned) ?? suggested ?? null };
}

/** Why these two cannot be compared, or null. */
export function pairProblem({ base, finetuned }: ChosenPair): string | null {
  if (base === null) return 'Open a model first: it becomes the base of the pair.';
  return finetuned === null ? 'Choose a model that was fine-tuned from the base.' : null;
}
