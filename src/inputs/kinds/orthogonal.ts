/** Orthogonal matrices from skew-symmetric ones, and rows rotated block by block. */
import { type AdapterKind, cayley, multiply, type PartValues, type RowChange } from './kind';

/** I + 2S + 2S² + … + 2Sᵗ⁻² + Sᵗ⁻¹: the Cayley transform as a Neumann series, three terms as PEFT has them (as four). */
function cayleySeries(skew: Float64Array, n: number, terms: number): Float64Array {
  const out = Float64Array.from(skew, (_, i) => (i % (n + 1) === 0 ? 1 : 0));
  const last = terms > 2 ? Math.max(terms, 4) - 1 : terms - 1;
  let power: Float64Array = out.slice();
  for (let k = 1; k <= last; k++) {
    power = multiply(power, skew, n);
    const factor = k === last && terms > 2 ? 1 : 2;
    for (let i = 0; i < out.length; i++) out[i]! += factor * power[i]!;
  }
  return out;
}

/** x ← Q_b · x_b for every block b of a row; one block serves all where there is only one. */
function rotateBlocks(blocks: readonly Float64Array[], n: number): RowChange {
  const rotated = new Float64Array(n);
  return (row) => {
    for (let at = 0; at < row.length; at += n) {
      const block = blocks[blocks.length === 1 ? 0 : at / n]!;
      for (let i = 0; i < n; i++) {
        let sum = 0;
        for (let j = 0; j < n; j++) sum += block[i * n + j]! * row[at + j]!;
        rotated[i] = sum;
      }
      row.set(rotated, at);
    }
  };
}

/** BOFT with one butterfly factor (arXiv:2311.06243; PEFT tuners/boft/layer.py): block rotations, then scaled outputs. */
export const boft: AdapterKind = {
  type: 'BOFT',
  title: 'BOFT',
  formula: 'diag(s) · W · diag(Q₁, Q₂, …)ᵀ',
  parts: ['boft_R', 'boft_s'],
  fields: [
    ...['boft_block_size', 'boft_block_num', 'boft_n_butterfly_factor', 'boft_dropout', 'init_weights'],
  ],
  update({ parts, inputs, refuse }) {
    const [factors, count, n] = parts.boft_R!.shape as [number, number, number];
    if (factors !== 1) refuse(`uses ${factors} butterfly factors`);
    if (count * n !== inputs) refuse(`has rotations of [${parts.boft_R!.shape}] for ${inputs} inputs`);
    return {
      form: 'rows',
      open({ values: { boft_R, boft_s } }) {
        const blocks = Array.from({ length: count }, (_, b) => {
          const at = (i: number, j: number) => boft_R![(b * n + i) * n + j]!;
          return cayley(
            Float64Array.from({ length: n * n }, (_, k) => {
              const [i, j] = [Math.floor(k / n), k % n];
              return (at(i, j) - at(j, i)) / 2;
            }),
            n,
          );
        });
        const rotate = rotateBlocks(blocks, n);
        return (row, index, partner) => {
          rotate(row, index, partner);
          for (let c = 0; c < row.length; c++) row[c]! *= boft_s![index]!;
        };
      },
    };
  },
};

/** OFT (arXiv:2306.07280; PEFT tuners/oft/layer.py): the inputs are rotated in blocks; the upper triangles are stored. */
export const oft: AdapterKind = {
  type: 'OFT',
  title: 'OFT',
  formula: 'W · diag(Q₁, Q₂, …)ᵀ, Q the Cayley transform of a skew-symmetric block',
  parts: ['oft_R'],
  fields: [
    ...['oft_block_size', 'module_dropout', 'init_weights', 'coft', 'eps', 'block_share'],
    ...['use_cayley_neumann', 'num_cayley_neumann_terms'],
  ],
  update({ parts, inputs, flag, number, refuse }) {
    if (flag('coft', false)) refuse('uses constrained rotations (coft)');
    const [count, triangle] = parts.oft_R!.shape as [number, number];
    const n = Math.round((1 + Math.sqrt(1 + 8 * triangle)) / 2);
    if (n * (n - 1) !== 2 * triangle || inputs % n !== 0 || (count !== 1 && count * n !== inputs)) {
      refuse(`has rotations of [${parts.oft_R!.shape}] for ${inputs} inputs`);
    }
    const series = flag('use_cayley_neumann', true);
    const terms = number('num_cayley_neumann_terms', 5);
    if (!(terms >= 1 && terms <= 100)) refuse(`sums ${terms} terms of its series`);
    return {
      form: 'rows',
      open({ values: { oft_R } }) {
        const blocks = Array.from({ length: count }, (_, b) => {
          const skew = new Float64Array(n * n);
          let at = b * triangle;
          for (let i = 0; i < n; i++) {
            for (let j = i + 1; j < n; j++) {
              skew[i * n + j] = oft_R![at]!;
              skew[j * n + i] = -oft_R![at++]!;
            }
          }
          return series ? cayleySeries(skew, n, terms) : cayley(skew, n);
        });
        return rotateBlocks(blocks, n);
      },
    };
  },
};

/** HRA (arXiv:2405.17484; PEFT tuners/hra/layer.py): Householder reflections of the inputs, one after the other. */
export const hra: AdapterKind = {
  type: 'HRA',
  title: 'HRA',
  formula: 'W · (I − 2u₁u₁ᵀ) · (I − 2u₂u₂ᵀ) · …',
  parts: ['hra_u'],
  fields: ['apply_GS', 'init_weights'],
  update({ parts, inputs, flag, refuse }) {
    const [rows, rank] = parts.hra_u!.shape as [number, number];
    if (rows !== inputs) refuse(`has reflections of [${parts.hra_u!.shape}] for ${inputs} inputs`);
    const orthogonal = flag('apply_GS', false);
    return {
      form: 'rows',
      open({ values: { hra_u } }) {
        const vectors = Array.from({ length: rank }, (_, k) =>
          Float64Array.from({ length: inputs }, (_, i) => hra_u![i * rank + k]!),
        );
        const dot = (a: Float64Array, b: Float64Array) => a.reduce((sum, v, i) => sum + v * b[i]!, 0);
        for (const [k, u] of vectors.entries()) {
          for (const before of orthogonal ? vectors.slice(0, k) : []) {
            const part = dot(before, u);
            for (let i = 0; i < inputs; i++) u[i]! -= part * before[i]!;
          }
          const norm = Math.sqrt(dot(u, u));
          for (let i = 0; i < inputs; i++) u[i]! /= norm;
        }
        return (row) => {
          for (const u of vectors) {
            const twice = 2 * dot(row, u);
            for (let i = 0; i < inputs; i++) row[i]! -= twice * u[i]!;
          }
        };
      },
    };
  },
};

/** RoAd (arXiv:2409.00119; PEFT tuners/road/layer.py): pairs of outputs are rotated and scaled, biases with them. */
export const road: AdapterKind = {
  type: 'ROAD',
  title: 'RoAd',
  formula: 'R · W, R of [α cos θ, −α sin θ; α sin θ, α cos θ] on pairs of outputs',
  parts: ['road_theta', 'road_alpha'],
  fields: ['variant', 'group_size', 'init_weights'],
  update({ parts, outputs, number, setting, refuse }) {
    const variant = String(setting('variant') ?? 'road_1');
    const share = { road_1: 0.5, road_2: 1, road_4: 2 }[variant] ?? refuse(`is of the variant ${variant}`);
    const group = number('group_size', 64);
    if (!(group >= 2) || group % 2 !== 0 || outputs % group !== 0)
      refuse(`pairs outputs in groups of ${group}, of ${outputs}`);
    const sizes = [parts.road_theta!, parts.road_alpha!].map(({ shape }) => shape.reduce((a, b) => a * b, 1));
    if (sizes.some((size) => size !== share * outputs)) refuse('has angles of another size');
    const half = group / 2;
    const partner = (o: number) => (o % group < half ? o + half : o - half);
    /** Factors of an output and of its partner. */
    const factors = ({ road_theta, road_alpha }: PartValues, o: number): [number, number] => {
      const [g, i] = [Math.floor(o / group), o % group];
      const one = variant === 'road_1' ? g * half + (i % half) : variant === 'road_2' ? o : 2 * g * group + i;
      const two = variant === 'road_4' ? one + group : one;
      const sine = road_alpha![two]! * Math.sin(road_theta![two]!);
      return [road_alpha![one]! * Math.cos(road_theta![one]!), i < half ? -sine : sine];
    };
    return {
      form: 'rows',
      partner,
      open:
        ({ values }) =>
        (row, index, other) => {
          const [own, others] = factors(values, index);
          for (let c = 0; c < row.length; c++) row[c] = own * row[c]! + others * other[c]!;
        },
      bias:
        ({ values }) =>
        (row) => {
          const before = row.slice();
          for (let o = 0; o < outputs; o++) {
            const [own, others] = factors(values, o);
            row[o] = own * before[o]! + others * before[partner(o)]!;
          }
        },
    };
  },
};
