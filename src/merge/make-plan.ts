/** From a recipe to a plan: everything a run will do, from configs and headers alone. */
import type { Recipe } from '../formats/recipe';
import { inTensorOrder } from '../models/tensor-role';
import { findFile, type ModelFile } from '../sources/model-folder';
import type { Checkpoint } from './checkpoint';
import { planExtras } from './extras';
import type { MergeMethod } from './method';
import type { Model } from './model-tensors';
import type { OpenModel } from './open-model';
import { unfitModels } from './pairing';
import { checkWholeModel } from './parameter-conflicts';
import type { Plan } from './plan';
import { bytesToDownload, bytesToWrite, peakBytes, planInputs } from './plan-bytes';
import { planScope } from './plan-tensors';
import { collectProblems, type Problems } from './problems';
import {
  configDonor,
  modelOf,
  type OpenByPath,
  openRecipeModels,
  refsOf,
  tokenizerDonor,
} from './recipe-models';
import { checkParameterNames } from './recipe-parameters';
import { recipeSlices, type SliceOutline } from './recipe-slices';
import { recipeScopes, referenceOf } from './scopes';
import { finishShards, inputName } from './shards';
import { stackedLayers, warnOfLayerKinds } from './stacked-layers';
import { checkPatterns } from './tensor-choice';
import { settleHeads } from './tied-heads';
import { compareTokenizers } from './tokenizers';

/**
 * Makes the plan of a recipe. Mismatches do not throw: they are in `plan.problems`, each with its remedy, and then the
 * plan has no shards.
 *
 * @param open opens a model by its path; a model it cannot open becomes a problem of the plan
 * @param methods every merge method by id
 * @param cached sha256 of the Hub files that are in the cache already
 * @throws AmalgamError `Cancelled` only
 */
export async function makePlan(
  recipe: Recipe,
  open: OpenByPath,
  methods: ReadonlyMap<string, MergeMethod>,
  cached: ReadonlySet<string> = new Set(),
): Promise<Plan> {
  const problems = collectProblems();
  const method = methods.get(recipe.mergeMethod);
  if (!method) {
    problems.add({
      severity: 'error',
      code: 'MethodUnknown',
      message: `There is no merge method called ${JSON.stringify(recipe.mergeMethod)}.`,
      remedy: `Choose one of ${[...methods.keys()].join(', ')}.`,
    });
    return emptyPlan(recipe, problems);
  }
  checkParameterNames(recipe, method, problems);
  const slices = recipeSlices(recipe, method, problems);
  const opened = await openRecipeModels(recipe, slices, open, problems);
  if (slices.length === 0) refuseNothing(problems);
  if (problems.hasErrors()) return emptyPlan(recipe, problems);

  const models = new Map<string, Model>();
  for (const ref of slices.flatMap(refsOf)) {
    if (!models.has(ref)) models.set(ref, modelOf(ref, opened, problems));
  }
  const contributors = [...new Set(slices.flatMap((slice) => slice.sources.map((source) => source.ref)))];
  refuseAdaptedBase(slices, models, problems);
  const reference = referenceOf(slices[0]!, models);
  const unfit = unfitModels(reference, [...models.values()], recipe.models !== undefined, problems);
  const tied = settleHeads(
    [...models.values()].filter((model) => !unfit.has(model)),
    problems,
  );
  const scopes = recipeScopes(recipe, slices, models, problems);
  const context = { recipe, method, contributors, unfit, problems };
  const tensors = inTensorOrder(scopes.flatMap((scope) => planScope(scope, context)));
  if (tensors.length === 0) refuseNothing(problems);
  checkPatterns(recipe, tensors, models.values(), problems);
  checkWholeModel(method, tensors, problems);

  const donors = {
    config: configDonor(recipe, reference, opened),
    tokenizer: tokenizerDonor(recipe, reference, opened),
  };
  await compareTokenizers(
    donors.tokenizer,
    [...models.values()].map((model) => model.checkpoint),
    problems,
  );
  const base = slices.find((slice) => slice.base)?.base?.ref;
  const draft: Plan = {
    ...emptyPlan(recipe, problems),
    ...(base === undefined ? {} : { base }),
    contributors,
    tensors,
    layers: new Set(tensors.map((tensor) => tensor.role.layer).filter((layer) => layer !== null)).size,
  };
  return problems.hasErrors()
    ? draft
    : finishPlan(draft, method, donors, opened, { tied, slices }, problems, cached);
}

/** Adds what only a clean plan has: small files, inputs, shards and the numbers of bytes. */
function finishPlan(
  draft: Plan,
  method: MergeMethod,
  donors: { config: Checkpoint; tokenizer: Checkpoint },
  opened: ReadonlyMap<string, OpenModel>,
  output: { tied: boolean | undefined; slices: readonly SliceOutline[] },
  problems: Problems,
  cached: ReadonlySet<string>,
): Plan {
  const { recipe, tensors } = draft;
  const folders = new Map([...opened.values()].map((model) => [model.path, model.folder]));
  const fileOf = (folder: string, file: string): ModelFile => findFile(folders.get(folder)!, file)!;
  const layerOrder = recipe.slices && stackedLayers(output.slices);
  const extras = planExtras(
    recipe,
    method,
    donors.config,
    donors.tokenizer,
    opened,
    { tied: output.tied, tensors, ...(layerOrder ? { layerOrder } : {}) },
    problems,
  );
  warnOfLayerKinds(donors.config, layerOrder, problems);
  const copied = extras.flatMap(({ content }) =>
    'folder' in content
      ? [[folders.get(content.folder)!, fileOf(content.folder, content.file)] as const]
      : [],
  );
  const inputs = planInputs(tensors, fileOf);
  const inputFiles = inputs.map(({ folder, file }) => [folders.get(folder)!, fileOf(folder, file)] as const);
  const hashes = new Map(
    inputs.flatMap(({ folder, file }) => {
      const { sha256 } = fileOf(folder, file);
      return sha256 === undefined ? [] : [[inputName(folder, file), sha256] as const];
    }),
  );
  const shards = finishShards({ recipe, tensors, inputs }, hashes);
  return {
    ...draft,
    problems: problems.list(),
    shards,
    extras,
    inputs,
    bytesToDownload: bytesToDownload([...inputFiles, ...copied], cached),
    bytesToRead: inputs.reduce((sum, input) => sum + input.readBytes, 0),
    bytesToWrite: bytesToWrite(
      shards,
      extras,
      copied.reduce((sum, [, file]) => sum + file.byteLength, 0),
    ),
    peakBytes: peakBytes(tensors),
  };
}

function emptyPlan(recipe: Recipe, problems: Problems): Plan {
  return {
    recipe,
    problems: problems.list(),
    contributors: [],
    tensors: [],
    shards: [],
    extras: [],
    inputs: [],
    layers: 0,
    bytesToDownload: 0,
    bytesToRead: 0,
    bytesToWrite: 0,
    peakBytes: 0,
  };
}

/** The run takes the base as it is stored. */
function refuseAdaptedBase(
  slices: readonly SliceOutline[],
  models: ReadonlyMap<string, Model>,
  problems: Problems,
): void {
  for (const ref of new Set(slices.flatMap((slice) => (slice.base ? [slice.base.ref] : [])))) {
    if (!models.get(ref)!.adapter) continue;
    problems.add({
      severity: 'error',
      code: 'BaseWithAdapter',
      message: `The base ${ref} is a model with an adapter, which Amalgam does not take as a base.`,
      remedy:
        'Merge the adapter into its model first (passthrough of this one model), and use the result as base.',
    });
  }
}

function refuseNothing(problems: Problems): void {
  if (problems.hasErrors()) return;
  problems.add({
    severity: 'error',
    code: 'NothingToMerge',
    message: 'The recipe describes an output without tensors.',
    remedy: 'Add models that hold weights.',
  });
}
