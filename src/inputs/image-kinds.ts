/**
 * Changes that the tools of image models store otherwise than as two factors: LoHa, LoKr and Diag-OFT in LyCORIS's names
 * (lycoris/modules/loha.py, lokr.py, diag_oft.py; kohya networks/oft.py), and DoRA. Formulas are those of PEFT's kinds where it has them.
 */
import type { ImagePart } from '../formats/image-lora';
import type { AdapterUpdate, RowsUpdate } from './adapter';
import { madeTensor } from './kind-updates';
import { type AdaptedModule, cayley, multiply, type PartValues } from './kinds/kind';
import { loha } from './kinds/products';
import { lokr } from './kinds/rows';
import type { TensorRef } from './tensor-view';

export type Parts = Partial<Record<ImagePart, TensorRef>>;

/** Ends with `AdapterUnsupported` and what the module has. */
export type RefuseParts = (what: string) => never;

const flat = ([rows = 1, ...rest]: readonly number[]): [rows: number, columns: number] => [
  rows,
  rest.reduce((n, extent) => n * extent, 1),
];

/** α over a rank; without an α the factors act unscaled. */
export const scaleOf = (values: PartValues, rank: number) => (values.alpha ? values.alpha[0]! / rank : 1);

const scaled = (values: Float32Array | Float64Array, scale: number) =>
  Float32Array.from(values, (v) => scale * v);

function moduleOf(parts: AdaptedModule['parts'], outputs: number, inputs: number, refuse: RefuseParts) {
  return {
    ...{ name: '', parts, outputs, inputs, rank: 1, alpha: 1, hasBias: false, modules: 1, refuse },
    setting: () => undefined,
    number: (_: string, otherwise: number) => otherwise,
    flag: (_: string, otherwise: boolean) => otherwise,
  };
}

/** LoHa as one product. */
export function lohaUpdate(parts: Parts, refuse: RefuseParts): AdapterUpdate {
  const { hada_w1_a: a1, hada_w1_b: b1, hada_w2_a: a2, hada_w2_b: b2, alpha } = parts;
  if (parts.hada_t1 || parts.hada_t2) refuse('LoHa with kernels between its factors');
  if (!a1 || !b1 || !a2 || !b2) return refuse('only a part of LoHa’s four factors');
  const [outputs, inputs] = [a1.shape[0]!, flat(b1.shape)[1]];
  const first = b1.shape[0]!;
  const fits = a1.shape[1] === first && a2.shape[1] === b2.shape[0] && a2.shape[0] === outputs;
  if (!fits || flat(b2.shape)[1] !== inputs) refuse('LoHa factors of sizes that do not go together');
  const own = { hada_w1_a: a1, hada_w1_b: b1, hada_w2_a: a2, hada_w2_b: b2 };
  const update = loha.update(moduleOf(own, outputs, inputs, refuse));
  if (update.form !== 'product') return refuse('LoHa');
  const { rank, left, right } = update;
  const all = { ...own, ...(alpha && { alpha }) };
  return {
    a: madeTensor(all, [rank, inputs], (values, indices) =>
      scaled(right(values, indices), scaleOf(values, first)),
    ),
    b: madeTensor(own, [outputs, rank], left),
    ...{ kind: 'linear', rank, scale: 1 },
  };
}

/** LoKr, row by row; α counts where one of its matrices is factored (lokr.py). */
export function lokrUpdate(parts: Parts, refuse: RefuseParts): RowsUpdate {
  const { alpha, lokr_w1, lokr_w1_a, lokr_w1_b, lokr_w2, lokr_w2_a, lokr_w2_b, lokr_t2 } = parts;
  const present = (refs: Record<string, TensorRef | undefined>) =>
    Object.fromEntries(Object.entries(refs).flatMap(([name, ref]) => (ref ? [[name, ref]] : [])));
  const extents = (whole?: TensorRef, a?: TensorRef, b?: TensorRef): [number, number] => {
    if (whole) return flat(whole.shape);
    if (!a || !b) return refuse('only a part of LoKr’s factors');
    if (!lokr_t2 || b !== lokr_w2_b) return [a.shape[0]!, flat(b.shape)[1]];
    const kernel = lokr_t2.shape.slice(2).reduce((n, extent) => n * extent, 1);
    return [a.shape[1]!, b.shape[1]! * kernel];
  };
  const one = extents(lokr_w1, lokr_w1_a, lokr_w1_b);
  const two = extents(lokr_w2, lokr_w2_a, lokr_w2_b);
  const rank = lokr_w2 ? lokr_w1_b?.shape[0] : lokr_w2_b?.shape[0];
  const w1 = madeTensor(present({ lokr_w1, lokr_w1_a, lokr_w1_b, alpha }), one, (values) => {
    const whole = values.lokr_w1 ?? multiply(values.lokr_w1_a!, values.lokr_w1_b!, lokr_w1_b!.shape[0]!);
    return scaled(Float32Array.from(whole), rank === undefined ? 1 : scaleOf(values, rank));
  });
  const w2 = madeTensor(present({ lokr_w2, lokr_w2_a, lokr_w2_b, lokr_t2 }), two, (values) => {
    if (values.lokr_w2) return values.lokr_w2;
    if (lokr_t2) return withKernel(values, lokr_t2.shape, two);
    return Float32Array.from(multiply(values.lokr_w2_a!, values.lokr_w2_b!, lokr_w2_b!.shape[0]!));
  });
  const [outputs, width] = [one[0] * two[0], one[1] * two[1]];
  const own = { lokr_w1: w1, lokr_w2: w2 };
  const update = lokr.update(moduleOf(own, outputs, width, refuse));
  if (update.form !== 'rows') return refuse('LoKr');
  const { open } = update;
  return { title: 'LoKr', outputs, width, group: 1, parts: own, open: open! };
}

/** Σᵢⱼ t[i, j, kernel] · b[j, column] · a[i, row] (LyCORIS functional/general.py, rebuild_tucker). */
function withKernel(
  { lokr_w2_a: a, lokr_w2_b: b, lokr_t2: t }: PartValues,
  [first = 1, second = 1, ...kernel]: readonly number[],
  [rows, columns]: [number, number],
): Float32Array {
  const area = kernel.reduce((n, extent) => n * extent, 1);
  const width = columns / area;
  const out = new Float32Array(rows * columns);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < width; column++) {
      for (let at = 0; at < area; at++) {
        let sum = 0;
        for (let i = 0; i < first; i++)
          for (let j = 0; j < second; j++)
            sum += a![i * rows + row]! * t![(i * second + j) * area + at]! * b![j * width + column]!;
        out[row * columns + column * area + at] = sum;
      }
    }
  }
  return out;
}

/**
 * Diag-OFT: outputs are rotated in blocks, W'[m] = Σₙ R[n, m]·W[n] with R = (I + Q)(I − Q)⁻¹ and Q = B − Bᵀ, whose norm over all
 * blocks α·outputs limits, and then scaled.
 */
export function oftUpdate({ oft_blocks: blocks, rescale, alpha }: Parts, refuse: RefuseParts): RowsUpdate {
  const [count = 0, size = 0, other] = blocks!.shape;
  if (blocks!.shape.length !== 3 || size !== other)
    refuse(`rotations of [${blocks!.shape}], as BOFT has them`);
  const outputs = count * size;
  if (rescale && flat(rescale.shape)[0] !== outputs)
    refuse(`scales of [${rescale.shape}] for ${outputs} outputs`);
  return {
    ...{ title: 'OFT', outputs, width: undefined, group: size },
    parts: { oft_blocks: blocks!, ...(rescale && { rescale }), ...(alpha && { alpha }) },
    open({ values }) {
      const stored = values.oft_blocks!;
      const skew = Float64Array.from(stored, (v, i) => {
        const [block, row, column] = [Math.floor(i / size / size), Math.floor(i / size) % size, i % size];
        return v - stored[(block * size + column) * size + row]!;
      });
      const most = (values.alpha?.[0] ?? 0) * outputs;
      const norm = Math.sqrt(skew.reduce((sum, v) => sum + v * v, 0));
      const limit = most > 0 && norm > most ? most / norm : 1;
      // (I − S)(I + S)⁻¹ with S = −Q
      const rotations = Array.from({ length: count }, (_, k) =>
        cayley(
          skew.slice(k * size * size, (k + 1) * size * size).map((v) => -limit * v),
          size,
        ),
      );
      return (rows, index) => {
        const old = rows.slice();
        const width = rows.length / size;
        const rotation = rotations[index]!;
        for (let m = 0; m < size; m++) {
          const row = rows.subarray(m * width, (m + 1) * width).fill(0);
          const by = values.rescale ? values.rescale[index * size + m]! : 1;
          for (let n = 0; n < size; n++) {
            const factor = by * rotation[n * size + m]!;
            for (let c = 0; c < width; c++) row[c]! += factor * old[n * width + c]!;
          }
        }
      };
    },
  };
}

/** DoRA whose magnitudes are one an input: W' = (W + B·A) · diag(m / ‖W + B·A‖ per input), over outputs and kernel. */
export function inputDora({ a, b, rank }: AdapterUpdate, magnitude: TensorRef): RowsUpdate {
  const [outputs, width] = [b.shape[0]!, flat(a.shape)[1]];
  const area = width / magnitude.shape[1]!;
  return {
    ...{ title: 'DoRA', outputs, width, group: 1, isWhole: true },
    parts: { a, b, magnitude },
    async open({ values, eachRow }) {
      const add = (row: Float64Array, index: number) => {
        for (let k = 0; k < rank; k++) {
          const left = values.b![index * rank + k]!;
          for (let c = 0; c < width; c++) row[c]! += left * values.a![k * width + c]!;
        }
      };
      const squares = new Float64Array(width / area);
      await eachRow((stored, index) => {
        const row = Float64Array.from(stored);
        add(row, index);
        for (let c = 0; c < width; c++) squares[Math.floor(c / area)]! += row[c]! ** 2;
      });
      const factor = squares.map((sum, i) => values.magnitude![i]! / Math.sqrt(sum));
      return (row, index) => {
        add(row, index);
        for (let c = 0; c < width; c++) row[c]! *= factor[Math.floor(c / area)]!;
      };
    },
  };
}

/** The same change with each output brought to the norm that DoRA gives it. */
export function withNorms(update: RowsUpdate, magnitude: TensorRef): RowsUpdate {
  return {
    ...update,
    title: `${update.title} with DoRA`,
    parts: { ...update.parts, magnitude },
    async open(opened) {
      const { values } = opened;
      const change = await update.open(opened);
      return (row, index, partner) => {
        change(row, index, partner);
        const norm = Math.sqrt(row.reduce((sum, v) => sum + v * v, 0));
        for (let c = 0; c < row.length; c++) row[c]! *= values.magnitude![index]! / norm;
      };
    },
  };
}
