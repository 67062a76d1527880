/**
 * The plan of a recipe whose contributors are LoRAs of one base and whose output is one too. Only the adapters are opened:
 * of the base neither weights nor config are asked for.
 */
import {
  type Combined,
  type CombineSettings,
  combine,
  combinedRank,
  isDecomposed,
} from '../../adapters/combine';
import { AmalgamError, errorFacts } from '../../errors';
import { COMBINATIONS_OF, type Combination } from '../../formats/adapter-combination';
import { type Dtype, isWeightDtype, weightBytes } from '../../formats/dtype';
import { decodeToF32, encodeFromF32 } from '../../formats/half';
import { canonicalRef, formatModelRef, parseModelRef, type Recipe } from '../../formats/recipe';
import type { Adapter, AdapterUpdate } from '../../inputs/adapter';
import { noteIgnored } from '../../inputs/adapter-views';
import { readF32 } from '../../inputs/factor-values';
import { elementCount } from '../../inputs/open-model';
import { nameSome, type Problems } from '../../inputs/problems';
import type { ReadTensor, TensorRef } from '../../inputs/tensor-view';
import { inTensorOrder, splitLayer, tensorRole } from '../../models/tensor-role';
import { findFile } from '../../sources/model-folder';
import type { MergeMethod } from '../method';
import { extrasOf, modulesOf, noteOrigins, openBase } from './adapter-output';
import { layerPosition, outsidePosition, resolveParameters } from './parameters';
import type { Plan, ResolvedParameters, TensorPlan } from './plan';
import { bytesToDownload, bytesToWrite, peakBytes, planInputs } from './plan-bytes';
import { planAdapterGguf, writtenExtras } from './plan-gguf';
import type { OpenByPath } from './recipe-models';
import { finishShards } from './shards';

/** A LoRA that takes part, with what the recipe says about it. */
interface Contributor {
  ref: string;
  adapter: Adapter;
  parameters: Recipe['parameters'];
}

type AdapterPlan = Omit<Plan, 'recipe' | 'vocabulary'>;

/** Plans the merged adapter; what cannot be goes to `problems`. @throws AmalgamError `Cancelled` only */
export async function planAdapter(
  recipe: Recipe,
  method: MergeMethod,
  open: OpenByPath,
  problems: Problems,
  cached: ReadonlySet<string>,
): Promise<Partial<AdapterPlan>> {
  const refuse = (message: string, remedy: string, tensors?: string[]) =>
    problems.add({
      severity: 'error',
      code: 'AdapterOutput',
      message,
      remedy,
      ...(tensors ? { tensors } : {}),
    });
  const combination = combinationOf(recipe, refuse);
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
  noteIdleParameters(recipe, method, problems);

  const tensors = planTensors(recipe, method, combination, contributors, refuse);
  if (problems.hasErrors()) return done();
  const folders = new Map(contributors.map(({ adapter }) => [adapter.path, adapter.folder]));
  const fileOf = (folder: string, file: string) => findFile(folders.get(folder)!, file)!;
  const inputs = planInputs(tensors, fileOf);
  const modules = modulesOf(tensors);
  const adapters = contributors.map(({ adapter }) => adapter);
  const extras = extrasOf(recipe, method, adapters, modules, problems);
  const gguf = await planAdapterGguf(recipe, modules, () => openBase(recipe, open), problems);
  if (problems.hasErrors()) return done();
  const shards = finishShards({ recipe, tensors, inputs }, new Map());
  return {
    ...done(),
    tensors,
    shards,
    ...(gguf ? { gguf } : {}),
    extras,
    inputs,
    layers: new Set(tensors.map(({ role }) => role.layer).filter((layer) => layer !== null)).size,
    bytesToDownload: bytesToDownload(
      inputs.map(({ folder, file }) => [folders.get(folder)!, fileOf(folder, file)] as const),
      cached,
    ),
    bytesToRead: inputs.reduce((sum, input) => sum + input.readBytes, 0),
    bytesToWrite: bytesToWrite(shards, writtenExtras({ recipe, extras }), gguf?.byteLength ?? 0),
    peakBytes: peakBytes(tensors) + (gguf?.peakBytes ?? 0),
  };
}

type Refuse = (message: string, remedy: string, tensors?: string[]) => void;

function combinationOf({ mergeMethod, amalgam }: Recipe, refuse: Refuse): Combination | undefined {
  const known = COMBINATIONS_OF[mergeMethod];
  if (!known) {
    refuse(
      `${mergeMethod} does not merge adapters into an adapter.`,
      `Choose one of ${Object.keys(COMBINATIONS_OF).join(', ')}, or output: model.`,
    );
    return undefined;
  }
  const chosen = amalgam.combination ?? known[0]!;
  if (known.includes(chosen)) return chosen;
  const owner = Object.entries(COMBINATIONS_OF).find(([, all]) => all.includes(chosen))![0];
  refuse(
    `The combination ${chosen} belongs to ${owner}, not to ${mergeMethod}.`,
    `Set merge_method: ${owner}.`,
  );
  return undefined;
}

/** Opens the adapters alone, each once. */
async function openContributors(
  recipe: Recipe,
  open: OpenByPath,
  refuse: Refuse,
  problems: Problems,
): Promise<Contributor[]> {
  const found: Contributor[] = [];
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
          'Take it out, or set output: model.',
        );
    } catch (thrown) {
      if (thrown instanceof AmalgamError && thrown.code === 'Cancelled') throw thrown;
      const { code, message, hint } = errorFacts(thrown);
      problems.add({ severity: 'error', code, message, remedy: hint });
    }
  }
  if (bases.size > 1)
    refuse(`The adapters stand on several bases: ${nameSome([...bases])}.`, 'Put all of them on one.');
  const trained = new Set(found.flatMap(({ adapter }) => adapter.config.baseModel ?? []));
  if (trained.size > 1) {
    problems.add({
      severity: 'warning',
      code: 'AdapterBaseDiffers',
      message: `The adapters were trained on different bases by their configs: ${nameSome([...trained])}.`,
      remedy: 'Merge adapters of one base, unless you know that the bases are the same.',
    });
  }
  if (recipe.slices)
    refuse('Slices cut layers of models; adapters have none.', 'List the adapters under models.');
  else if (found.length === 0 && !problems.hasErrors()) {
    refuse('The recipe names no adapter.', 'List adapters under models: base+adapter.');
  }
  return found;
}

/** Only plain factors can be combined. */
function checkMergeable(
  { path, config, origins, replaces, tokenRows, method, updates }: Adapter,
  refuse: Refuse,
): void {
  const pairs = [...updates.values()];
  const what =
    method?.title ??
    (config.type === 'LORA' ? undefined : config.type) ??
    (config.dora ? 'DoRA' : undefined) ??
    (pairs.some(({ bias }) => bias) ? 'lora_bias' : undefined) ??
    (pairs.some(({ experts }) => experts !== undefined) ? 'target_parameters' : undefined) ??
    (pairs.some(({ a }) => a.shape.length > 2) ? 'LoRA on convolutions' : undefined) ??
    (replaces.size > 0 ? 'modules_to_save' : undefined) ??
    (tokenRows.size > 0 ? 'trainable_token_indices' : undefined);
  if (what)
    refuse(`${path} uses ${what}, which cannot be part of a merged adapter.`, 'Merge it with output: model.');
  const own = [...origins.keys()].filter((name) => !updates.has(name.replace(/\.weight$/, '')));
  if (own.length > 0) {
    refuse(
      `${path} replaces tensors of the base, which a merged adapter cannot.`,
      'Merge it with output: model.',
      own,
    );
  }
}

const USED: readonly string[] = ['weight', 'scale', 'density', 'lambda', 'majority_sign_method'];

/** Names those with a value of their own: a form writes defaults too. */
function noteIdleParameters(recipe: Recipe, method: MergeMethod, problems: Problems): void {
  const levels = [
    [method.parameters, recipe.parameters] as const,
    ...(recipe.models ?? []).map(({ parameters }) => [method.modelParameters, parameters] as const),
  ];
  const named = levels.flatMap(([specs, given]) =>
    Object.keys(given).filter((name) => given[name] !== specs[name]?.default),
  );
  const idle = [...new Set(named)].filter((name) => !USED.includes(name));
  if (idle.length === 0) return;
  problems.add({
    severity: 'warning',
    code: 'ParameterIgnored',
    message: `${nameSome(idle)} has no effect where adapters become an adapter.`,
    remedy: `What counts is ${USED.join(', ')}.`,
  });
}

/** The factors of every module, one after the other. */
function planTensors(
  recipe: Recipe,
  method: MergeMethod,
  combination: Combination,
  contributors: readonly Contributor[],
  refuse: Refuse,
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
  const unequal: string[] = [];
  const misfits: string[] = [];
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
      const fault = faults.find(({ parameter }) => USED.includes(parameter));
      if (fault) refuse(`${fault.parameter} ${fault.reason}.`, 'Correct it in the recipe.', [module]);
      return values;
    };
    const whole = level(method.parameters);
    const parts = contributors.flatMap(({ ref, adapter, parameters }): Part[] => {
      const update = adapter.updates.get(module);
      return update ? [{ ref, update, values: level(method.modelParameters, parameters) }] : [];
    });
    const shapes = new Set(parts.map(({ update: { a, b, kind } }) => `${kind} ${a.shape[1]} ${b.shape[0]}`));
    const ranks = parts.map(({ update }) => update.rank);
    if (shapes.size > 1) misfits.push(module);
    if (combination !== 'cat' && !isDecomposed(combination) && new Set(ranks).size > 1) unequal.push(module);
    return moduleTensors(
      module,
      parts,
      whole,
      contributors.map(({ ref }) => ref),
      {
        combination,
        rank: wanted,
        majority: whole.majority_sign_method === 'frequency' ? 'frequency' : 'total',
        seed: recipe.amalgam.seed ?? 0,
        name: module,
      },
      recipe,
    );
  });
  if (misfits.length > 0) {
    refuse(
      'The adapters have factors of different sizes for the same modules.',
      'Merge adapters of one base.',
      misfits,
    );
  }
  if (unequal.length > 0) {
    refuse(
      `${combination} needs one rank, and the adapters have several.`,
      `Choose cat, or ${combination === 'linear' ? 'svd' : `${combination}_svd`}.`,
      unequal,
    );
  }
  return inTensorOrder(tensors);
}

interface Part {
  ref: string;
  update: AdapterUpdate;
  values: ResolvedParameters;
}

/** A and B of a module, worked out together when the first of them is read. */
function moduleTensors(
  module: string,
  parts: readonly Part[],
  { lambda = 1 }: ResolvedParameters,
  contributors: readonly string[],
  settings: CombineSettings,
  { outDtype }: Recipe,
): TensorPlan[] {
  const { a, b, kind } = parts[0]!.update;
  const [inputs, outputs] = [a.shape[1]!, b.shape[0]!];
  const ranks = parts.map(({ update }) => update.rank);
  const rank = combinedRank(settings.combination, ranks, settings.rank, outputs, inputs);
  let ready: Promise<Combined> | undefined;
  const combined = (read: ReadTensor) => {
    ready ??= Promise.all(
      parts.map(async ({ ref, update, values }) => ({
        a: await readF32(update.a, read),
        b: await readF32(update.b, read),
        rank: update.rank,
        scale: update.scale,
        weight: Number(values.weight ?? values.scale) * Number(lambda),
        density: Number(values.density ?? 1),
        id: ref,
      })),
    ).then((loras) => combine(loras, settings));
    ready.catch(() => {
      ready = undefined;
    });
    return ready;
  };
  const from = parts.flatMap(({ update }) => [update.a, update.b]);
  const dtype = outDtype ? OUTPUT_DTYPES[outDtype] : a.dtype;
  return (['a', 'b'] as const).map((side) => {
    const letter = side.toUpperCase();
    const name = `base_model.model.${module}.${kind === 'embedding' ? `lora_embedding_${letter}` : `lora_${letter}.weight`}`;
    const shape = side === 'a' ? [rank, inputs] : [outputs, rank];
    const origin: TensorRef = {
      ...{
        folder: a.folder,
        file: a.file,
        key: name,
        dtype: 'F32',
        shape,
        begin: 0,
        end: 4 * elementCount(shape),
      },
      derived: {
        from,
        async open(read) {
          const values = (await combined(read))[side];
          // the other side has been read, or is read from what it finds then
          if (side === 'b') ready = undefined;
          const written = dtype === 'F32' ? values : roundedTo(dtype, values);
          return async (begin, end) => written.slice(begin, end);
        },
      },
    };
    return {
      name,
      shape,
      elements: elementCount(shape),
      dtype,
      role: tensorRole(name, shape),
      models: [
        {
          id: parts[0]!.ref,
          ordinal: contributors.indexOf(parts[0]!.ref),
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

/** What a reader of the file gets. */
function roundedTo(dtype: Dtype, values: Float32Array): Float32Array {
  if (!isWeightDtype(dtype)) return values;
  const bytes = new Uint8Array(values.length * weightBytes(dtype));
  encodeFromF32(values, dtype, bytes);
  const out = new Float32Array(values.length);
  decodeToF32(bytes, dtype, out);
  return out;
}

const OUTPUT_DTYPES = { float32: 'F32', float16: 'F16', bfloat16: 'BF16' } as const;
