/** From a recipe to a plan: everything a run will do, from configs and headers alone. */

import { orMeant } from '../../formats/names';
import type { Recipe } from '../../formats/recipe';
import type { Checkpoint } from '../../inputs/checkpoint';
import type { Model } from '../../inputs/model';
import { embeddingRows, storedEmbeddingRows } from '../../inputs/model-tensors';
import type { OpenModel } from '../../inputs/opened-model';
import { collectProblems, type Problems } from '../../inputs/problems';
import { inputName } from '../../inputs/stored-tensor';
import { hasTokenRows, inTensorOrder, tensorRole } from '../../models/tensor-role';
import { findFile, type ModelFile, type ModelFolder } from '../../sources/model-folder';
import type { MergeMethod } from '../method';
import { unknownKeys, unknownParameters } from '../recipe-names';
import { withChatTemplate } from '../vocabulary/chat-template';
import { resolveVocabulary } from '../vocabulary/resolved-vocabulary';
import { checkRows, checkTokenIds, endsOfText, vocabularyFiles } from '../vocabulary/vocabulary-files';
import { type OutputShape, placesOf, planExtras, type VocabularyFiles } from './extras';
import { extraText, planOutputGguf, writtenExtras } from './gguf-plan';
import { checkCopied, checkModules } from './other-files';
import { unfitModels } from './pairing';
import { checkDensities, checkWholeModel } from './parameter-conflicts';
import type { Plan, TensorPlan } from './plan';
import { bytesToDownload, bytesToWrite, peakBytes, planInputs } from './plan-bytes';
import { donorModels, modelOf, type OpenByPath, openRecipeModels, refsOf } from './recipe-models';
import { recipeSlices, type SliceOutline } from './recipe-slices';
import { recipeScopes, referenceOf } from './scopes';
import { finishShards } from './shards';
import { spectralBytes } from './spectral-cost';
import { checkStack, stackedLayers } from './stacked-layers';
import { checkPatterns, leavesOut, leftOut } from './tensor-choice';
import { planScope } from './tensor-plans';
import { resolveCopies, resolveHeads } from './tied-heads';

/**
 * Makes the plan of a recipe. Mismatches do not throw: they are in `plan.problems`, each with its remedy, and then the
 * plan has no shards.
 *
 * @param open opens a model by its path; a model it cannot open becomes a problem of the plan
 * @param methods every merge method by id
 * @param cached sha256 of the Hub files that are in the cache already
 * @throws AmalgamError `Canceled` only
 */
export async function makePlan(
  recipe: Recipe,
  open: OpenByPath,
  methods: ReadonlyMap<string, MergeMethod>,
  cached: ReadonlyMap<string, number> = new Map(),
): Promise<Plan> {
  const problems = collectProblems();
  const method = methods.get(recipe.mergeMethod);
  if (!method) {
    problems.error(
      'MethodUnknown',
      `There is no merge method called ${JSON.stringify(recipe.mergeMethod)}${orMeant(recipe.mergeMethod, [...methods.keys()])}`,
      `Choose one of ${[...methods.keys()].join(', ')}.`,
    );
    return emptyPlan(recipe, problems);
  }
  for (const problem of unknownKeys(recipe)) problems.add(problem);
  if (recipe.amalgam.output === 'adapter') {
    // few recipes do, and the first plan waits for none of it
    const { planAdapter } = await import('./adapter-plan');
    const planModels = (models: Recipe) => makePlan(models, open, methods, cached);
    const planned = await planAdapter(recipe, method, open, problems, cached, planModels);
    return { ...emptyPlan(recipe, problems), ...planned };
  }
  for (const problem of unknownParameters(recipe, method)) problems.add(problem);
  const slices = recipeSlices(recipe, method, problems);
  const opened = await openRecipeModels(recipe, slices, open, problems);
  if (slices.length === 0) refuseNothing(problems);
  if (problems.hasErrors()) return emptyPlan(recipe, problems);

  const models = new Map<string, Model>();
  const isLeftOut = (name: string) => leftOut(recipe, name);
  for (const ref of slices.flatMap(refsOf)) {
    if (models.has(ref)) continue;
    // what is left out is the base's, or the first model's where there is none, and in slices goes by other names
    const gives = recipe.slices !== undefined || ref === (slices[0]!.base ?? slices[0]!.sources[0])?.ref;
    models.set(
      ref,
      modelOf(ref, opened, problems, gives ? undefined : isLeftOut, recipe.outDtype !== undefined),
    );
  }
  // whatever else is wrong with packed weights follows from their being packed
  const packed = problems.list().filter(({ code }) => code === 'Quantized');
  if (packed.length > 0) return { ...emptyPlan(recipe, problems), problems: packed };
  // nor does a model that is not whole in itself tell whether it belongs to the others
  if ([...models.values()].some(({ isFaulty }) => isFaulty)) return emptyPlan(recipe, problems);
  const contributors = [...new Set(slices.flatMap((slice) => slice.sources.map((source) => source.ref)))];
  const reference = referenceOf(slices[0]!, models);
  const unfit = await unfitModels(reference, [...models.values()], recipe.models !== undefined, problems);
  const fitting = [...models.values()].filter((model) => !unfit.has(model));
  resolveCopies(fitting, problems);
  const tied = resolveHeads(fitting, problems);
  const donor = donorModels(recipe, reference, models, opened);
  const storedRows = storedEmbeddingRows(donor.config);
  const base = slices.find((slice) => slice.base)?.base?.ref;
  const vocabulary = await resolveVocabulary(
    {
      recipe,
      models: [
        reference,
        ...[...models.values()].filter(
          (m) => m !== reference && !unfit.has(m) && !keepsEnds(recipe, reference),
        ),
      ],
      base: base === undefined ? undefined : models.get(base),
      ...donor,
    },
    problems,
  );
  const rows = embeddingRows(reference);
  const scopes = recipeScopes(recipe, slices, models, problems);
  const { isImage } = reference.checkpoint;
  const roleOf = isImage ? (await import('../../models/image-role')).imageRole : tensorRole;
  const asked = { vocabularyAsked: vocabulary.asked, fixed: new Map() };
  const context = { recipe, method, unfit, ...asked, problems, roleOf };
  const tensors = inTensorOrder(scopes.flatMap((scope) => planScope(scope, context)));
  if (tensors.length === 0) refuseNothing(problems);
  checkPatterns(recipe, tensors, models.values(), problems);
  checkWholeModel(method, tensors, problems);
  checkDensities(method, tensors, problems);
  warnOfIdle(method, tensors, problems);

  const draft: Plan = {
    ...emptyPlan(recipe, problems),
    ...(base === undefined ? {} : { base }),
    contributors,
    tensors,
    layers: new Set(tensors.map((tensor) => tensor.role.layer).filter((layer) => layer !== null)).size,
    vocabulary: vocabulary.info,
  };
  if (problems.hasErrors()) return draft;
  const files = await vocabularyFiles(vocabulary, donor.config.checkpoint, problems);
  const checkpoints = [...new Set([...models.values()].map(({ checkpoint }) => checkpoint))];
  const chosen = await withChatTemplate(recipe, files.tokenizer, vocabulary.from, checkpoints, problems);
  files.tokenizer = chosen.files;
  const merged = [...models.values()];
  const ended = await endsOfText(
    vocabulary,
    chosen.template,
    donor.config.checkpoint,
    merged,
    files,
    problems,
  );
  await checkRows(vocabulary, rows, problems);
  for (const checkpoint of checkpoints) checkModules(checkpoint, problems);
  const resized =
    rows === undefined || (rows === storedRows && !vocabulary.output) ? {} : { vocabSize: rows };
  // an image model has no config, and the tensors are called as in the model they are counted from
  const config = reference.checkpoint.isImage ? reference.checkpoint : donor.config.checkpoint;
  const output = { tied, slices, config, files: ended, rows, ...resized };
  return finishPlan(draft, method, opened, output, problems, cached);
}

/** Whether no row of a token is merged: then the vocabularies of the models need not agree. */
function keepsEnds(recipe: Recipe, { tensors }: Model): boolean {
  if (!leavesOut(recipe)) return false;
  const perToken = [...tensors.values()].filter(({ name, shape }) => {
    const { kind } = tensorRole(name, shape);
    return kind === 'embedding' || kind === 'head' || hasTokenRows(name);
  });
  return perToken.length > 0 && perToken.every(({ name }) => leftOut(recipe, name));
}

/** Adds what only a clean plan has: small files, inputs, shards and the numbers of bytes. */
async function finishPlan(
  draft: Plan,
  method: MergeMethod,
  opened: ReadonlyMap<string, OpenModel>,
  output: Omit<OutputShape, 'tensors'> & {
    slices: readonly SliceOutline[];
    config: Checkpoint;
    files: VocabularyFiles;
    /** Rows of its embedding; undefined where it is not known which tensor that is. */
    rows: number | undefined;
  },
  problems: Problems,
  cached: ReadonlyMap<string, number>,
): Promise<Plan> {
  const { recipe, tensors } = draft;
  const stored = [...opened.values()].flatMap((model): readonly OpenModel[] =>
    model.kind === 'adapter' && model.madeOf ? model.madeOf : [model],
  );
  const folders = new Map(stored.map((model) => [model.path, model.folder]));
  const fileOf = fileIn(folders);
  const layerOrder = recipe.slices && stackedLayers(output.slices);
  const extras = await planExtras(
    recipe,
    method,
    output.config,
    output.files,
    opened,
    { ...output, tensors, ...(layerOrder ? { layerOrder } : {}) },
    problems,
  );
  const textOf = (path: string) => extraText(extras, path, fileOf);
  const configText = layerOrder && (await textOf('config.json'));
  if (configText) checkStack(configText, tensors, output.config, problems);
  if (output.config.isImage && recipe.amalgam.gguf !== undefined) {
    problems.error('GgufUnsupported', 'GGUF: no model of images is written so.', 'Leave gguf out.');
    return { ...draft, problems: problems.list() };
  }
  const places = output.config.isImage ? placesOf(output.config) : undefined;
  const renamed = tensors.filter(({ name }) => places?.has(name) === false).map(({ name }) => name);
  if (renamed.length > 0) {
    problems.error(
      'LayersOfImages',
      `${output.config.path} is an image model, whose layers cannot be put in another order.`,
      'List the models under models, not in slices.',
      renamed,
    );
    return { ...draft, problems: problems.list() };
  }
  const whole = { ...draft, extras, ...(places && { places }) };
  const directionBytes = spectralBytes(method, tensors, problems);
  const plan = await completePlan(whole, folders, output.rows, problems, cached);
  return { ...plan, peakBytes: plan.peakBytes + directionBytes };
}

/**
 * The plan with its GGUF file, inputs, shards and the numbers of bytes; without them where its problems have an error.
 *
 * @param draft with all tensors and small files
 * @param folders of the opened models, by path
 * @param rows of its embedding; undefined where it is not known which tensor that is
 */
export async function completePlan(
  draft: Plan,
  folders: ReadonlyMap<string, ModelFolder>,
  rows: number | undefined,
  problems: Problems,
  cached: ReadonlyMap<string, number>,
): Promise<Plan> {
  const { recipe, tensors, extras } = draft;
  const fileOf = fileIn(folders);
  const textOf = (path: string) => extraText(extras, path, fileOf);
  const gguf = await planOutputGguf(recipe, tensors, textOf, problems);
  if (problems.hasErrors()) return { ...draft, problems: problems.list() };
  const written = writtenExtras({ recipe, extras });
  await checkCopied(written, folders, problems);
  if (problems.hasErrors()) return { ...draft, problems: problems.list() };
  await checkTokenIds(rows, textOf, problems);
  if (problems.hasErrors()) return { ...draft, problems: problems.list() };
  const copied = written.flatMap(({ content }) =>
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
  const shards = finishShards({ ...draft, inputs, ...(gguf ? { gguf } : {}) }, hashes);
  return {
    ...draft,
    problems: problems.list(),
    shards,
    ...(gguf ? { gguf } : {}),
    inputs,
    bytesToDownload: bytesToDownload([...inputFiles, ...copied], cached),
    bytesToRead: inputs.reduce((sum, input) => sum + input.readBytes, 0),
    bytesToWrite: bytesToWrite(
      shards,
      written,
      copied.reduce((sum, [, file]) => sum + file.byteLength, gguf?.byteLength ?? 0),
    ),
    peakBytes: peakBytes(tensors) + (gguf?.peakBytes ?? 0),
  };
}

function fileIn(folders: ReadonlyMap<string, ModelFolder>) {
  return (folder: string, file: string): ModelFile => findFile(folders.get(folder)!, file)!;
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

/** Says so where a method that changes a base changes nothing of it. */
function warnOfIdle(method: MergeMethod, tensors: readonly TensorPlan[], problems: Problems): void {
  if (method.compute.kind !== 'delta' || tensors.length === 0 || problems.hasErrors()) return;
  if (!tensors.every((tensor) => tensor.copy !== undefined)) return;
  problems.warn(
    'NothingChanged',
    'Nothing is merged: every tensor keeps the bytes of the base.',
    'Give a model a weight other than 0, check that λ is not 0, and leave out fewer tensors.',
  );
}

function refuseNothing(problems: Problems): void {
  if (problems.hasErrors()) return;
  problems.error(
    'NothingToMerge',
    'The recipe describes an output without tensors.',
    'Add models that hold weights.',
  );
}
