/** Opening a checkpoint: config, shard index and the headers of its weight files. No weight is read. */

import { AmalgamError } from '../errors';
import { isWeightDtype } from '../formats/dtype';
import { decodeToF32 } from '../formats/half';
import { type ModelConfig, parseModelConfig } from '../formats/model-config';
import { counted } from '../formats/quantity';
import { parseShardIndex, SHARD_INDEX } from '../formats/shard-index';
import { type Family, familyOf, tensorKey } from '../models/families';
import { tensorPlace, tensorRole } from '../models/tensor-role';
import { findFile, type ModelFile, type ModelFolder } from '../sources/model-folder';
import type { Dequantized } from './dequantization';
import { moduleFiles, moduleTensors, readTensors } from './file-tensors';
import { ggufFilesOf } from './gguf-files';
import { readSmallText } from './header';
import { nameSome } from './problems';
import type { TensorRef } from './tensor-view';

export interface Checkpoint {
  kind: 'checkpoint';
  /** Key of the opened folder, as in `TensorRef.folder`. */
  path: string;
  folder: ModelFolder;
  /** Absent when the folder has no config.json. */
  config?: ModelConfig;
  /** Absent for a `model_type` that is not known by name. */
  family?: Family;
  /** A model of images or video: the output has its files by their names. */
  isImage?: true;
  /** Of an image model: shapes of its weights by what all tools call alike, see `ModelInfo.weights`. */
  fits?: Readonly<Record<string, readonly string[]>>;
  /** Every stored tensor by its stored name. */
  tensors: ReadonlyMap<string, TensorRef>;
  /** The weight files, in the order of the folder. */
  weightFiles: readonly ModelFile[];
  /** The tensors by name, quantized ones as what they stand for. */
  dequantized: Dequantized;
  /** The config ties head and embedding, but both are stored and differ. */
  endsDiffer?: true;
  /** Beside the files that the index names, which are taken, there is a model.safetensors. */
  storedTwice?: true;
  /** Why the tokenizer that its weight file holds is not read. */
  tokenizerFault?: AmalgamError;
}

/** Most bytes of an index: the limit of its parser. */
const MAX_INDEX_BYTES = 250_000_000;
/** Most bytes of a config. */
const MAX_CONFIG_BYTES = 16 * 2 ** 20;

/**
 * Opens a checkpoint from headers alone: config.json, the index where there is one, and two reads at most per weight
 * file. Only of a tied model that stores both its ends are values read, to see whether they are one.
 *
 * @param path key of the folder, unique among the opened ones; default its own path
 * @throws AmalgamError `NotSafetensors` (only pickles), `NotFound` (no weights, or shards that are not there),
 *   `IndexInvalid` (index and shards disagree), `AdapterUnsupported` (LoRA factors without PEFT's config), and what
 *   the parsers of config, index and header throw
 */
export async function openCheckpoint(
  folder: ModelFolder,
  path: string = folder.path,
  signal?: AbortSignal,
): Promise<Checkpoint> {
  const ggufFiles = await ggufFilesOf(folder, path, signal);
  if (ggufFiles) {
    const { openGguf } = await import('./gguf-model');
    const { formats, ...model } = await openGguf(folder, ggufFiles, path, signal);
    const family = familyOf(model.config.modelType);
    return {
      ...{ kind: 'checkpoint', path, ...model, weightFiles: ggufFiles },
      ...(family ? { family } : {}),
      dequantized: { tensors: model.tensors, formats, unscaled: [] },
    };
  }
  const configFile = findFile(folder, 'config.json');
  const config =
    configFile &&
    parseModelConfig(await readSmallText(configFile, path, MAX_CONFIG_BYTES, signal), `${path}/config.json`);

  const indexFile = findFile(folder, SHARD_INDEX);
  const index =
    indexFile &&
    parseShardIndex(await readSmallText(indexFile, path, MAX_INDEX_BYTES, signal), `${path}/${SHARD_INDEX}`);
  const bodyFiles = index ? indexedFiles(folder, path, index) : [singleFile(folder, path)];
  requireAllShards(bodyFiles, path);
  const body = await readTensors(bodyFiles, path, signal);
  if (index) compareIndex(path, index, body);
  refuseLoraFactors(path, body);
  const behind = moduleFiles(folder);
  const weightFiles = [...bodyFiles, ...behind];
  const tensors = new Map([...body, ...(await moduleTensors(behind, path, signal))]);

  const read = ({ file, begin, end }: TensorRef) => findFile(folder, file)!.open().read(begin, end, signal);
  const isPlain = [...tensors.values()].every(({ dtype }) => isWeightDtype(dtype));
  // few models are quantized: for the others nothing more is loaded
  const { dequantize } = isPlain ? {} : await import('./quantized/formats');
  const dequantized = await dequantize?.(tensors, config, read);
  const family = familyOf(config?.modelType);
  const differ = await endsDiffer(folder, config, family, body, signal);
  return {
    kind: 'checkpoint',
    path,
    folder,
    ...(config ? { config } : {}),
    ...(family ? { family } : {}),
    tensors,
    weightFiles,
    dequantized: dequantized ?? { tensors, formats: new Set(), unscaled: [] },
    ...(differ ? { endsDiffer: true } : {}),
    ...(index && isTwice(folder, bodyFiles) ? { storedTwice: true } : {}),
  };
}

function isTwice(folder: ModelFolder, taken: readonly ModelFile[]): boolean {
  const single = findFile(folder, 'model.safetensors');
  return single !== undefined && !taken.includes(single);
}

/** The files an index names. @throws `NotFound` naming those that are not there */
function indexedFiles(folder: ModelFolder, path: string, index: ReadonlyMap<string, string>): ModelFile[] {
  const names = [...new Set(index.values())];
  const missing = names.filter((name) => !findFile(folder, name));
  if (missing.length > 0) {
    throw new AmalgamError(
      'NotFound',
      `${path} lacks ${missing.length} of the ${counted(names.length, 'weight file')} that its index names: ${nameSome(missing)}.`,
      'The copy is incomplete. Get the missing files, or open the model from the Hub.',
    );
  }
  return names.map((name) => findFile(folder, name)!);
}

const SHARD = /^(.*?)-?(\d{3,6})-of-(\d{3,6})\.safetensors$/;

/**
 * Names of shards contain their number: `model-00001-of-00002.safetensors`.
 * @throws `NotFound` where some of them are not there
 */
function requireAllShards(files: readonly ModelFile[], path: string): void {
  const wholes = new Map<string, { of: number; found: Set<number> }>();
  for (const file of files) {
    const [, stem, index, of] = SHARD.exec(file.path) ?? [];
    if (stem === undefined) continue;
    const whole = wholes.get(`${stem} ${of}`) ?? { of: Number(of), found: new Set() };
    whole.found.add(Number(index));
    wholes.set(`${stem} ${of}`, whole);
  }
  for (const { of, found } of wholes.values()) {
    if (found.size >= of) continue;
    throw new AmalgamError(
      'NotFound',
      `${path} has ${found.size} of the ${of} weight files that their names count: ${nameSome(files.map((file) => file.path))}.`,
      `The copy is incomplete. Get the other files and ${SHARD_INDEX}, or open the model from the Hub.`,
    );
  }
}

/** Downloads on their way: of huggingface_hub, browsers, wget and aria2. */
const UNFINISHED = /\.(?:safetensors|bin)(?:\.[^./]+)*\.(?:incomplete|part|crdownload|download|aria2|tmp)$/i;
const OTHER_WEIGHTS = /\.(?:bin|pt|pth|ckpt|h5|msgpack|gguf|onnx|pkl|npz)$/i;

/** The weight file of a folder without index. @throws `NotSafetensors`, `NotFound`, `IndexInvalid` */
function singleFile(folder: ModelFolder, path: string): ModelFile {
  const model = findFile(folder, 'model.safetensors');
  if (model) return model;
  const top = folder.files.filter((file) => !file.path.includes('/'));
  const candidates = top.filter((file) => file.path.endsWith('.safetensors'));
  if (candidates.length === 1) return candidates[0]!;
  if (candidates.length > 1) {
    requireAllShards(candidates, path);
    const shards = candidates.every((file) => SHARD.test(file.path));
    throw new AmalgamError(
      'NotFound',
      `${path} has ${counted(candidates.length, 'weight file')} and no index that says how they belong together: ${nameSome(candidates.map((f) => f.path))}.`,
      `Add its ${SHARD_INDEX}${shards ? '' : ', or keep one weight file in the folder'}.`,
    );
  }
  const unfinished = folder.files.filter((file) => UNFINISHED.test(file.path)).map((file) => file.path);
  if (unfinished.length > 0) {
    throw new AmalgamError(
      'NotFound',
      `${path} has no weights but a download that was not finished: ${nameSome(unfinished)}.`,
      'Finish the download (hf download goes on where it stopped), or get the model again.',
    );
  }
  const others = top.filter((file) => OTHER_WEIGHTS.test(file.path)).map((file) => file.path);
  if (others.length > 0) {
    const all = (end: RegExp) => others.every((name) => end.test(name));
    throw new AmalgamError(
      'NotSafetensors',
      `${path} has its weights in another format only: ${nameSome(others)}.`,
      all(/\.onnx$/i)
        ? 'ONNX is made of a model to be run, and cannot be made into one again. Use the model in safetensors that it was exported from.'
        : all(/\.npz$/i)
          ? 'Amalgam reads safetensors only. Save the arrays again as safetensors with mlx (mx.load, mx.save_safetensors).'
          : 'Amalgam reads safetensors only, since a pickle can run code when it is opened. Find a copy in safetensors, or convert it with transformers (save_pretrained).',
    );
  }
  throw new AmalgamError(
    'NotFound',
    `${path} has no safetensors file.`,
    'Choose the folder that directly holds model.safetensors, or its shards and their index.',
  );
}

/** @throws `IndexInvalid` with both lists when the index and the headers of the shards disagree */
function compareIndex(
  path: string,
  index: ReadonlyMap<string, string>,
  tensors: ReadonlyMap<string, TensorRef>,
): void {
  const stored = new Map([...tensors.values()].map((ref) => [ref.key, ref]));
  const lacking = [...index].filter(([name, file]) => stored.get(name)?.file !== file);
  const unlisted = [...tensors.values()].filter((ref) => !index.has(ref.key));
  if (lacking.length === 0 && unlisted.length === 0) return;
  const lists = [
    lacking.length > 0 &&
      `listed but not stored where the index says: ${nameSome(
        lacking.map(([name, file]) => `${name} (${file})`),
        8,
      )}`,
    unlisted.length > 0 &&
      `stored but not listed: ${nameSome(
        unlisted.map((ref) => `${ref.key} (${ref.file})`),
        8,
      )}`,
  ].filter((list) => list !== false);
  throw new AmalgamError(
    'IndexInvalid',
    `The index and the weight files of ${path} disagree; ${lists.join('; ')}.`,
    'Files of different versions were mixed. Get the whole model again.',
  );
}

/** Names of LoRA factors, whoever wrote them. */
const LORA_FACTOR = /(?:^|[._])lora_(?:up|down|[ABab])(?:\.|$)|\.lora\.(?:up|down)\.|:(?:up|down)$/;

/** A file of factors alone is no model, whatever it is called. */
function refuseLoraFactors(path: string, tensors: ReadonlyMap<string, TensorRef>): void {
  const factor = [...tensors.keys()].find((name) => LORA_FACTOR.test(name));
  if (factor === undefined) return;
  throw new AmalgamError(
    'AdapterUnsupported',
    `${path} holds LoRA factors (${factor}) without PEFT's adapter_config.json.`,
    'LoRAs of language models are read in the PEFT format, adapter_config.json with adapter_model.safetensors; those of image models as one file, with no config beside it.',
  );
}

// The two ends of a model, token embedding and head: how they are called, and whether they are one tensor.

type Shaped = ReadonlyMap<string, { shape: readonly number[] }>;

/** Embeddings of positions and of segments have no row for a token. */
const NO_TOKENS = /(?:^|\.)(?:wpe|embed_positions|position_embeddings|token_type_embeddings)\.weight$/;

/**
 * Names of embedding and head: the family's, or for an unknown one those with that role, where only one has it.
 * @param tensors by their names without the family's prefix
 */
export function endsOf(family: Family | undefined, tensors: Shaped): { embedding?: string; head?: string } {
  if (family) {
    return { embedding: tensorKey(family.embedding, family), head: tensorKey(family.head, family) };
  }
  const only = (kind: 'embedding' | 'head') => {
    const found = [...tensors].filter(
      ([name, { shape }]) => tensorRole(name, shape).kind === kind && !NO_TOKENS.test(name),
    );
    // encoder–decoders: what both share, beside copies of it
    const shared = found.find(([name]) => name === 'shared.weight');
    return (found.length === 1 ? found[0]! : shared)?.[0];
  };
  const embedding = only('embedding');
  if (embedding === undefined) return {};
  return { embedding, head: only('head') ?? 'lm_head.weight' };
}

/**
 * Whether the config ties the head to the embedding. Absent means the default of the family's configuration class, and
 * for an unknown family that the embedding doubles as head when no head is stored.
 */
export function saysTied(
  config: ModelConfig | undefined,
  family: Family | undefined,
  tensors: Shaped,
): boolean {
  if (!config) return false;
  const text = config.raw.get('text_config');
  const said =
    config.raw.has('tie_word_embeddings') || (text instanceof Map && text.has('tie_word_embeddings'));
  if (said) return config.tieWordEmbeddings;
  const type = config.modelType;
  if (family && type !== undefined) return family.modelTypes[type]?.tiedByDefault ?? false;
  return ![...tensors].some(
    ([name, { shape }]) => tensorPlace(name) === 'after' && tensorRole(name, shape).kind === 'head',
  );
}

/**
 * Whether a checkpoint whose config ties its ends stores two that differ. transformers 5 then loads both (modeling_utils.py,
 * tie_weights); versions before take the embedding for both.
 * @throws AmalgamError of reading
 */
async function endsDiffer(
  folder: ModelFolder,
  config: ModelConfig | undefined,
  family: Family | undefined,
  tensors: ReadonlyMap<string, TensorRef>,
  signal?: AbortSignal,
): Promise<boolean> {
  if (!saysTied(config, family, tensors)) return false;
  const keyed = new Map([...tensors].map(([name, ref]) => [tensorKey(name, family), ref]));
  const { embedding = '', head = '' } = endsOf(family, keyed);
  const [a, b] = [keyed.get(embedding), keyed.get(head)];
  return a !== undefined && b !== undefined && !(await sameValues(folder, a, b, signal));
}

/** Elements that are compared at once. */
const PIECE = 1 << 20;
/** Of ends on a hub that are larger than this, samples are compared: all of both would be a download ahead of the plan. */
const REMOTE_BYTES = 64 * 2 ** 20;
const SAMPLES = 32;
const SAMPLE = 1 << 14;

async function sameValues(
  folder: ModelFolder,
  a: TensorRef,
  b: TensorRef,
  signal?: AbortSignal,
): Promise<boolean> {
  if (`${a.shape}` !== `${b.shape}`) return false;
  const count = a.shape.reduce((n, extent) => n * extent, 1);
  // stored bytes, or their f32 bits where the dtypes differ
  const valuesOf = (ref: TensorRef) => {
    const source = findFile(folder, ref.file)!.open();
    const width = (ref.end - ref.begin) / count;
    return async (begin: number, end: number): Promise<Uint8Array | Uint32Array> => {
      const stored = await source.read(ref.begin + begin * width, ref.begin + end * width, signal);
      if (a.dtype === b.dtype) return stored;
      const decoded = new Float32Array(end - begin);
      if (isWeightDtype(ref.dtype)) decodeToF32(stored, ref.dtype, decoded);
      else if (ref.dtype === 'F64') decoded.set(new Float64Array(stored.slice().buffer));
      else return stored;
      return new Uint32Array(decoded.buffer);
    };
  };
  const [one, other] = [valuesOf(a), valuesOf(b)];
  const isSampled = folder.origin.kind === 'hub' && a.end - a.begin > REMOTE_BYTES;
  const [size, step] = isSampled ? [SAMPLE, Math.floor((count - SAMPLE) / (SAMPLES - 1))] : [PIECE, PIECE];
  for (let begin = 0; begin < count; begin += step) {
    const end = Math.min(count, begin + size);
    const [x, y] = await Promise.all([one(begin, end), other(begin, end)]);
    if (x.length !== y.length || x.some((value, i) => value !== y[i])) return false;
  }
  return true;
}
