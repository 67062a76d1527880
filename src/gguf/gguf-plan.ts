/** What a GGUF file of a merge will hold: every tensor with its type and place, and the metadata. */
import { AmalgamError } from '../errors';
import type { Dtype } from '../formats/dtype';
import { isWeightDtype, type WeightDtype, weightBytes } from '../formats/dtype';
import type { GgufType } from '../formats/gguf-type';
import { parseModelConfig } from '../formats/model-config';
import { claimTensors } from '../models/claim';
import { GGUF_ARCHITECTURES } from '../models/gguf-architectures';
import { resolveArchitecture } from '../models/resolution';
import { type BlockType, FILE_TYPES, rowBytes } from './block-types';
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
import { tensorType } from './tensor-types';
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
