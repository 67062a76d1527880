/** The LoRAs of a recipe whose output is one: how they are combined, opened, and whether they can be. */
import { COMBINATIONS_OF, type Combination, combinationsOf } from '../../formats/adapter-combination';
import { canonicalRef, formatModelRef, parseModelRef, type Recipe } from '../../formats/recipe';
import type { Adapter } from '../../inputs/adapter';
import { nameSome, type Problems, thrownProblem } from '../../inputs/problems';
import type { OpenByPath } from './recipe-models';

/** A LoRA that takes part, with what the recipe says about it. */
export interface AdapterContributor {
  ref: string;
  adapter: Adapter;
  parameters: Recipe['parameters'];
}

export type Refuse = (message: string, remedy: string, tensors?: string[]) => void;

/** The combination that a recipe names; else the first of its method for LoRAs, and for all else the cut of the merge's change. */
export async function combinationOf(
  recipe: Recipe,
  open: OpenByPath,
  refuse: Refuse,
): Promise<Combination | undefined> {
  const { mergeMethod, amalgam } = recipe;
  const known = combinationsOf(mergeMethod);
  const chosen = amalgam.combination;
  if (chosen === undefined) {
    // a share to keep says that something is cut
    if (amalgam.energy !== undefined || !(await areLoras(recipe, open))) return 'merged_svd';
    // of those that have a rank where one is named
    const ranked = known.find((one) => one.endsWith('svd') && one !== 'merged_svd');
    return (amalgam.rank === undefined ? undefined : ranked) ?? known[0];
  }
  if (known.includes(chosen)) return chosen;
  const owner = Object.entries(COMBINATIONS_OF).find(([, all]) => all.includes(chosen))![0];
  refuse(
    `The combination ${chosen} belongs to ${owner}, not to ${mergeMethod}.`,
    `Set merge_method: ${owner}, or combination: merged_svd.`,
  );
  return undefined;
}

/** Whether the contributors are LoRAs; what cannot be opened counts, and is told of when it is. */
async function areLoras({ models = [], baseModel }: Recipe, open: OpenByPath): Promise<boolean> {
  for (const { model } of models) {
    const ref = canonicalRef(model);
    if (parseModelRef(ref).adapter || (baseModel !== undefined && ref === canonicalRef(baseModel))) continue;
    try {
      if ((await open(ref)).kind !== 'adapter') return false;
    } catch (thrown) {
      thrownProblem(thrown);
    }
  }
  return true;
}

/** Opens the adapters alone, each once. */
export async function openContributors(
  recipe: Recipe,
  open: OpenByPath,
  refuse: Refuse,
  problems: Problems,
): Promise<AdapterContributor[]> {
  const found: AdapterContributor[] = [];
  const bases = new Set<string>();
  for (const { model, parameters } of recipe.models ?? []) {
    const ref = canonicalRef(model);
    const { model: base, adapter } = parseModelRef(ref);
    if (adapter) bases.add(formatModelRef({ model: base }));
    else if (recipe.baseModel !== undefined && ref === canonicalRef(recipe.baseModel)) continue;
    try {
      const opened = await open(formatModelRef({ model: adapter ?? base }));
      if (opened.kind === 'adapter') found.push({ ref, adapter: opened, parameters });
      else
        refuse(
          `${ref} is a whole model, and the output is to be an adapter.`,
          'Take it out, or set combination: merged_svd.',
        );
    } catch (thrown) {
      problems.add(thrownProblem(thrown));
    }
  }
  if (bases.size > 1)
    refuse(`The adapters stand on several bases: ${nameSome([...bases])}.`, 'Put all of them on one.');
  const trained = new Set(found.flatMap(({ adapter }) => adapter.config.baseModel ?? []));
  if (trained.size > 1) {
    problems.warn(
      'AdapterBaseDiffers',
      `The adapters were trained on different bases by their configs: ${nameSome([...trained])}.`,
      'Merge adapters of one base, unless you know that the bases are the same.',
    );
  }
  const images = found.filter(({ adapter }) => adapter.image);
  if (images.length > 0 && images.length < found.length) {
    refuse(`${images[0]!.ref} is of an image model, and others are not.`, 'Merge LoRAs of one base.');
  }
  const [first, ...others] = images;
  for (const { ref, adapter } of others) {
    if ([...adapter.updates.keys()].some((module) => first!.adapter.updates.has(module))) continue;
    refuse(
      `${ref} has no module in common with ${first!.ref}: they are of different models, or call the parts of one differently.`,
      'Take LoRAs of one model that were saved by the same tool.',
      [...adapter.updates.keys()].slice(0, 1),
    );
  }
  if (recipe.slices)
    refuse('Slices cut layers of models; adapters have none.', 'List the adapters under models.');
  else if (found.length === 0 && !problems.hasErrors()) {
    refuse('The recipe names no adapter.', 'List adapters under models: base+adapter.');
  }
  return found;
}

/** Only plain factors can be combined. */
export function checkMergeable(
  { path, config, origins, replaces, tokenRows, method, updates, rows }: Adapter,
  refuse: Refuse,
): void {
  const pairs = [...updates.values()];
  const what =
    method?.title ??
    rows?.values().next().value?.title ??
    (config.type === 'LORA' ? undefined : config.type) ??
    (config.dora ? 'DoRA' : undefined) ??
    (pairs.some(({ bias }) => bias) ? 'lora_bias' : undefined) ??
    (pairs.some(({ experts }) => experts !== undefined) ? 'target_parameters' : undefined) ??
    (replaces.size > 0 ? 'modules_to_save' : undefined) ??
    (tokenRows.size > 0 ? 'trainable_token_indices' : undefined);
  if (what)
    refuse(
      `${path} uses ${what}, which cannot be part of a merged adapter.`,
      'Set combination: merged_svd, or output: model.',
    );
  const own = [...origins.keys()].filter((name) => !updates.has(name.replace(/\.weight$/, '')));
  if (own.length > 0) {
    refuse(
      `${path} replaces tensors of the base, which a merged adapter cannot.`,
      'Set combination: merged_svd, or output: model.',
      own,
    );
  }
}
