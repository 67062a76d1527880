/**
 * GPTQ (Frantar et al. 2022; AutoGPTQ and GPTQModel, nn_modules/qlinear): `x.qweight` [inputs·bits/32, outputs], the codes of an
 * output down its column; `x.qzeros` [groups, outputs·bits/32]; `x.scales` [groups, outputs]; `x.g_idx` the group of each input.
 * w[o][i] = (q − z) · s, z one more than what is stored, modulo 2^bits, unless `checkpoint_format` is gptq_v2.
 * AWQ (Lin et al. 2023; AutoAWQ, utils/packing_utils.py, GEMM): `x.qweight` [inputs, outputs/8], z as stored; of eight codes in a
 * word, the first half are the even outputs.
 */
import { readF32 } from '../stored-tensor';
import type { ReadTensor, TensorRef } from '../tensor-view';
import { bitsAt, byRows, evenGroups, numberIn, type QuantizedFormat, wholeOf, wordsOf } from './format';

const isWords = (ref: TensorRef) => ref.dtype === 'I32' || ref.dtype === 'U32';

interface Parts {
  module: string;
  zeros: TensorRef;
  scales: TensorRef;
  groups: number;
  outputs: number;
}

function partsOf(name: string, ref: TensorRef, tensors: ReadonlyMap<string, TensorRef>): Parts | undefined {
  if (!name.endsWith('.qweight') || !isWords(ref) || ref.shape.length !== 2) return undefined;
  const module = name.slice(0, -'.qweight'.length);
  const [zeros, scales] = [tensors.get(`${module}.qzeros`), tensors.get(`${module}.scales`)];
  if (!zeros || !scales || !isWords(zeros) || zeros.shape.length !== 2 || scales.shape.length !== 2)
    return undefined;
  const [groups, outputs] = scales.shape as [number, number];
  return zeros.shape[0] === groups ? { module, zeros, scales, groups, outputs } : undefined;
}

export const gptq: QuantizedFormat = {
  find(name, ref, { tensors, settings }) {
    const parts = partsOf(name, ref, tensors);
    const layout = settings.get('checkpoint_format') ?? 'gptq';
    if (!parts || ref.shape[1] !== parts.outputs || (layout !== 'gptq' && layout !== 'gptq_v2'))
      return undefined;
    const { module, zeros, scales, groups, outputs } = parts;
    const fits = (of: number) => zeros.shape[1] === Math.ceil((outputs * of) / 32);
    const said = numberIn(settings, 'bits');
    // modules may have more or fewer than most
    const bits = said !== undefined && fits(said) ? said : Math.round((32 * zeros.shape[1]!) / outputs);
    if (![2, 3, 4, 8].includes(bits)) return undefined;
    const inputs = (ref.shape[0]! * 32) / bits;
    const index = tensors.get(`${module}.g_idx`);
    if (!fits(bits) || !Number.isInteger(inputs)) return 'unscaled';
    if (index && (index.dtype !== 'I32' || index.shape[0] !== inputs)) return 'unscaled';
    return {
      ...{ name: `${module}.weight`, format: `GPTQ (${bits} bits)`, shape: [outputs, inputs] },
      from: [ref, zeros, scales, ...(index ? [index] : [])],
      params: { bits, groups, inputs, outputs, more: layout === 'gptq' ? 1 : 0 },
    };
  },
  async open([ref, zeros, scales, index], params, read) {
    const { bits, groups, inputs, outputs, more } = params as Record<
      'bits' | 'groups' | 'inputs' | 'outputs' | 'more',
      number
    >;
    const [codes, zeroCodes, factors] = await readParts(ref!, zeros!, scales!, read);
    const groupOf = index ? wordsOf(await wholeOf(index, read)) : evenGroups(inputs, groups);
    const width = zeros!.shape[1]!;
    const mask = (1 << bits) - 1;
    const zeroOf = (group: number, o: number) => (bitsAt(zeroCodes, group * width, 1, bits, o) + more) & mask;
    const table = zeroTable(groups, outputs, zeroOf);
    return byRows(inputs, async (first, end) => {
      const out = new Float32Array((end - first) * inputs);
      for (let i = 0; i < inputs; i++) {
        const group = groupOf[i]! * outputs;
        for (let o = first; o < end; o++) {
          const code = bitsAt(codes, o, outputs, bits, i);
          out[(o - first) * inputs + i] = (code - table[group + o]!) * factors[group + o]!;
        }
      }
      return out;
    });
  },
};

/** Where the code of each of eight outputs in a row lies in its word. */
const PLACE = [0, 4, 1, 5, 2, 6, 3, 7];

export const awq: QuantizedFormat = {
  find(name, ref, { tensors, settings }) {
    const parts = partsOf(name, ref, tensors);
    const version = settings.get('version') ?? 'gemm';
    if (!parts || ref.shape[1]! * 8 !== parts.outputs) return undefined;
    if (typeof version !== 'string' || version.toLowerCase() !== 'gemm') return undefined;
    const { module, zeros, scales, groups, outputs } = parts;
    const inputs = ref.shape[0]!;
    if (zeros.shape[1] !== ref.shape[1] || inputs % groups !== 0) return 'unscaled';
    return {
      ...{ name: `${module}.weight`, format: 'AWQ (4 bits)', shape: [outputs, inputs] },
      ...{ from: [ref, zeros, scales], params: { groups, inputs, outputs } },
    };
  },
  async open([ref, zeros, scales], params, read) {
    const { groups, inputs, outputs } = params as Record<'groups' | 'inputs' | 'outputs', number>;
    const [codes, zeroCodes, factors] = await readParts(ref!, zeros!, scales!, read);
    const groupOf = evenGroups(inputs, groups);
    const width = outputs / 8;
    const codeAt = (words: Uint32Array, row: number, o: number) =>
      (words[row * width + (o >> 3)]! >>> (4 * PLACE[o & 7]!)) & 15;
    const table = zeroTable(groups, outputs, (group, o) => codeAt(zeroCodes, group, o));
    return byRows(inputs, async (first, end) => {
      const out = new Float32Array((end - first) * inputs);
      for (let i = 0; i < inputs; i++) {
        const group = groupOf[i]! * outputs;
        for (let o = first; o < end; o++) {
          out[(o - first) * inputs + i] = (codeAt(codes, i, o) - table[group + o]!) * factors[group + o]!;
        }
      }
      return out;
    });
  },
};

/** Codes stay packed in memory: those of a row lie all over a tensor. */
async function readParts(
  codes: TensorRef,
  zeros: TensorRef,
  scales: TensorRef,
  read: ReadTensor,
): Promise<[Uint32Array, Uint32Array, Float32Array]> {
  const [a, b, factors] = await Promise.all([
    wholeOf(codes, read),
    wholeOf(zeros, read),
    readF32(scales, read),
  ]);
  return [wordsOf(a), wordsOf(b), factors];
}

/** The zero point of every group and output. */
function zeroTable(
  groups: number,
  outputs: number,
  zeroOf: (group: number, output: number) => number,
): Uint8Array {
  return Uint8Array.from({ length: groups * outputs }, (_, i) =>
    zeroOf(Math.floor(i / outputs), i % outputs),
  );
}
