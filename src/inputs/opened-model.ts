import { adapterSummary } from '../formats/adapter-config';
import { textSha256 } from '../formats/hashes';
import { commonName } from '../models/aliases';
import { splitLayer } from '../models/tensor-role';
import type { ModelInfo } from '../reports/models';
import { findFile, hubCommit, type ModelFolder } from '../sources/model-folder';
import { type Adapter, isAdapterFolder, openAdapter } from './adapter';
import { type Checkpoint, openCheckpoint } from './checkpoint';
import { type Dequantized, unreadQuantization } from './dequantization';
import { tensorsToRead } from './row-map';
import type { TensorRef } from './tensor-view';

export type OpenModel = Checkpoint | Adapter;

/** Weights of diffusers have names of their own, also beside a config.json. */
const DIFFUSERS = /^diffusion_pytorch_model[^/]*\.safetensors$/;

/**
 * Opens a folder as what it is: an adapter or a checkpoint. Only configs, indices and headers are read.
 *
 * @param path key of the folder, unique among the opened ones (for the Hub `owner/name@commit`); default its own path
 * @throws AmalgamError in words, see {@link openCheckpoint} and {@link openAdapter}
 */
export async function openModel(
  folder: ModelFolder,
  path: string = folder.path,
  signal?: AbortSignal,
): Promise<OpenModel> {
  if (isAdapterFolder(folder)) return openAdapter(folder, path, signal);
  const isBare = !findFile(folder, 'config.json');
  if (isBare || folder.files.some(({ path: file }) => DIFFUSERS.test(file))) {
    const { openImageModel } = await import('./image-model');
    return openImageModel(folder, path, signal);
  }
  return openCheckpoint(folder, path, signal);
}

/**
 * Description of an opened model for the studio and the command.
 * @param license license of the model card, where the origin knows it
 */
export function describeModel(
  model: OpenModel,
  said: Pick<ModelInfo, 'license' | 'copyOf' | 'gated'> = {},
): Omit<ModelInfo, 'headers'> {
  const { origin } = model.folder;
  const read = model.kind === 'checkpoint' ? model.dequantized : undefined;
  const refs = read ? [...read.tensors.values()] : fileTensors(model).flatMap(tensorsToRead);
  const dtypes: Record<string, number> = {};
  for (const { dtype, derived } of refs) {
    const stored = derived?.quantized?.format ?? dtype;
    dtypes[stored] = (dtypes[stored] ?? 0) + 1;
  }
  const files = model.kind === 'adapter' ? [model.weightFile] : model.weightFiles;
  const commit = hubCommit(origin)?.commit;
  const own =
    model.kind === 'adapter'
      ? { adapter: adapterInfo(model) }
      : { ...familyInfo(model), layers: layerCount(model) };
  return {
    ref: model.path,
    title: model.path.replace(/@[0-9a-f]{40}$/, ''),
    origin: origin.kind,
    kind: model.kind,
    parameters: refs.reduce((sum, { shape }) => sum + elementCount(shape), 0),
    bytes: files.reduce((sum, file) => sum + file.byteLength, 0),
    dtypes,
    ...((model.kind === 'adapter' ? model.image : model.isImage) && { isImage: true }),
    ...own,
    ...weightShapes(model, read),
    ...(commit === undefined ? {} : { commit }),
    ...said,
  };
}

/**
 * The sha256 (hex) of the contents of a model's weight file headers: name, dtype, shape and byte range of every tensor,
 * file by file. Models with other tensors differ in it; models whose values alone differ do not.
 */
export async function headerHash(model: OpenModel): Promise<string> {
  const said = fileTensors(model)
    .flatMap(tensorsToRead)
    .map(({ file, key, dtype, shape, begin, end }) => JSON.stringify([file, key, dtype, shape, begin, end]))
    .sort();
  return textSha256(said.join('\n'));
}

function fileTensors(model: OpenModel): TensorRef[] {
  if (model.kind === 'checkpoint') return [...model.tensors.values()];
  const { updates, origins, replaces, tokenRows, modules, rows: changed } = model;
  const factors = [...updates.values()].flatMap(({ a, b, magnitude, bias }) =>
    [a, b, magnitude, bias].filter((ref) => ref !== undefined),
  );
  // shared tensors are in every module
  const own = new Set([...modules.values()].flatMap(({ parts }) => Object.values(parts)));
  const rows = [...tokenRows.values()].map((trained) => trained.rows);
  const parts = [...(changed?.values() ?? [])].flatMap((update) => Object.values(update.parts));
  return [...factors, ...origins.values(), ...replaces.values(), ...rows, ...own, ...parts];
}

/** Shapes of the weights, which distinguish adapters of this model from those of another; see {@link ModelInfo.weights}. */
function weightShapes(model: OpenModel, read: Dequantized | undefined): Pick<ModelInfo, 'weights'> {
  const found = new Map<string, Set<string>>();
  const add = (name: string, shape: readonly number[]) => {
    const key = commonName(name).replace(/(^|\.)\d+(?=\.)/g, '$1#');
    found.set(key, (found.get(key) ?? new Set()).add(shape.join('×')));
  };
  if (model.kind === 'checkpoint') {
    if (!read || unreadQuantization(model.config, read) !== undefined) return {};
    for (const [name, { shape }] of read.tensors) if (shape.length === 2) add(name, shape);
  } else {
    for (const [module, { a, b, experts, kind }] of model.updates) {
      if (experts !== undefined || a.shape.length !== 2) continue;
      const [outputs, inputs] = [b.shape[0]!, a.shape[1]!];
      add(`${module}.weight`, kind === 'embedding' ? [inputs, outputs] : [outputs, inputs]);
    }
  }
  if (found.size === 0) return {};
  return { weights: Object.fromEntries([...found].map(([key, shapes]) => [key, [...shapes]])) };
}

/** An adapter in a few words; α of an image model's LoRA stands in each of its modules. */
export function summaryOf({ config, method, image, rows, updates }: Adapter): string {
  if (!image) return adapterSummary(config, method?.title);
  const kind = rows?.values().next().value?.title ?? (config.dora ? 'DoRA' : 'LoRA');
  return `${kind} of an image model${updates.size > 0 ? `, r ${config.rank}` : ''}`;
}

function adapterInfo(adapter: Adapter): NonNullable<ModelInfo['adapter']> {
  const { config } = adapter;
  return {
    summary: summaryOf(adapter),
    rank: config.rank,
    ...(config.baseModel === undefined ? {} : { baseModel: config.baseModel }),
  };
}

function familyInfo({ config }: Checkpoint): Pick<ModelInfo, 'family'> {
  return config?.modelType === undefined ? {} : { family: config.modelType };
}

/** Number of layers: by the config, else by the names of the tensors. */
export function layerCount({ config, tensors }: Checkpoint): number {
  if (config?.layers !== undefined) return config.layers;
  return [...tensors.keys()].reduce((most, name) => Math.max(most, (splitLayer(name)?.index ?? -1) + 1), 0);
}

/** Elements of a shape; 1 for a scalar. */
export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, extent) => product * extent, 1);
}
