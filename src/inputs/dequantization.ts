/**
 * Weights published in eight or four bits, as the weights they stand for: read as derived F32, written as BF16.
 *
 * FP8 (OCP 8-bit Floating Point, E4M3 and E5M2): w = value · scale, one scale a tensor, a row or a block of
 * `weight_block_size`; beside `x.weight` in `x.weight_scale_inv` (DeepSeek, Qwen, Mistral; transformers integrations/finegrained_fp8.py)
 * or `x.weight_scale` (compressed-tensors, fbgemm). MXFP4 (OCP Microscaling Formats v1.0; GPT-OSS): `x_blocks` [experts, rows, groups,
 * 16] with two E2M1 values a byte, the lower half first, times 2^(`x_scales` − 127); transformers holds the weight [experts,
 * columns, rows] (integrations/mxfp4.py).
 */
import type { ModelConfig } from '../formats/model-config';
import { isJsonNumber } from '../formats/strict-json';
import { derivedTensor } from './row-map';
import { readF32 } from './stored-tensor';
import type { ReadTensor, TensorRef } from './tensor-view';

/** Values of scales of what is computed between the weights: they go with the eight bits. */
const ACTIVATION_SCALE = /\.(?:input_scale|activation_scale|output_scale|[qkv]_scale|input_global_scale)$/;

/** Tensors of a checkpoint whose 8-bit and 4-bit weights are read as the values they stand for. */
interface Dequantized {
  tensors: Map<string, TensorRef>;
  /** Formats that were found. */
  formats: Set<'FP8' | 'MXFP4'>;
  /** Names of weights in eight or four bits that no scale fits: beside others that have one, theirs is missing. */
  unscaled: string[];
}

/** The tensors of a checkpoint by name, those of eight and four bits as derived ones, without their scales. */
export function dequantized(
  stored: ReadonlyMap<string, TensorRef>,
  config: ModelConfig | undefined,
): Dequantized {
  const formats: Dequantized['formats'] = new Set();
  const unscaled: string[] = [];
  const tensors = new Map<string, TensorRef>();
  const scales = new Set<string>();
  const block = blockSize(config);
  for (const [name, ref] of stored) {
    if (ref.dtype === 'F8_E4M3' || ref.dtype === 'F8_E5M2') {
      const scaleName = [`${name}_scale_inv`, `${name}_scale`].find((key) => stored.has(key));
      const scale = scaleName === undefined ? undefined : stored.get(scaleName);
      // without scales it is not known what the values stand for
      if (scaleName === undefined || !scale || !fits(ref.shape, scale.shape, block)) {
        tensors.set(name, ref);
        unscaled.push(name);
        continue;
      }
      scales.add(scaleName);
      formats.add('FP8');
      tensors.set(name, derivedTensor(ref, ref.shape, [ref, scale], eightBits(ref, scale, block)));
    } else if (ref.dtype === 'U8' && name.endsWith('_blocks') && ref.shape.length === 4) {
      const plain = name.slice(0, -'_blocks'.length);
      const scale = stored.get(`${plain}_scales`);
      const [experts, rows, groups, bytes] = ref.shape as [number, number, number, number];
      if (scale?.dtype !== 'U8' || bytes !== 16) {
        tensors.set(name, ref);
        unscaled.push(name);
        continue;
      }
      scales.add(`${plain}_scales`);
      formats.add('MXFP4');
      tensors.set(
        plain,
        derivedTensor(ref, [experts, groups * 32, rows], [ref, scale], fourBits(ref, scale)),
      );
    } else tensors.set(name, ref);
  }
  for (const name of scales) tensors.delete(name);
  if (formats.size > 0) {
    for (const name of [...tensors.keys()]) if (ACTIVATION_SCALE.test(name)) tensors.delete(name);
  }
  return { tensors, formats, unscaled };
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
  if ([`${ref.key}_scale_inv`, `${ref.key}_scale`].some((name) => stored.has(name))) return undefined;
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

/** `quantization_config.weight_block_size`: rows and columns with a scale of their own. */
function blockSize(config: ModelConfig | undefined): readonly [number, number] {
  const quantization = config?.raw.get('quantization_config');
  const list = quantization instanceof Map ? quantization.get('weight_block_size') : undefined;
  const [rows, columns] = Array.isArray(list) ? list.map((v) => (isJsonNumber(v) ? Number(v.text) : 0)) : [];
  return rows && columns ? [rows, columns] : [128, 128];
}

/** The shape of scales as [experts, rows, columns] of them; 1 for what all have in common. */
function scaleGrid(shape: readonly number[], scale: readonly number[]): [number, number, number] {
  const [experts = 1, ...inner] = shape.length === 3 ? scale : [1, ...scale];
  const [rows = 1, columns = 1] = inner;
  return [experts, rows, columns];
}

function fits(
  shape: readonly number[],
  scale: readonly number[],
  [blockRows, blockColumns]: readonly [number, number],
): boolean {
  const [experts, rows, columns] = [shape.length === 3 ? shape[0]! : 1, shape.at(-2) ?? 1, shape.at(-1) ?? 1];
  const [e, r, c] = scaleGrid(shape, scale);
  const isOne = (n: number, all: number, block: number) =>
    n === 1 || n === all || n === Math.ceil(all / block);
  return (
    shape.length <= 3 &&
    scale.length <= shape.length &&
    (e === 1 || e === experts) &&
    isOne(r, rows, blockRows) &&
    isOne(c, columns, blockColumns)
  );
}

function eightBits(ref: TensorRef, scale: TensorRef, block: readonly [number, number]) {
  const { shape } = ref;
  const [rows, columns] = [shape.at(-2) ?? 1, shape.at(-1) ?? 1];
  const values = eightBitValues(ref.dtype);
  const grid = scaleGrid(shape, scale.shape);
  const step = (all: number, count: number, size: number) => (count === 1 ? all : count === all ? 1 : size);
  const [rowStep, columnStep] = [step(rows, grid[1], block[0]), step(columns, grid[2], block[1])];
  return async (read: ReadTensor) => {
    const factors = await scaleValues(scale, read);
    return async (begin: number, end: number) => {
      const bytes = await read(ref, begin, end);
      const out = new Float32Array(end - begin);
      for (let i = 0; i < out.length; i++) {
        const at = begin + i;
        const row = Math.floor(at / columns);
        const expert = grid[0] === 1 ? 0 : Math.floor(row / rows);
        const line = expert * grid[1] + Math.floor((row % rows) / rowStep);
        out[i] = values[bytes[i]!]! * factors[line * grid[2] + Math.floor((at % columns) / columnStep)]!;
      }
      return out;
    };
  };
}

/** Scales are weights, or powers of two of eight bits (E8M0). */
async function scaleValues(scale: TensorRef, read: ReadTensor): Promise<Float32Array> {
  if (scale.dtype !== 'F8_E8M0') return readF32(scale, read);
  const bytes = await read(scale, 0, scale.end - scale.begin);
  return Float32Array.from(bytes, (b) => (b === 255 ? Number.NaN : 2 ** (b - 127)));
}

function eightBitValues(dtype: TensorRef['dtype']): Float32Array {
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

const E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6];

/** Experts one after the other: a weight's columns lie together, its rows are what is read. */
function fourBits(ref: TensorRef, scale: TensorRef) {
  const [, rows, groups] = ref.shape as [number, number, number, number];
  const columns = groups * 32;
  const size = rows * columns;
  const values = Float32Array.from({ length: 16 }, (_, bits) => (bits & 8 ? -1 : 1) * E2M1[bits & 7]!);
  return async (read: ReadTensor) => {
    let kept: { expert: number; weights: Float32Array } | undefined;
    const expertOf = async (expert: number) => {
      if (kept?.expert === expert) return kept.weights;
      const [blocks, exponents] = await Promise.all([
        read(ref, (expert * size) / 2, ((expert + 1) * size) / 2),
        read(scale, expert * rows * groups, (expert + 1) * rows * groups),
      ]);
      const weights = new Float32Array(size);
      for (let g = 0; g < rows * groups; g++) {
        const power = 2 ** (exponents[g]! - 127);
        const [row, column] = [Math.floor(g / groups), (g % groups) * 32];
        for (let b = 0; b < 16; b++) {
          const byte = blocks[g * 16 + b]!;
          weights[(column + 2 * b) * rows + row] = values[byte & 15]! * power;
          weights[(column + 2 * b + 1) * rows + row] = values[byte >> 4]! * power;
        }
      }
      kept = { expert, weights };
      return weights;
    };
    return async (begin: number, end: number) => {
      const out = new Float32Array(end - begin);
      for (let at = begin; at < end; ) {
        const expert = Math.floor(at / size);
        const to = Math.min(end, (expert + 1) * size);
        out.set((await expertOf(expert)).subarray(at - expert * size, to - expert * size), at - begin);
        at = to;
      }
      return out;
    };
  };
}
