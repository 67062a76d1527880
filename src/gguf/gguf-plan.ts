/** What a GGUF file of a merge will hold: every tensor with its type and place, and the metadata. */
import { AmalgamError } from '../errors';
import { type Dtype, isWeightDtype, type WeightDtype, weightBytes } from '../formats/dtype';
import type { GgufType } from '../formats/gguf-type';
import { parseModelConfig } from '../formats/model-config';
import type { Architecture } from '../models/architecture';
import { claimTensors } from '../models/claim';
import { GGUF_ARCHITECTURES } from '../models/gguf-architectures';
import { plainBlocks } from '../models/plain-block';
import { resolveArchitecture } from '../models/resolution';
import { BLOCK_TYPES, type BlockType, FILE_TYPES, rowBytes } from './block-types';
import { aligned, type GgufMetadata, type GgufValue, ggufHeader } from './header';
import {
  type GgufWarning,
  hyperparameters,
  ignoredWindow,
  refused,
  requireExpressible,
  ropeFactors,
  roundedYarn,
} from './hyperparameters';
import { heldBytes, type RowsOfTensor } from './row-arranger';
import { type GgufTensor, ggufTensors } from './tensors';
import { ggufTokenizer, type TokenizerTexts } from './tokenizer';

/** One tensor of the merge on its way into the file. */
export interface GgufTensorPlan extends RowsOfTensor, Omit<GgufTensor, 'source' | 'layout'> {
  type: BlockType;
  dtype: WeightDtype;
  /** Of its blocks; up to the next tensor the file is filled with zeros. With a `second`, as `rows`, of both. */
  byteLength: number;
}

/** How a tensor lies in the file, one of a stack as if alone, one that becomes two as if in one. */
export function rowsInFile({ name, shape, second }: GgufTensor): { rows: number; columns: number } {
  // the biases of experts are vectors one below the other
  const isVector = shape.length === 1 || name.endsWith('.bias');
  const columns = isVector ? 1 : shape.at(-1)!;
  const elements = shape.reduce((product, extent) => product * extent, second === undefined ? 1 : 2);
  return { rows: elements / columns, columns };
}

/** Of a tensor that becomes two, the encoded second waits until all of the first are written. */
function waiting({ second, byteLength }: GgufTensorPlan): number {
  return second === undefined ? 0 : byteLength / 2;
}

/** Bytes in the file, with what fills it up: inside of a stack nothing does. */
export function fileLength({ byteLength, stack = { index: 0, of: 1 }, second }: GgufTensorPlan): number {
  if (second !== undefined) return 2 * aligned(byteLength / 2);
  if (stack.index + 1 < stack.of) return byteLength;
  return byteLength + aligned(stack.of * byteLength) - stack.of * byteLength;
}

export interface GgufPlan {
  type: GgufType;
  /** By the merge's name of the tensor; those that the file leaves out are not there. */
  tensors: ReadonlyMap<string, GgufTensorPlan>;
  /** Tensors that follow from the config, ahead of the others: F32. */
  factors: readonly [name: string, values: Float32Array<ArrayBuffer>][];
  metadata: GgufMetadata;
  /** Of the whole file, the recipe's metadata not counted. */
  byteLength: number;
  /** Held while a tensor is arranged and encoded. */
  peakBytes: number;
  /** Tensors of the merge become parts of one: they have to come in the order of `tensors`. */
  isStacked: boolean;
  /** What the file cannot say though it is right on most texts. */
  warnings: readonly GgufWarning[];
}

export interface GgufRequest {
  type: GgufType;
  name: string;
  /** The output's config.json. */
  config: string;
  tokenizer: TokenizerTexts;
  tensors: readonly { name: string; dtype: Dtype; shape: readonly number[] }[];
  /** Its columns will be weighed by an importance matrix. */
  isWeighted?: boolean;
}

/**
 * Plans the file from config, tokenizer and the shapes of the output.
 * @throws AmalgamError `GgufUnsupported`, `ArchitectureUnsupported`, `TensorMissing`, `ShapeMismatch` naming what cannot be
 *   written, and what parsing throws
 */
export function planGguf(request: GgufRequest): GgufPlan {
  const config = parseModelConfig(request.config, 'config.json');
  const gguf = GGUF_ARCHITECTURES[config.modelType ?? ''];
  if (!gguf) throw refused(`Models of type “${config.modelType ?? 'unknown'}” cannot be written as GGUF.`);
  const architecture = resolveArchitecture(config);
  requireExpressible(architecture, gguf);
  const stored = new Map(request.tensors.map((tensor) => [tensor.name, tensor]));
  const claimed = claimTensors(architecture, stored);
  const planned = ggufTensors(architecture, gguf).map((tensor): [string, GgufTensorPlan] => {
    const source = stored.get(claimed.get(tensor.source)!)!;
    const { dtype } = source;
    if (!isWeightDtype(dtype)) {
      throw new AmalgamError(
        'GgufUnsupported',
        `${source.name} is ${dtype}, which cannot be written as GGUF.`,
        'Choose an output dtype (out_dtype) where these are plain numbers, or write safetensors.',
      );
    }
    const { rows, columns } = rowsInFile(tensor);
    const type = tensorType(request.type, tensor, architecture, request.isWeighted ?? false);
    const byteLength = rows * rowBytes(type, columns);
    const elementBytes = weightBytes(dtype);
    return [source.name, { ...tensor, type, dtype, rows, columns, elementBytes, byteLength }];
  });
  const factors = ropeFactors(architecture);
  const tokenizer = ggufTokenizer(request.tokenizer, architecture.vocab, config.raw, request.name);
  const metadata = new Map<string, GgufValue>([
    ['general.architecture', { type: 'text', value: gguf.name }],
    ['general.type', { type: 'text', value: 'model' }],
    ['general.name', { type: 'text', value: tokenizer.name }],
    ['general.file_type', { type: 'u32', value: FILE_TYPES[request.type].id }],
    ['general.quantization_version', { type: 'u32', value: 2 }],
    ...hyperparameters(architecture, gguf, config),
    ...tokenizer.metadata,
  ]);
  const plan: Omit<GgufPlan, 'byteLength' | 'warnings'> = {
    type: request.type,
    tensors: new Map(planned),
    factors,
    metadata,
    peakBytes: planned.reduce((most, [, tensor]) => Math.max(most, heldBytes(tensor) + waiting(tensor)), 0),
    isStacked: planned.some(([, { stack }]) => stack !== undefined),
  };
  const window = ignoredWindow(architecture, gguf);
  const yarn = roundedYarn(architecture, gguf);
  const warnings = [window, yarn, ...tokenizer.warnings].filter((each) => each !== undefined);
  const tensorBytes = planned.reduce((sum, [, tensor]) => sum + fileLength(tensor), 0);
  return {
    ...plan,
    byteLength: ggufBeginning(plan, [], [...plan.tensors.keys()]).byteLength + tensorBytes,
    warnings,
  };
}

/**
 * The bytes of the file ahead of the first tensor of the merge: header, and tensors that follow from the config.
 * @param more metadata of the run
 * @param order the merge's names of the tensors, in the order in which they come
 */
export function ggufBeginning(
  { metadata, factors, tensors }: Omit<GgufPlan, 'byteLength' | 'warnings'>,
  more: readonly (readonly [key: string, value: GgufValue])[],
  order: readonly string[],
): Uint8Array<ArrayBuffer> {
  const constants = factors.map(([name, values]) => ({
    name,
    shape: [values.length],
    type: 'F32' as const,
    byteLength: values.byteLength,
  }));
  const entries = order.flatMap((name) => {
    const tensor = tensors.get(name);
    if (tensor?.second !== undefined) {
      const half = { ...tensor, byteLength: tensor.byteLength / 2 };
      return [half, { ...half, name: tensor.second }];
    }
    if (!tensor?.stack) return tensor ?? [];
    const { index, of } = tensor.stack;
    const { shape, byteLength } = tensor;
    return index === 0 ? [{ ...tensor, shape: [of, ...shape], byteLength: of * byteLength }] : [];
  });
  const header = ggufHeader(new Map([...metadata, ...more]), [...constants, ...entries]);
  const length = constants.reduce((sum, { byteLength }) => sum + aligned(byteLength), header.byteLength);
  const bytes = new Uint8Array(length);
  bytes.set(header);
  let at = header.byteLength;
  for (const [, values] of factors) {
    bytes.set(new Uint8Array(values.buffer), at);
    at += aligned(values.byteLength);
  }
  return bytes;
}

// Which block type a tensor of a GGUF gets: the mix of llama.cpp v0.5.0 (src/llama-quant.cpp, llama_tensor_get_type_impl).

/** Type for rows that a block of 256 does not divide. */
const FALLBACK: Partial<Record<BlockType, BlockType>> = { Q4_K: 'Q5_0', Q5_K: 'Q5_1', Q6_K: 'Q8_0' };

/**
 * The block type of one tensor: vectors, norms and learned positions are F32.
 * @param hasImportance whether columns are weighed: then the first layers of Q4_0 have minima
 */
function tensorType(
  type: GgufType,
  { name, shape }: Pick<GgufTensor, 'name' | 'shape'>,
  architecture: Architecture,
  hasImportance: boolean,
): BlockType {
  if (shape.length < 2 || !name.endsWith('weight') || /_norm\.weight$|^position_embd|ffn_gate_inp/.test(name))
    return 'F32';
  const { blocks } = FILE_TYPES[type];
  if (BLOCK_TYPES[blocks].elements === 1) return blocks;
  return fitting(mixed(type, hasImportance, name, shape.at(-1)!, architecture), shape.at(-1)!);
}

function mixed(
  type: GgufType,
  hasImportance: boolean,
  name: string,
  columns: number,
  architecture: Architecture,
): BlockType {
  const { final, blocks, modelType } = architecture;
  const ordinary = FILE_TYPES[type].blocks;
  if (name === 'output.weight' || (final.tied && name === 'token_embd.weight')) {
    if (columns % BLOCK_TYPES[ordinary].elements !== 0 || ordinary === 'Q8_0') return 'Q8_0';
    return 'Q6_K';
  }
  const [, layer, module] = /^blk\.(\d+)\.(\w+)\.weight$/.exec(name) ?? [];
  if (layer === undefined) return ordinary;
  if (type === 'Q4_0' && hasImportance) {
    return module === 'ffn_down' && Number(layer) < Math.floor(blocks.length / 8) ? 'Q4_1' : ordinary;
  }
  if (hasEightExperts(architecture)) {
    if (module === 'attn_v' || module === 'attn_k') return 'Q8_0';
    if (module === 'attn_output' && type === 'Q4_K_M') return 'Q5_K';
  }
  if (type !== 'Q4_K_M' && type !== 'Q5_K_M') return ordinary;
  const isMore = takesMoreBits(Number(layer), blocks.length);
  if (module === 'ffn_down' || module === 'ffn_down_exps' || module === 'ffn_down_shexp')
    return isMore ? 'Q6_K' : ordinary;
  if (module !== 'attn_v' && module !== 'attn_qkv') return ordinary;
  if (isMore) return 'Q6_K';
  if (blocks.length !== 80) return ordinary;
  // what llama.cpp takes for a model of 70 B: eight heads share the values
  const { heads, keyValueHeads } = plainBlocks(architecture)[0]!.attention;
  const is70B = modelType === 'qwen2' || heads !== keyValueHeads;
  return is70B ? 'Q5_K' : ordinary;
}

/** As Mixtral has them: attention is a small part of the weights then. */
function hasEightExperts(architecture: Architecture): boolean {
  const { mlp } = plainBlocks(architecture)[0]!;
  return mlp.kind === 'routed' && mlp.experts.experts.length === 8;
}

/** The first and the last eighth of the layers, and every third between. */
function takesMoreBits(layer: number, layers: number): boolean {
  const eighth = Math.floor(layers / 8);
  return layer < eighth || layer >= Math.floor((7 * layers) / 8) || (layer - eighth) % 3 === 2;
}

function fitting(type: BlockType, columns: number): BlockType {
  if (columns % BLOCK_TYPES[type].elements === 0) return type;
  const smaller = FALLBACK[type] ?? type;
  return columns % BLOCK_TYPES[smaller].elements === 0 ? smaller : 'F16';
}
