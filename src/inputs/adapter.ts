/** Opening a PEFT LoRA adapter: its config and the header of its weights. No weight is read. */
import { AmalgamError } from '../errors';
import { type AdapterConfig, parseAdapterConfig } from '../formats/adapter-config';
import { type AdapterPair, readAdapterTensors } from '../formats/adapter-tensors';
import type { StoredTensor } from '../formats/safetensors-header';
import { findFile, type ModelFile, type ModelFolder } from '../sources/model-folder';
import { readHeader, readSmallText, tensorRef } from './header';
import type { TensorRef } from './tensor-view';

/** Low-rank update of one module; shapes as in {@link AdapterPair}. */
export interface AdapterUpdate {
  kind: AdapterPair['kind'];
  a: TensorRef;
  b: TensorRef;
  rank: number;
  scale: number;
  magnitude?: TensorRef;
  bias?: TensorRef;
}

export interface Adapter {
  kind: 'adapter';
  /** Key of the opened folder: what `TensorRef.folder` says. */
  path: string;
  folder: ModelFolder;
  config: AdapterConfig;
  /** Module path in the base → update of its weight. */
  updates: ReadonlyMap<string, AdapterUpdate>;
  /** Tensor name in the base → tensor that is loaded over it, ahead of any update. */
  origins: ReadonlyMap<string, TensorRef>;
  /** Tensor name in the base → the adapter's own copy of it. */
  replaces: ReadonlyMap<string, TensorRef>;
  /** Keys of the weight file that change nothing. */
  ignored: readonly string[];
  weightFile: ModelFile;
}

const CONFIG = 'adapter_config.json';
const WEIGHTS = 'adapter_model.safetensors';
/** Most bytes of an adapter config: pattern tables of thousands of modules stay below 1 MB. */
const MAX_CONFIG_BYTES = 16 * 2 ** 20;

/** Whether a folder holds a PEFT adapter rather than a checkpoint. */
export function isAdapterFolder(folder: ModelFolder): boolean {
  const has = (path: string) => findFile(folder, path) !== undefined;
  if (has(WEIGHTS) || has('adapter_model.bin')) return true;
  return has(CONFIG) && !folder.files.some((file) => file.path.endsWith('.safetensors'));
}

/**
 * Opens an adapter from its config and the header of its weights.
 *
 * @param path key of the folder, unique among the opened ones; default its own path
 * @throws AmalgamError `AdapterInvalid` (no config), `AdapterUnsupported` (not a LoRA we can merge), `NotSafetensors`
 *   (pickle only), `NotFound` (no weights), and what the parsers throw
 */
export async function openAdapter(
  folder: ModelFolder,
  path: string = folder.path,
  signal?: AbortSignal,
): Promise<Adapter> {
  const configFile = findFile(folder, CONFIG);
  if (!configFile) {
    throw new AmalgamError(
      'AdapterInvalid',
      `${path} has the weights of an adapter, but no ${CONFIG}, which says how to scale them.`,
      'Get the adapter again from its author, with its config.',
    );
  }
  // The config first: what it says about an adapter that cannot be merged is worth more than a missing file.
  const text = await readSmallText(configFile, path, MAX_CONFIG_BYTES, signal);
  const config = parseAdapterConfig(text, `${path}/${CONFIG}`);
  const weightFile = findFile(folder, WEIGHTS);
  if (!weightFile) throw noWeights(folder, path);

  const refs = new Map<StoredTensor, TensorRef>();
  const header = await readHeader(weightFile, path, signal);
  for (const stored of header.values()) refs.set(stored, tensorRef(path, weightFile, stored));
  const { lowRank, origins, replaces, ignored } = readAdapterTensors(config, header);
  const update = ({ a, b, kind, rank, scale, magnitude, bias }: AdapterPair): AdapterUpdate => ({
    kind,
    a: refs.get(a)!,
    b: refs.get(b)!,
    rank,
    scale,
    ...(magnitude ? { magnitude: refs.get(magnitude)! } : {}),
    ...(bias ? { bias: refs.get(bias)! } : {}),
  });
  return {
    kind: 'adapter',
    path,
    folder,
    config,
    updates: new Map([...lowRank].map(([module, pair]) => [module, update(pair)])),
    origins: new Map([...origins].map(([name, stored]) => [name, refs.get(stored)!])),
    replaces: new Map([...replaces].map(([name, stored]) => [name, refs.get(stored)!])),
    ignored,
    weightFile,
  };
}

function noWeights(folder: ModelFolder, path: string): AmalgamError {
  if (findFile(folder, 'adapter_model.bin')) {
    return new AmalgamError(
      'NotSafetensors',
      `${path} has its weights as a pickle only: adapter_model.bin.`,
      'Amalgam reads safetensors only, since a pickle can run code when it is opened. Load the adapter with PEFT and save it again (save_pretrained), or find a copy in safetensors.',
    );
  }
  return new AmalgamError(
    'NotFound',
    `${path} has a config of an adapter, but no ${WEIGHTS}.`,
    'Get the adapter again from its author, with its weights.',
  );
}
