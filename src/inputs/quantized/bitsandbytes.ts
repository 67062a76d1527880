/**
 * bitsandbytes (functional.py, dequantize_4bit and int8_vectorwise_dequant). Four bits (NF4, FP4; Dettmers et al. 2023): two codes
 * a byte, the upper half first, w = map[code] · magnitude of its block of 64; magnitudes in `x.weight.absmax`, or there in eight
 * bits (double quantization): nested map[code] · nested magnitude + offset. Eight bits: w = q · `x.SCB`[row] / 127.
 */
import { readF32 } from '../stored-tensor';
import type { ReadTensor, TensorRef } from '../tensor-view';
import { byRows, type FourBitState, type QuantizedFormat } from './format';

/** A tensor of JSON beside each weight in four bits. */
const STATE = /^(.+)\.quant_state\.bitsandbytes__(?:nf4|fp4)$/;
const MAX_STATE_BYTES = 4096;
/** States read at the same time. */
const AT_ONCE = 12;

/** Shapes and blocks of the weights in four bits, by their names; what is no such JSON is left out. @throws what reading throws */
export async function fourBitStates(
  tensors: ReadonlyMap<string, TensorRef>,
  read: (ref: TensorRef) => Promise<Uint8Array>,
): Promise<Map<string, FourBitState>> {
  const states = new Map<string, FourBitState>();
  const left = [...tensors].filter(
    ([name, { begin, end }]) => STATE.test(name) && end - begin <= MAX_STATE_BYTES,
  );
  const readNext = async () => {
    for (let next = left.shift(); next; next = left.shift()) {
      const state = parsedState(new TextDecoder().decode(await read(next[1])));
      if (state) states.set(STATE.exec(next[0])![1]!, state);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, readNext));
  return states;
}

function parsedState(text: string): FourBitState | undefined {
  let said: unknown;
  try {
    said = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof said !== 'object' || said === null) return undefined;
  const { quant_type: type, blocksize, shape, ...rest } = said as Record<string, unknown>;
  const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) > 0;
  if (typeof type !== 'string' || !isCount(blocksize) || !Array.isArray(shape) || !shape.every(isCount))
    return undefined;
  const { nested_blocksize: block, nested_offset: offset } = rest;
  if (block === undefined) return { type, shape, block: blocksize };
  if (!isCount(block) || typeof offset !== 'number') return undefined;
  return { type, shape, block: blocksize, nested: { block, offset } };
}

export const fourBits: QuantizedFormat = {
  find(name, ref, { tensors, states }) {
    const state = states.get(name);
    if (ref.dtype !== 'U8' || !state) return undefined;
    const part = (end: string) => tensors.get(`${name}.${end}`);
    const [absmax, map] = [part('absmax'), part('quant_map')];
    const { shape, block, nested, type } = state;
    const elements = shape.reduce((n, extent) => n * extent, 1);
    const blocks = Math.ceil(elements / block);
    if (!absmax || !map || elementsOf(map) !== 16 || elementsOf(absmax) !== blocks) return 'unscaled';
    if (Math.ceil(elements / 2) !== ref.end - ref.begin) return 'unscaled';
    const [nestedAbsmax, nestedMap] = [part('nested_absmax'), part('nested_quant_map')];
    const isNested = nested !== undefined;
    if (isNested !== (absmax.dtype === 'U8') || (isNested && (!nestedAbsmax || !nestedMap)))
      return 'unscaled';
    if (block % 2 !== 0) return 'unscaled';
    if (isNested && elementsOf(nestedAbsmax!) !== Math.ceil(blocks / nested.block)) return 'unscaled';
    return {
      ...{ name, format: type.toUpperCase(), shape },
      from: [ref, map, absmax, ...(isNested ? [nestedAbsmax!, nestedMap!] : [])],
      beside: [`${name}.quant_state.bitsandbytes__${type}`],
      params: { block, nestedBlock: nested?.block ?? 0, offset: nested?.offset ?? 0 },
    };
  },
  async open([ref, map, absmax, ...nested], params, read) {
    const { block, nestedBlock, offset } = params as Record<'block' | 'nestedBlock' | 'offset', number>;
    const values = await readF32(map!, read);
    const magnitudes = await magnitudesOf(absmax!, nested, nestedBlock, offset, read);
    const bytes = ref!.end - ref!.begin;
    return byRows(block, async (first, end) => {
      const codes = await read(ref!, (first * block) / 2, Math.min(bytes, (end * block) / 2));
      const out = new Float32Array(2 * codes.length);
      for (let row = first; row < end; row++) {
        const magnitude = magnitudes[row]!;
        const last = Math.min(codes.length, ((row + 1 - first) * block) / 2);
        for (let at = ((row - first) * block) / 2; at < last; at++) {
          const code = codes[at]!;
          out[2 * at] = values[code >> 4]! * magnitude;
          out[2 * at + 1] = values[code & 15]! * magnitude;
        }
      }
      return out;
    });
  },
};

const elementsOf = ({ shape }: TensorRef) => shape.reduce((n, extent) => n * extent, 1);

async function magnitudesOf(
  absmax: TensorRef,
  nested: readonly TensorRef[],
  block: number,
  offset: number,
  read: ReadTensor,
): Promise<Float32Array> {
  const [outer, map] = nested;
  if (!outer || !map) return readF32(absmax, read);
  const [codes, factors, values] = await Promise.all([
    read(absmax, 0, absmax.end - absmax.begin),
    readF32(outer, read),
    readF32(map, read),
  ]);
  // each step in f32, as there
  return Float32Array.from(codes, (code, i) => {
    return Math.fround(values[code]! * factors[Math.floor(i / block)]!) + Math.fround(offset);
  });
}

export const eightBits: QuantizedFormat = {
  find(name, ref, { tensors }) {
    if (ref.dtype !== 'I8' || !name.endsWith('.weight') || ref.shape.length !== 2) return undefined;
    const module = name.slice(0, -'.weight'.length);
    const scale = tensors.get(`${module}.SCB`);
    if (!scale) return undefined;
    const [rows, columns] = ref.shape as [number, number];
    if (elementsOf(scale) !== rows) return 'unscaled';
    const beside = [`${name}_format`, `${module}.weight_format`].filter((key) => tensors.has(key));
    return {
      ...{ name, format: 'INT8 of bitsandbytes', shape: ref.shape, from: [ref, scale] },
      ...{ beside, params: { columns } },
    };
  },
  async open([ref, scale], params, read) {
    const { columns } = params as Record<'columns', number>;
    const scales = await readF32(scale!, read);
    return byRows(columns, async (first, end) => {
      const codes = new Int8Array(await read(ref!, first * columns, end * columns));
      return Float32Array.from(codes, (code, i) => (code * scales[first + Math.floor(i / columns)]!) / 127);
    });
  },
};
