/**
 * A model in a GGUF file as the checkpoint that it stands for: Hugging Face names and order (gguf/tensors.ts the other way), and
 * the config and tokenizer that its metadata says, where no such files lie beside it.
 */
import { AmalgamError } from '../errors';
import { type Dtype, isWeightDtype, type WeightDtype } from '../formats/dtype';
import { decodeToF32 } from '../formats/half';
import type { ModelConfig } from '../formats/model-config';
import { displayName } from '../formats/names';
import { counted } from '../formats/quantity';
import { FILE_TYPE_NAMES, READ_TYPES } from '../gguf/block-types';
import { rowsInFile } from '../gguf/gguf-plan';
import { FACTORS, ggufConfig, type ReadConfig, type StoredModel } from '../gguf/read-config';
import { type GgufHeader, readGgufHeader, type StoredBlocks } from '../gguf/read-header';
import { ggufTokenizerTexts } from '../gguf/read-tokenizer';
import { type GgufTensor, ggufTensors } from '../gguf/tensors';
import { expectedTensors } from '../models/claim';
import { bufferSource } from '../sources/byte-source';
import { findFile, type ModelFile, type ModelFolder } from '../sources/model-folder';
import { readSmallText } from './header';
import { nameSome } from './problems';
import { foundTensor } from './quantized/format';
import { gguf as format, ID } from './quantized/gguf';
import type { TensorRef } from './tensor-view';

const MAX_CONFIG_BYTES = 16 * 2 ** 20;
/** Longest tensor that follows from the config. */
const MAX_FACTOR_BYTES = 2 ** 20;

/** What its files say of a model. */
interface GgufModel {
  /** With the config and the tokenizer that the metadata says. */
  folder: ModelFolder;
  config: ModelConfig;
  tensors: ReadonlyMap<string, TensorRef>;
  formats: ReadonlySet<string>;
  tokenizerFault?: AmalgamError;
}

/**
 * Opens a model of GGUF files: their headers are read, and no weight.
 * @param files one, or all that the model is split into, in order
 * @throws AmalgamError of the header, of the config that is made, `TensorMissing`, `ShapeMismatch`, `GgufUnsupported`
 */
export async function openGguf(
  folder: ModelFolder,
  files: readonly ModelFile[],
  path: string,
  signal?: AbortSignal,
): Promise<GgufModel> {
  const headers = await Promise.all(
    files.map((file) => readGgufHeader(file.open(), `${path}/${file.path}`, signal)),
  );
  const { model, fileOf } = await joined(files, headers, `${path}/${files[0]!.path}`, signal);
  const configFile = findFile(folder, 'config.json');
  const own = configFile && (await readSmallText(configFile, path, MAX_CONFIG_BYTES, signal));
  const read = ggufConfig(model, own);
  const tensors = tensorsOf(model, read, (blocks) => ({ folder: path, file: fileOf.get(blocks)!.path }));
  const { files: made, tokenizerFault } = filesBeside(folder, model, read.config.text);
  return {
    ...{ folder: { ...folder, files: made }, config: read.config, tensors },
    formats: new Set(formatOf(model)),
    ...(tokenizerFault ? { tokenizerFault } : {}),
  };
}

/** The tensors of all files, and where each lies. @throws AmalgamError `NotFound` for a part that is not there */
async function joined(
  files: readonly ModelFile[],
  headers: readonly GgufHeader[],
  fileName: string,
  signal?: AbortSignal,
): Promise<{ model: StoredModel; fileOf: Map<StoredBlocks, ModelFile> }> {
  const { metadata } = headers[0]!;
  const count = Number(metadata.get('split.count') ?? 1);
  const isInOrder = headers.every(({ metadata: own }, i) => (own.get('split.no') ?? 0) === i);
  if (count !== files.length && !(count === 0 && files.length === 1)) {
    throw new AmalgamError(
      'NotFound',
      `${displayName(fileName)} is one of ${counted(count, 'file')} of a model, and ${files.length} of them are there.`,
      'Put all of them into one folder, and open that.',
    );
  }
  const tensors = new Map<string, StoredBlocks>();
  const fileOf = new Map<StoredBlocks, ModelFile>();
  for (const [i, header] of headers.entries()) {
    for (const blocks of header.tensors) {
      if (tensors.has(blocks.name) || !isInOrder) {
        throw new AmalgamError(
          'IndexInvalid',
          `${displayName(fileName)} and the files beside it are not the parts of one model.`,
          'Get all of them from one place.',
        );
      }
      tensors.set(blocks.name, blocks);
      fileOf.set(blocks, files[i]!);
    }
  }
  const factors = new Map<string, Float32Array>();
  for (const name of FACTORS) {
    const blocks = tensors.get(name);
    const dtype = blocks && READ_TYPES.get(blocks.type)!.name;
    if (!blocks || dtype !== 'F32' || blocks.end - blocks.begin > MAX_FACTOR_BYTES) continue;
    const values = new Float32Array((blocks.end - blocks.begin) / 4);
    decodeToF32(await fileOf.get(blocks)!.open().read(blocks.begin, blocks.end, signal), dtype, values);
    factors.set(name, values);
  }
  return { model: { fileName, metadata, tensors, factors }, fileOf };
}

/** Every tensor of the architecture by its name there, where it lies in the file and how its rows are turned back. */
function tensorsOf(
  { tensors: stored, fileName }: StoredModel,
  { architecture, gguf }: ReadConfig,
  placeOf: (blocks: StoredBlocks) => Pick<TensorRef, 'folder' | 'file'>,
): Map<string, TensorRef> {
  const shapes = new Map(expectedTensors(architecture).map(({ name, shape }) => [name, shape]));
  const unused = new Set([...stored.keys()].filter((name) => !FACTORS.includes(name)));
  const missing: string[] = [];
  const tensors = new Map<string, TensorRef>();
  for (const tensor of ggufTensors(architecture, gguf)) {
    const names = [tensor.name, ...(tensor.second === undefined ? [] : [tensor.second])];
    const parts = names.flatMap((name) => stored.get(name) ?? []);
    if (parts.length < names.length) {
      missing.push(...names.filter((name) => !stored.has(name)));
      continue;
    }
    for (const part of parts) {
      unused.delete(part.name);
      requireShape(part, tensor, fileName);
    }
    tensors.set(tensor.source, tensorRef(parts, tensor, shapes.get(tensor.source)!, placeOf));
  }
  const about = displayName(fileName);
  if (missing.length > 0) {
    throw new AmalgamError(
      'TensorMissing',
      `${about} lacks tensors of its model: ${nameSome(missing)}.`,
      'The file is incomplete, or of a version of the model that is not known here. Use the safetensors that it was made of.',
    );
  }
  if (unused.size > 0) {
    throw new AmalgamError(
      'GgufUnsupported',
      `${about} holds tensors that its model has no place for here: ${nameSome([...unused])}.`,
      'They would be lost. Use the safetensors that it was made of.',
    );
  }
  return tensors;
}

function requireShape({ name, shape }: StoredBlocks, tensor: GgufTensor, fileName: string): void {
  const expected = [...(tensor.stack ? [tensor.stack.of] : []), ...tensor.shape];
  // llama.cpp fills shapes up with ones in front
  const plain = (extents: readonly number[]) => extents.join('×').replace(/^(?:1×)+/, '');
  if (plain(shape) === plain(expected)) return;
  throw new AmalgamError(
    'ShapeMismatch',
    `${displayName(name)} in ${displayName(fileName)} has the shape [${shape.join(', ')}], and its model [${expected.join(', ')}].`,
    'The file is damaged, or of a version of the model that is not known here. Use the safetensors that it was made of.',
  );
}

function tensorRef(
  parts: readonly StoredBlocks[],
  tensor: GgufTensor,
  shape: readonly number[],
  placeOf: (blocks: StoredBlocks) => Pick<TensorRef, 'folder' | 'file'>,
): TensorRef {
  const { layout, plus, stack } = tensor;
  const { index, of } = stack ?? { index: 0, of: 1 };
  const { type } = parts[0]!;
  const { name } = READ_TYPES.get(type)!;
  const refs = parts.map((part): TensorRef => {
    const length = (part.end - part.begin) / of;
    const begin = part.begin + index * length;
    return { ...placeOf(part), key: part.name, dtype: 'U8', shape: [length], begin, end: begin + length };
  });
  const dtype = name as WeightDtype;
  const isPlain = isWeightDtype(dtype);
  const [ref] = refs as [TensorRef];
  if (isPlain && layout.kind === 'as_stored' && plus === 0 && refs.length === 1) {
    return { ...ref, dtype, shape };
  }
  const { rows, columns } = rowsInFile(tensor);
  const found = foundTensor(ID, format, {
    ...{ name: tensor.source, format: name, shape, from: refs },
    params: {
      ...{ types: parts.map((part) => part.type), columns, plus },
      ...(layout.kind === 'as_stored' ? {} : { order: layout.from ?? [], group: layout.rows ?? rows }),
      turned: layout.kind === 'transposed' ? 1 : 0,
    },
  });
  return isPlain ? { ...found, derived: { ...found.derived!, dtype } } : found;
}

/** The types of the file as they are named to people, with the bits of a weight; none where nothing was quantized. */
function* formatOf({ metadata, tensors }: StoredModel): Generator<string> {
  let [bytes, elements] = [0, 0];
  const names = new Map<string, number>();
  for (const { type, begin, end, shape } of tensors.values()) {
    const { name } = READ_TYPES.get(type)!;
    names.set(name, (names.get(name) ?? 0) + end - begin);
    bytes += end - begin;
    elements += shape.reduce((product, extent) => product * extent, 1);
  }
  const [most] = [...names].filter(([name]) => !isWeightDtype(name as Dtype)).toSorted((a, b) => b[1] - a[1]);
  if (!most) return;
  const said = FILE_TYPE_NAMES[Number(metadata.get('general.file_type') ?? -1)];
  yield `${said ?? most[0]} (${((8 * bytes) / elements).toFixed(1)} bits a weight)`;
}

/** The files of the folder, with those that the metadata says in place of the ones that lack. */
function filesBeside(
  folder: ModelFolder,
  model: StoredModel,
  config: string,
): { files: ModelFile[]; tokenizerFault?: AmalgamError } {
  const others = folder.files.filter(({ path }) => path !== 'config.json');
  const files = [...others, madeFile('config.json', config)];
  if (findFile(folder, 'tokenizer.json')) return { files };
  try {
    const texts = ggufTokenizerTexts(model);
    files.push(madeFile('tokenizer.json', texts.tokenizer));
    const settings = 'tokenizer_config.json';
    if (!findFile(folder, settings)) files.push(madeFile(settings, texts.config));
    return { files };
  } catch (thrown) {
    if (thrown instanceof AmalgamError) return { files, tokenizerFault: thrown };
    throw thrown;
  }
}

function madeFile(path: string, text: string): ModelFile {
  const bytes = new TextEncoder().encode(text);
  return { path, byteLength: bytes.length, isMade: true, open: () => bufferSource(bytes, path) };
}
