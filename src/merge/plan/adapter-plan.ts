/**
 * The plan of a recipe whose contributors are LoRAs of one base and whose output is one too. Only the adapters are opened:
 * of the base neither weights nor config are asked for.
 */

import {
  type CombineSettings,
  combinedRank,
  isDecomposed,
  isGram,
  needsOneRank,
} from '../../adapters/combine';
import { type Combination, parametersOf } from '../../formats/adapter-combination';
import { LORA_NAMINGS, type LoraNaming, loraNaming } from '../../formats/lora-naming';
import type { Recipe } from '../../formats/recipe';
import { type AdapterUpdate, noteIgnored } from '../../inputs/adapter';
import { elementCount } from '../../inputs/opened-model';
import { nameSome, type Problems } from '../../inputs/problems';
import { tensorsToRead } from '../../inputs/row-map';
import { imageRole } from '../../models/image-role';
import { inTensorOrder, splitLayer, type TensorRole, tensorRole } from '../../models/tensor-role';
import { findFile } from '../../sources/model-folder';
import type { MergeMethod } from '../method';
import { weightsConflict } from '../method-conflicts';
import { combinedTensors } from '../tensor/combined-factors';
import { densityOf } from '../tensor/delta-selectors';
import { sharesOf } from '../tensor/prepared';
import {
  type AdapterContributor,
  checkMergeable,
  combinationOf,
  openContributors,
  type Refuse,
} from './adapter-contributors';
import { extrasOf, modulesOf, noteOrigins, openBase } from './adapter-output';
import { noteCut, planCut } from './cut-plan';
import { planAdapterGguf, writtenExtras } from './gguf-plan';
import { layerPosition, outsidePosition, resolveParameters } from './parameters';
import type { Plan, ResolvedParameters, TensorPlan } from './plan';
import { bytesToDownload, bytesToWrite, peakBytes, planInputs } from './plan-bytes';
import { wantsLambda } from './plan-lambda';
import type { OpenByPath } from './recipe-models';
import { finishShards } from './shards';
import { asModels, type SolvedFactors, solvedFactors, solvedTensors } from './solved-factors';
import { outputDtype } from './tensor-plans';

type AdapterPlan = Omit<Plan, 'recipe' | 'vocabulary'>;

/**
 * Plans the merged adapter; what cannot be goes to `problems`.
 * @param planModels plans a merge of the models that the adapters stand for
 * @throws AmalgamError `Canceled` only
 */
export async function planAdapter(
  recipe: Recipe,
  method: MergeMethod,
  open: OpenByPath,
  problems: Problems,
  cached: ReadonlyMap<string, number>,
  planModels: (recipe: Recipe) => Promise<Plan>,
): Promise<Partial<AdapterPlan>> {
  const refuse: Refuse = (message, remedy, tensors) =>
    problems.error('AdapterOutput', message, remedy, tensors);
  const combination = await combinationOf(recipe, open, refuse);
  if (combination === 'merged_svd') {
    const cut = await planCut(recipe, method, open, problems, refuse, planModels, cached);
    return cut ?? { problems: problems.list() };
  }
  const contributors = combination ? await openContributors(recipe, open, refuse, problems) : [];
  if (recipe.mergeMethod === 'passthrough' && contributors.length > 1) {
    refuse('passthrough takes one LoRA as it is.', 'Choose task_arithmetic to merge several.');
  }
  for (const { adapter } of contributors) {
    checkMergeable(adapter, refuse);
    noteIgnored(adapter, problems);
    noteOrigins(adapter, problems);
  }
  const done = () => ({ problems: problems.list(), contributors: contributors.map(({ ref }) => ref) });
  if (!combination || problems.hasErrors()) return done();
  noteIdle(recipe, method, combination, problems);
  if (wantsLambda(recipe)) {
    refuse(
      'lambda: auto is tuned by running models on text, and nothing is run where adapters become an adapter.',
      'Give λ a number, or choose a model as the output.',
    );
  }

  const image = contributors[0]?.adapter.image;
  if (image && isGram(combination) && readsText(recipe)) {
    refuse('A model of images reads no text.', 'Set match: changes.');
  }
  if (image && recipe.amalgam.gguf !== undefined) {
    refuse('LoRAs of image models have no GGUF form.', 'Leave gguf out.');
  }
  if (problems.hasErrors()) return done();
  const models = isGram(combination) && readsText(recipe) ? await planModels(asModels(recipe)) : undefined;
  for (const problem of models?.problems ?? []) problems.add(problem);
  if (problems.hasErrors()) return done();
  const solved = models && solvedFactors(models);
  if (solved && combination === 'gram_svd') noteCut(problems);
  const tensors = planTensors(recipe, method, combination, contributors, refuse, solved);
  if (problems.hasErrors()) return done();
  const folders = new Map(contributors.map(({ adapter }) => [adapter.path, adapter.folder]));
  const fileOf = (folder: string, file: string) => findFile(folders.get(folder)!, file)!;
  const inputs = planInputs(tensors, fileOf);
  const modules = modulesOf(tensors);
  const adapters = contributors.map(({ adapter }) => adapter);
  const naming = loraNaming(image);
  const extras = await extrasOf(recipe, method, adapters, modules, problems, naming);
  const gguf = await planAdapterGguf(recipe, modules, () => openBase(recipe, open), problems);
  if (problems.hasErrors()) return done();
  const adapterFile = image ? { adapterFile: naming.weights } : {};
  const shards = finishShards({ recipe, tensors, inputs, ...adapterFile }, new Map());
  return {
    ...done(),
    tensors,
    shards,
    ...adapterFile,
    ...(gguf ? { gguf } : {}),
    ...(solved ? { calibration: solved.calibration } : {}),
    extras,
    inputs,
    layers: new Set(tensors.map(({ role }) => role.layer).filter((layer) => layer !== null)).size,
    bytesToDownload:
      models?.bytesToDownload ??
      bytesToDownload(
        inputs.map(({ folder, file }) => [folders.get(folder)!, fileOf(folder, file)] as const),
        cached,
      ),
    bytesToRead: inputs.reduce((sum, input) => sum + input.readBytes, 0) + (models?.bytesToRead ?? 0),
    bytesToWrite: bytesToWrite(shards, writtenExtras({ recipe, extras }), gguf?.byteLength ?? 0),
    peakBytes: peakBytes(tensors) + (gguf?.peakBytes ?? 0),
  };
}

/** Whether a Gram merge runs the models on text. */
function readsText({ parameters: { match } }: Recipe): boolean {
  return match !== 'changes';
}

/** How the rows of an embedding are combined, which are looked up and have no inputs. */
function overRows(combination: Combination): Combination {
  if (combination === 'gram') return 'cat';
  return combination === 'gram_svd' ? 'svd' : combination;
}

/** Names the parameters with a value of their own, since a form writes defaults too, and the keys that change nothing here. */
function noteIdle(recipe: Recipe, method: MergeMethod, combination: Combination, problems: Problems): void {
  const used = parametersOf(combination, recipe.parameters.match).filter(
    (name) => name in method.parameters || name in method.modelParameters,
  );
  const levels = [
    [method.parameters, recipe.parameters] as const,
    ...(recipe.models ?? []).map(({ parameters }) => [method.modelParameters, parameters] as const),
  ];
  const named = levels.flatMap(([specs, given]) =>
    Object.keys(given).filter((name) => given[name] !== specs[name]?.default),
  );
  const keys = [
    ...(recipe.tokenizerSource !== undefined ? ['tokenizer_source'] : []),
    ...(recipe.tokenizer !== undefined ? ['tokenizer'] : []),
    ...(recipe.chatTemplate !== undefined ? ['chat_template'] : []),
    ...(isDecomposed(combination) || recipe.amalgam.rank === undefined ? [] : ['rank']),
    ...(recipe.amalgam.energy === undefined ? [] : ['energy']),
  ];
  const idle = [...new Set([...named, ...keys])].filter((name) => !used.includes(name));
  if (idle.length === 0) return;
  problems.warn(
    'ParameterIgnored',
    `${nameSome(idle)} has no effect where adapters become an adapter.`,
    `Of the parameters, ${combination} reads ${used.join(', ')}.`,
  );
}

/** The factors of every module, one after the other. */
function planTensors(
  recipe: Recipe,
  method: MergeMethod,
  combination: Combination,
  contributors: readonly AdapterContributor[],
  refuse: Refuse,
  solved: SolvedFactors | undefined,
): TensorPlan[] {
  const modules = [...new Set(contributors.flatMap(({ adapter }) => [...adapter.updates.keys()]))];
  const layers = modules.reduce(
    (most, name) => Math.max(most, (splitLayer(`${name}.weight`)?.index ?? -1) + 1),
    0,
  );
  const wanted =
    recipe.amalgam.rank ??
    contributors
      .flatMap(({ adapter }) => [...adapter.updates.values()])
      .reduce((most, { rank }) => Math.max(most, rank), 0);
  const used = parametersOf(combination, recipe.parameters.match);
  const tensors = modules.flatMap((module) => {
    const layer = splitLayer(`${module}.weight`);
    const position = layer
      ? layerPosition(layer.index, layers)
      : outsidePosition('before', recipe.amalgam.gradientEnds ?? 'mergekit');
    const level = (specs: MergeMethod['parameters'], own?: Recipe['parameters']) => {
      const { values, faults } = resolveParameters(
        specs,
        [...(own ? [own] : []), recipe.parameters],
        `${module}.weight`,
        position,
      );
      const fault = faults.find(({ parameter }) => used.includes(parameter));
      if (fault) refuse(`${fault.parameter} ${fault.reason}.`, 'Correct it in the recipe.', [module]);
      return values;
    };
    const whole = level(method.parameters);
    const own = contributors.map(({ parameters }) => level(method.modelParameters, parameters));
    const conflict = isGram(combination) && weightsConflict(method, whole, own);
    if (conflict) refuse(`${method.id}: ${conflict.reason}.`, conflict.remedy, [module]);
    const shares = sharesOf(own.map(({ weight }) => Number(weight)));
    const parts = contributors.flatMap(({ ref, adapter }, index): Part[] => {
      const update = adapter.updates.get(module);
      if (!update) return [];
      const values = own[index]!;
      if (!isGram(combination)) return [{ ref, index, update, values }];
      // rows of an embedding are averaged over all, as in a Gram merge of models; elsewhere what has no change does not count
      const weight = update.kind === 'embedding' && !solved ? shares[index]! : 1;
      return [{ ref, index, update, values: { ...values, weight, count: Number(values.weight) } }];
    });
    const shapes = new Set(
      parts.map(({ update: { a, b, kind } }) => `${kind} ${a.shape.slice(1)} ${b.shape[0]}`),
    );
    const ranks = parts.map(({ update }) => update.rank);
    const { kind } = parts[0]!.update;
    if (shapes.size > 1) {
      refuse(
        'The adapters have factors of different sizes for the same modules.',
        'Merge adapters of one base.',
        [module],
      );
    }
    if (isGram(combination) && ['outputs', 'stream', 'both'].includes(String(whole.match))) {
      refuse(
        `With match: ${whole.match} the merged change depends on the base, so it is not of the rank of the LoRAs.`,
        'Set match: inputs, or combination: merged_svd, which cuts it.',
        [module],
      );
    }
    if (solved && !parts.every(({ update }) => solved.has(update.a))) {
      refuse(
        'The base has no weight of its own for a module of the LoRAs: its head is the embedding.',
        'Set match: changes, or combination: merged_svd.',
        [module],
      );
    }
    if (solved && parts.some(({ values }) => densityOf(values) < 1)) {
      refuse(
        'A density below 1 trims changes to what is no longer a product of thin factors.',
        'Set density: 1, or combination: merged_svd, which cuts them.',
        [module],
      );
    }
    if (needsOneRank(combination) && new Set(ranks).size > 1) {
      refuse(
        `${combination} needs one rank, and the adapters have several.`,
        `Choose cat, or ${combination === 'linear' ? 'svd' : `${combination}_svd`}.`,
        [module],
      );
    }
    return moduleTensors(
      module,
      parts,
      whole,
      {
        combination: kind === 'embedding' && !solved ? overRows(combination) : combination,
        rank: wanted,
        majority: whole.majority_sign_method === 'frequency' ? 'frequency' : 'total',
        seed: recipe.amalgam.seed ?? 0,
        name: module,
      },
      recipe,
      solved,
      loraNaming(contributors[0]!.adapter.image),
      contributors[0]!.adapter.image !== undefined,
    );
  });
  return inTensorOrder(tensors);
}

interface Part {
  ref: string;
  /** Place among the contributors. */
  index: number;
  update: AdapterUpdate;
  values: ResolvedParameters;
}

/** A and B of a module. */
function moduleTensors(
  module: string,
  parts: readonly Part[],
  { lambda = 1 }: ResolvedParameters,
  settings: CombineSettings,
  { outDtype }: Recipe,
  solved: SolvedFactors | undefined,
  naming: LoraNaming,
  isImage: boolean,
): TensorPlan[] {
  const { a, b, kind } = parts[0]!.update;
  // of a convolution A has the kernel
  const [across, outputs] = [a.shape.slice(1), b.shape[0]!];
  const inputs = elementCount(across);
  const ranks = parts.map(({ update }) => update.rank);
  const kept = solved && settings.combination === 'gram' ? 'cat' : settings.combination;
  const rank = combinedRank(kept, ranks, settings.rank, outputs, inputs);
  const loras = parts.map(({ ref, update, values }) => ({
    ...{ rank: update.rank, scale: update.scale, density: densityOf(values), id: ref },
    weight: Number(values.weight ?? values.scale) * Number(lambda),
    ...(values.count !== undefined && { count: Number(values.count) }),
  }));
  const pairs = parts.map(({ update }) => update);
  const dtype = outputDtype(outDtype, tensorsToRead(a)[0]!.dtype);
  const [names, places] = [naming, LORA_NAMINGS.peft].map((of) => of.factors(module, kind)) as [
    ReturnType<LoraNaming['factors']>,
    ReturnType<LoraNaming['factors']>,
  ];
  const place = {
    a: { ...a, key: names.a.name, shape: [rank, ...across] },
    b: { ...a, key: names.b.name, shape: [outputs, rank, ...b.shape.slice(2)] },
  };
  const order = parts.map(({ index }) => index);
  const made = solved
    ? solvedTensors(place, pairs, settings, loras, order, solved)
    : combinedTensors(place, pairs, settings, loras);
  return (['a', 'b'] as const).map((side) => {
    const origin = made[side];
    const { key: name, shape } = place[side];
    return {
      name,
      shape,
      elements: elementCount(shape),
      dtype,
      role: isImage ? imageFactor(name, shape, module, side) : tensorRole(places[side].name, shape),
      models: [
        {
          id: parts[0]!.ref,
          view: { origin, onBase: false },
          parameters: { scale: 1 },
        },
      ],
      parameters: {},
      method: 'passthrough',
      madeOf: parts.map(({ ref }) => ref),
    };
  });
}

/** The role of a factor of an image model's module. */
function imageFactor(name: string, shape: readonly number[], module: string, side: 'a' | 'b'): TensorRole {
  const role = imageRole(name, shape, module);
  return { ...role, module: `${role.module}.lora_${side.toUpperCase()}` };
}
