/** Weights published in eight bits and fewer (`quantized/`), as the weights they stand for: read as derived F32, written as BF16. */
import type { ModelConfig } from '../formats/model-config';
import { derivedTensor } from './row-map';
import type { TensorRef } from './tensor-view';

/** Tensors of a checkpoint whose quantized weights are read as the values they stand for. */
export interface Dequantized {
  tensors: ReadonlyMap<string, TensorRef>;
  /** Formats that were found. */
  formats: ReadonlySet<string>;
  /** Names of weights in such a format that no scale fits: beside others that have one, theirs is missing. */
  unscaled: readonly string[];
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
const ANY_MARK = new RegExp(MARKS.map(([end]) => end.source).join('|'));

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
    if (ANY_MARK.test(name)) return said ?? MARKS.find(([end]) => end.test(name))![1];
    if (/^[IU](?:8|16|32)$/.test(dtype) && name.endsWith('.weight') && shape.length > 1) {
      return said ?? `integers of ${dtype.slice(1)} bits`;
    }
  }
  return formats.size > 0 ? undefined : said;
}

// Numbers of eight bits (OCP 8-bit Floating Point, E4M3 and E5M2).

/** Names that the scale of a weight has. */
export function scaleNames(name: string): string[] {
  return [`${name}_scale_inv`, `${name}_scale`];
}

/** What each code of eight bits stands for. */
export function eightBitValues(dtype: TensorRef['dtype']): Float32Array {
  return Float32Array.from({ length: 256 }, (_, bits) => (dtype === 'F8_E4M3' ? e4m3(bits) : e5m2(bits)));
}

/** Four bits of exponent (bias 7), three of mantissa; no infinity, all ones are NaN. */
function e4m3(bits: number): number {
  const sign = bits & 0x80 ? -1 : 1;
  const [exponent, mantissa] = [(bits >> 3) & 15, bits & 7];
  if ((bits & 0x7f) === 0x7f) return Number.NaN;
  return sign * (exponent === 0 ? mantissa * 2 ** -9 : (8 + mantissa) * 2 ** (exponent - 10));
}

/** The upper byte of binary16. */
function e5m2(bits: number): number {
  const sign = bits & 0x80 ? -1 : 1;
  const [exponent, mantissa] = [(bits >> 2) & 31, bits & 3];
  if (exponent === 31) return mantissa === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (exponent === 0 ? mantissa * 2 ** -16 : (4 + mantissa) * 2 ** (exponent - 17));
}
