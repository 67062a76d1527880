/** The models of a recipe: opened, put together with their adapters, and those the small files come from. */

import { counted } from '../../formats/quantity';
import { canonicalRef, formatModelRef, parseModelRef, type Recipe, type RepoRef } from '../../formats/recipe';
import { SHARD_INDEX } from '../../formats/shard-index';
import type { Adapter } from '../../inputs/adapter';
import type { Checkpoint } from '../../inputs/checkpoint';
import type { Model } from '../../inputs/model';
import { modelTensors } from '../../inputs/model-tensors';
import type { OpenModel } from '../../inputs/opened-model';
import { collectProblems, type Problems, thrownProblem } from '../../inputs/problems';
import type { PlanProblem } from '../../reports/plan';
import { findFile } from '../../sources/model-folder';
import type { SliceOutline } from './recipe-slices';

/** Opens the model a recipe names: `path` or `path@revision`, never with an adapter behind it. */
export type OpenByPath = (path: string) => Promise<OpenModel>;

/** References of a slice, its base first. */
export function refsOf(slice: SliceOutline): string[] {
  return [...(slice.base ? [slice.base.ref] : []), ...slice.sources.map((source) => source.ref)];
}

/** Opens every model the recipe names, each once, and checks that each is what its place needs. */
export async function openRecipeModels(
  recipe: Recipe,
  slices: readonly SliceOutline[],
  open: OpenByPath,
  problems: Problems,
): Promise<Map<string, OpenModel>> {
  const opened = new Map<string, OpenModel>();
  const wanted = new Map<string, 'checkpoint' | 'adapter'>();
  const donors = [recipe.baseModel, tokenizerRef(recipe)].filter((ref) => ref !== undefined);
  for (const ref of [...donors, ...slices.flatMap(refsOf)]) {
    const { model, adapter } = parseModelRef(ref);
    wanted.set(repoKey(model), 'checkpoint');
    if (adapter) wanted.set(repoKey(adapter), 'adapter');
  }
  for (const [key, kind] of wanted) {
    try {
      const model = await open(key);
      opened.set(key, model);
      if (model.kind !== kind) problems.add(wrongKind(key, model, recipe));
    } catch (thrown) {
      problems.add(thrownProblem(thrown));
    }
  }
  return opened;
}

function wrongKind(key: string, found: OpenModel, { baseModel }: Recipe): PlanProblem {
  const base = baseModel === undefined ? 'base' : parseModelRef(baseModel).model.path;
  if (found.kind === 'adapter' && found.image) return imageAlone(key);
  const beside = ['model.safetensors', SHARD_INDEX].find((file) => findFile(found.folder, file));
  return found.kind === 'adapter'
    ? {
        severity: 'error',
        code: 'AdapterAlone',
        message: `${key} is an adapter, and is named as if it were a model.${beside ? ` Its folder holds a model too (${beside}), which transformers does not load beside an adapter either.` : ''}`,
        remedy: `Write the model it belongs to in front of it: ${base}+${key}.${beside ? ' For the model in its folder, take adapter_config.json and adapter_model.safetensors out of a copy of it.' : ''}`,
      }
    : {
        severity: 'error',
        code: 'NotAnAdapter',
        message: `${key} stands behind a “+”, but it is a whole model.`,
        remedy: `List ${key} as a model of its own.`,
      };
}

function imageAlone(key: string): PlanProblem {
  return {
    severity: 'error',
    code: 'AdapterAlone',
    message: `${key} is a LoRA of an image model, and is named as if it were a model.`,
    remedy:
      'Write the checkpoint in front of it (base+LoRA), or merge it with others into a LoRA: merge_method: task_arithmetic and, under amalgam, output: adapter (--adapter).',
  };
}

/** A model of the recipe, with its adapter. All parts are open. `isNotTaken`, `isCast`: as of {@link modelTensors} */
export function modelOf(
  ref: string,
  opened: ReadonlyMap<string, OpenModel>,
  problems: Problems,
  isNotTaken?: (name: string) => boolean,
  isCast?: boolean,
): Model {
  const { model, adapter } = parseModelRef(ref);
  const made = modelTensors(
    ref,
    opened.get(repoKey(model)) as Checkpoint,
    adapter && (opened.get(repoKey(adapter)) as Adapter),
    problems,
    isNotTaken,
    isCast,
  );
  requireBothEnds(made, problems);
  return made;
}

/** An adapter that brings one end with more rows than the other has was saved without the other. */
function requireBothEnds(
  { ref, adapter, embedding = '', head = '', tensors, checkpoint }: Model,
  problems: Problems,
): void {
  const [first, last] = [tensors.get(embedding), tensors.get(head)];
  if (!adapter || !first || !last || first.shape[0] === last.shape[0]) return;
  const own = [first, last].flatMap(({ name }) => checkpoint.tensors.get(name)?.shape[0] ?? []);
  if (own.length === 0 || own.some((rows) => rows !== own[0])) return;
  const [brought, other, tensor, left] =
    first.shape[0] === own[0]
      ? ['a head', 'the embedding', last, first]
      : ['an embedding', 'the head', first, last];
  if (![...adapter.replaces.values()].includes(tensor.view.origin)) return;
  problems.error(
    'AdapterInvalid',
    `${adapter.path} brings ${brought} of ${counted(tensor.shape[0]!, 'row')} for ${ref}, but not ${other} it was trained with, which has ${counted(left.shape[0]!, 'row')} here.`,
    'Save the adapter with both of its ends (save_embedding_layers=True, or both in modules_to_save).',
    [first.name, last.name],
  );
}

/**
 * Models that give small files: `config` the base, also of a method that computes without one, and `source` the model
 * that `tokenizer_source` names, else the same. Faults of one that is not merged are nobody's concern.
 */
export function donorModels(
  recipe: Recipe,
  reference: Model,
  models: ReadonlyMap<string, Model>,
  opened: ReadonlyMap<string, OpenModel>,
): { config: Model; source: Model } {
  const model = (ref: string) =>
    models.get(canonicalRef(ref)) ?? modelOf(canonicalRef(ref), opened, collectProblems());
  const config = recipe.baseModel === undefined ? reference : model(recipe.baseModel);
  const ref = tokenizerRef(recipe);
  return { config, source: ref === undefined ? config : model(ref) };
}

/** The model that `tokenizer_source` names, or undefined where it is the base, the union or not said. */
function tokenizerRef({ tokenizerSource }: Recipe): string | undefined {
  return tokenizerSource === 'base' || tokenizerSource === 'union' ? undefined : tokenizerSource;
}

function repoKey(repo: RepoRef): string {
  return formatModelRef({ model: repo });
}
