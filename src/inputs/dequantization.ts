/** Weights published in eight bits and fewer (`quantized/`), as the weights they stand for: read as derived F32, written as BF16. */
import type { ModelConfig } from '../formats/model-config';
import type { JsonObject } from '../formats/strict-json';
import type { FourBitState } from './quantized/format';
import { foundTensor } from './quantized/format';
import { formats as known } from './quantized/formats';
import { eightBitValues, scaleNames } from './quantized/fp8';
import { derivedTensor } from './row-map';
import type { TensorRef } from './tensor-view';

/** Values of scales of what is computed between the weights: they go with the eight bits. */
const ACTIVATION_SCALE = /\.(?:input_scale|activation_scale|output_scale|[qkv]_scale|input_global_scale)$/;

/** Tensors of a checkpoint whose quantized weights are read as the values they stand for. */
interface Dequantized {
  tensors: Map<string, TensorRef>;
  /** Formats that were found. */
  formats: Set<string>;
  /** Names of weights in such a format that no scale fits: beside others that have one, theirs is missing. */
  unscaled: string[];
}

/** The tensors of a checkpoint by name, quantized ones as derived ones, without their scales. @param checkpoint its stored tensors */
export function dequantized({
  tensors: stored,
  config,
  fourBits = new Map(),
}: {
  tensors: ReadonlyMap<string, TensorRef>;
  config?: ModelConfig;
  fourBits?: ReadonlyMap<string, FourBitState>;
}): Dequantized {
  const formats: Dequantized['formats'] = new Set();
  const unscaled: string[] = [];
  const tensors = new Map<string, TensorRef>();
  const parts = new Set<string>();
  const nameOf = new Map([...stored].map(([name, ref]) => [ref, name]));
  const checkpoint = { tensors: stored, settings: settingsOf(config), states: fourBits };
  for (const [name, ref] of stored) {
    const all = Object.entries(known).map(
      ([id, format]) => [id, format.find(name, ref, checkpoint)] as const,
    );
    const [id, found] = all.find(([, one]) => one !== undefined) ?? [];
    if (!found || found === 'unscaled') {
      tensors.set(name, ref);
      if (found) unscaled.push(name);
      continue;
    }
    formats.add(found.format);
    tensors.set(found.name, foundTensor(id!, known[id!]!, found));
    for (const part of found.from) if (part !== ref) parts.add(nameOf.get(part)!);
    for (const part of found.beside ?? []) parts.add(part);
  }
  for (const name of parts) tensors.delete(name);
  if (formats.size > 0) {
    for (const name of [...tensors.keys()]) if (ACTIVATION_SCALE.test(name)) tensors.delete(name);
  }
  return { tensors, formats, unscaled };
}

/** What the config says of quantization: MLX has a key of its own. */
function settingsOf(config: ModelConfig | undefined): JsonObject {
  const said = [config?.raw.get('quantization_config'), config?.raw.get('quantization')];
  return said.find((one) => one instanceof Map) ?? new Map();
}

/**
 * F64, and eight bits without scales, as f32 values: what a cast makes of them. Undefined for what is no such tensor.
 * @param stored the names of its checkpoint: eight bits with a scale stand for something else
 */
export function castTensor(ref: TensorRef, stored: { has(name: string): boolean }): TensorRef | undefined {
  if (ref.derived) return undefined;
  if (ref.dtype === 'F64') {
    return derivedTensor(ref, ref.shape, [ref], async (read) => async (begin, end) => {
      const { buffer } = await read(ref, begin * 8, end * 8);
      return Float32Array.from(new Float64Array(buffer));
    });
  }
  if (ref.dtype !== 'F8_E4M3' && ref.dtype !== 'F8_E5M2') return undefined;
  if (scaleNames(ref.key).some((name) => stored.has(name))) return undefined;
  const values = eightBitValues(ref.dtype);
  return derivedTensor(ref, ref.shape, [ref], async (read) => async (begin, end) => {
    return Float32Array.from(await read(ref, begin, end), (bits) => values[bits]!);
  });
}

/** Ends of names that a way of quantizing leaves beside its weights, or in their place. */
const MARKS: readonly (readonly [end: RegExp, method: string])[] = [
  [/\.(?:absmax|quant_map|quant_state\.[^.]+|SCB)$/, 'bitsandbytes'],
  [/\.(?:qweight|qzeros)$/, 'GPTQ or AWQ'],
  [/\.weight_packed$/, 'compressed-tensors'],
  [/\.W_q$/, 'HQQ'],
  [/\.codebooks$/, 'AQLM'],
  [/\.weight\._data$/, 'quanto'],
  [/_weight_qdata$/, 'torchao'],
  [/\.(?:q_weight|trellis)$/, 'ExLlama'],
  [/\.Qidxs(?:_\w+)?$/, 'QuIP#'],
  [/\.qidxs_packed$|\.centroids\.weight$/, 'VPTQ'],
];

/**
 * How the weights are quantized in a way that is not read, or undefined: by the names of what is stored, by matrices of integers
 * (MLX, eight bits), and by the config where nothing was read as what it stands for.
 */
export function unreadQuantization(
  config: ModelConfig | undefined,
  { tensors, formats }: Dequantized,
): string | undefined {
  const said = config?.quantization;
  for (const [name, { dtype, shape }] of tensors) {
    const mark = MARKS.find(([end]) => end.test(name))?.[1];
    if (mark !== undefined) return said ?? mark;
    if (/^[IU](?:8|16|32)$/.test(dtype) && name.endsWith('.weight') && shape.length > 1) {
      return said ?? `integers of ${dtype.slice(1)} bits`;
    }
  }
  return formats.size > 0 ? undefined : said;
}
