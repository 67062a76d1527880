/** What a merged adapter consists of beside its tensors: its modules, its base, its small files; and itself as an input. */
import { type Dtype, isWeightDtype, type WeightDtype, weightBytes } from '../../formats/dtype';
import { decodeToF32, encodeFromF32 } from '../../formats/half';
import { isCommit, isRepoId } from '../../formats/hub-id';
import type { LoraNaming } from '../../formats/lora-naming';
import { canonicalRef, formatModelRef, parseModelRef, type Recipe, type RepoRef } from '../../formats/recipe';
import type { AdapterModule } from '../../gguf/adapter-plan';
import type { Adapter, AdapterUpdate } from '../../inputs/adapter';
import type { Checkpoint } from '../../inputs/checkpoint';
import type { Problems } from '../../inputs/problems';
import { derivedTensor } from '../../inputs/row-map';
import { readF32 } from '../../inputs/stored-tensor';
import type { TensorRef } from '../../inputs/tensor-view';
import type { MergeMethod } from '../method';
import { cardOf, withoutQuantization } from './extras';
import type { Plan, TensorPlan } from './plan';
import type { OpenByPath } from './recipe-models';

/** The model that the adapters stand on, as the recipe names it; undefined where it names none. */
export function baseRef({ models = [], baseModel }: Recipe): RepoRef | undefined {
  const named = models.map(({ model }) => parseModelRef(canonicalRef(model))).find(({ adapter }) => adapter);
  return named?.model ?? (baseModel === undefined ? undefined : parseModelRef(baseModel).model);
}

/** Opens the base of an adapter output. */
export async function openBase(recipe: Recipe, open: OpenByPath): Promise<Checkpoint | undefined> {
  const base = baseRef(recipe);
  const opened = base && (await open(formatModelRef({ model: base })));
  if (opened?.kind !== 'checkpoint') return undefined;
  const { config, dequantized } = opened;
  return config && dequantized.formats.size > 0 ? { ...opened, config: withoutQuantization(config) } : opened;
}

/** The modules of the output with their factors. */
export function modulesOf(tensors: readonly TensorPlan[]): AdapterModule[] {
  const named = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  return tensors.flatMap((tensor) => {
    const [, module, embedding] = FIRST_FACTOR.exec(tensor.name) ?? [];
    if (module === undefined) return [];
    const other = named.get(tensor.name.replace(/A((?:\.weight)?)$/, 'B$1'))!;
    const factor = ({ name, shape, dtype }: TensorPlan) => ({ name, shape, dtype: dtype as WeightDtype });
    const kind = embedding === undefined ? 'linear' : 'embedding';
    return [{ module, kind, rank: tensor.shape[0]!, a: factor(tensor), b: factor(other) }];
  });
}

/**
 * The base as the output's config names it. One on the Hub at its commit is what the recipe says; else what the inputs say
 * they were trained on, unless that is a folder of somebody's disk and the recipe says better.
 */
function baseOf(
  recipe: Recipe,
  { baseModel, revision }: Adapter['config'],
): { base: string; revision?: string } {
  const named = baseRef(recipe);
  if (named?.revision !== undefined && isCommit(named.revision)) {
    return { base: named.path, revision: named.revision };
  }
  if (baseModel === undefined || (named && isRepoId(named.path) && !isRepoId(baseModel))) {
    return { base: named?.path ?? baseModel ?? '' };
  }
  return { base: baseModel, ...(revision === undefined ? {} : { revision }) };
}

const FIRST_FACTOR = /^base_model\.model\.(.+)\.lora_(embedding_)?A(?:\.weight)?$/;

/**
 * The adapter that a clean plan would write, without being written: its factors are computed when they are read.
 * @param path what it is called among opened models
 */
export function plannedAdapter(
  { tensors }: Pick<Plan, 'tensors'>,
  inputs: readonly Adapter[],
  path: string,
): Adapter {
  const origins = new Map(
    tensors.map(({ name, models, dtype }) => [name, asWritten(models[0]!.view.origin, dtype)]),
  );
  const updates = modulesOf(tensors).map(({ module, kind, rank, a, b }): [string, AdapterUpdate] => [
    module,
    { kind, rank, scale: 1, a: origins.get(a.name)!, b: origins.get(b.name)! },
  ]);
  return { ...inputs[0]!, path, updates: new Map(updates), ignored: [], untargeted: [], madeOf: inputs };
}

/** What a reader of the file gets. */
function asWritten(origin: TensorRef, dtype: Dtype): TensorRef {
  if (dtype === 'F32' || !isWeightDtype(dtype)) return origin;
  return derivedTensor(origin, origin.shape, [origin], async (read) => {
    const values = await readF32(origin, read);
    const bytes = new Uint8Array(values.length * weightBytes(dtype));
    encodeFromF32(values, dtype, bytes);
    decodeToF32(bytes, dtype, values);
    return async (begin, end) => values.slice(begin, end);
  });
}

/** adapter_config.json, the card and the recipe. */
export async function extrasOf(
  recipe: Recipe,
  method: MergeMethod,
  adapters: readonly Adapter[],
  modules: readonly AdapterModule[],
  problems: Problems,
  naming: LoraNaming,
): Promise<Plan['extras']> {
  const { config } = adapters[0]!;
  const opened = new Map(adapters.map((adapter) => [adapter.path, adapter]));
  if (!naming.config) return cardOf(recipe, method, opened, 'diffusers', problems);
  const text = naming.config({
    ...baseOf(recipe, config),
    modules,
    saved: [],
    loraBias: false,
    fanInFanOut: adapters.some((adapter) => adapter.config.fanInFanOut),
    tied: adapters.some((adapter) => adapter.config.ensureWeightTying),
    task: config.taskType ?? null,
  });
  return [
    { path: 'adapter_config.json', content: { text } },
    ...(await cardOf(recipe, method, opened, 'peft', problems)),
  ];
}

/** Weights under the factors: an output of factors alone stands on those of the base. */
export function noteOrigins({ path, origins, updates }: Adapter, problems: Problems): void {
  const under = [...origins.keys()].filter((name) => updates.has(name.replace(/\.weight$/, '')));
  if (under.length === 0) return;
  problems.warn(
    'AdapterKeysUnused',
    `${path} brings weights that its factors were trained on, and the merged adapter does not.`,
    'If they differ from those of the base, merge with output: model.',
    under,
  );
}
