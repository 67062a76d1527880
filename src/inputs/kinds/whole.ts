/** Changes that depend on all of a weight. */
import { ACTIVATIONS } from '../../backend/special';
import { column, transposed } from '../../linalg/columns';
import { thinQr } from '../../linalg/householder';
import { type AdaptedModule, type AdapterKind, multiply, type Opened, type PartValues } from './kind';

/** LᵀW [rank, inputs] of a weight that is read row by row. */
async function reduced(
  eachRow: Opened['eachRow'],
  left: (output: number, k: number) => number,
  rank: number,
  inputs: number,
): Promise<Float64Array> {
  const out = new Float64Array(rank * inputs);
  await eachRow((row, o) => {
    for (let k = 0; k < rank; k++) {
      const factor = left(o, k);
      for (let c = 0; c < inputs; c++) out[k * inputs + c]! += factor * row[c]!;
    }
  });
  return out;
}

/** DEFT (PEFT tuners/deft/layer.py): what the weight has in a subspace is taken out, and what was trained put in its place. */
export const deft: AdapterKind = {
  type: 'DEFT',
  title: 'DEFT',
  formula: 'W + Q · (s·R − Lᵀ·W), Q = P and L = relu(P), or Q = L = qr(P); PaRa: without R',
  parts: ['deft_P', 'deft_R'],
  optional: ['deft_R'],
  fields: ['decomposition_method', 'init_scale', 'alpha', 'para', 'deft_dropout', 'init_weights'],
  update({ parts, inputs, outputs, number, flag, setting, refuse }) {
    const [rows, rank] = parts.deft_P!.shape as [number, number];
    const { shape } = parts.deft_R ?? { shape: [rank, inputs] };
    if (rows !== outputs || shape[0] !== rank || shape[1] !== inputs) refuse('has factors of another size');
    if (!parts.deft_R && !flag('para', false)) refuse('lacks deft_R');
    const method = String(setting('decomposition_method') ?? 'relu');
    if (method !== 'relu' && method !== 'qr') refuse(`decomposes by ${method}`);
    const scale = (number('alpha', 0) || rank) / rank;
    /** Q and L [outputs, rank]. */
    const projection = ({ deft_P }: PartValues): [Float64Array, Float64Array] => {
      const P = Float64Array.from(deft_P!);
      if (method === 'relu') return [P, P.map((value) => Math.max(value, 0))];
      const q = orthonormal(P, outputs, rank);
      return [q, q];
    };
    const added = ({ deft_R }: PartValues, k: number, c: number) =>
      flag('para', false) ? 0 : scale * deft_R![k * inputs + c]!;
    return {
      form: 'rows',
      async open({ values, eachRow }) {
        const [Q, L] = projection(values);
        const removed = await reduced(eachRow, (o, k) => L[o * rank + k]!, rank, inputs);
        const inner = removed.map((value, i) => added(values, Math.floor(i / inputs), i % inputs) - value);
        return (row, o) => addProduct(row, Q.subarray(o * rank, (o + 1) * rank), inner);
      },
      openStored({ values }) {
        const [Q, L] = projection(values);
        return (row, input) => {
          const removed = multiply(row, L, outputs);
          for (let k = 0; k < rank; k++) {
            const inner = added(values, k, input) - removed[k]!;
            for (let o = 0; o < outputs; o++) row[o]! += Q[o * rank + k]! * inner;
          }
        };
      },
    };
  },
};

/** row += left · M for M [rank, inputs]. */
function addProduct(row: Float64Array, left: Float64Array, M: Float64Array): void {
  for (let k = 0; k < left.length; k++)
    for (let c = 0; c < row.length; c++) row[c]! += left[k]! * M[k * row.length + c]!;
}

/** Q of the QR decomposition with LAPACK's signs, on which what is put in depends. */
function orthonormal(P: Float64Array, rows: number, rank: number): Float64Array {
  const { q } = thinQr(transposed({ rows: rank, cols: rows, data: P }));
  // LAPACK leaves a column of one element as it is
  if (rank === rows)
    for (const [i, value] of column(q, rank - 1).entries()) q.data[(rank - 1) * rows + i] = -value;
  return transposed(q).data;
}

/** PEANuT (arXiv:2410.01870; PEFT tuners/peanut/layer.py): a small network turns each column of the weight into its change. */
export const peanut: AdapterKind = {
  type: 'PEANUT',
  title: 'PEANuT',
  formula: 'W + s · B · f(A · W), f a small network with residuals',
  parts: ['peanut_A', 'peanut_B', 'peanut_encoders.#', 'peanut_decoders.#'],
  optional: ['peanut_encoders.#', 'peanut_decoders.#'],
  fields: ['depth', 'act_fn', 'scaling', 'init_weights'],
  update({ parts, inputs, outputs, number, setting, refuse }) {
    const [rank, columns] = parts.peanut_A!.shape as [number, number];
    if (columns !== outputs || parts.peanut_B!.shape[0] !== outputs) refuse('has factors of another size');
    const name = String(setting('act_fn') ?? 'relu');
    const activate = ACTIVATIONS[name] ?? refuse(`computes ${name}, an activation that is not known here`);
    const depth = number('depth', 0);
    for (let i = 0; i < depth; i++)
      if (!parts[`peanut_encoders.${i}`] || !parts[`peanut_decoders.${i}`]) refuse(`lacks its layer ${i}`);
    const scale = number('scaling', 1);
    return {
      form: 'rows',
      async open({ values, eachRow }) {
        const { peanut_A: A, peanut_B: B } = values;
        let now = (await reduced(eachRow, (o, k) => A![k * outputs + o]!, rank, inputs)).map(activate);
        const layer = (part: string) => multiply(values[part]!, now, rank).map(activate);
        const before: Float64Array[] = [];
        for (let i = 0; i < depth; i++) {
          before.push(now);
          now = layer(`peanut_encoders.${i}`);
        }
        for (let i = 0; i < depth; i++) {
          const residual = before[depth - 1 - i]!;
          now = layer(`peanut_decoders.${i}`).map((value, at) => value + residual[at]!);
        }
        const change = now;
        return (row, o) =>
          addProduct(
            row,
            Float64Array.from(B!.subarray(o * rank, (o + 1) * rank), (b) => scale * b),
            change,
          );
      },
    };
  },
};

/** Parts of one of the supports of GLoRA: a product, a vector or a number; zeros stand for none. */
const supports = (letters: string) =>
  [...letters].flatMap((letter) => ['Xd', 'Xu', 'X', 'zeros'].map((part) => `glora_${letter}.${part}`));

/** GLoRA (arXiv:2306.07967; PEFT tuners/glora/layer.py): scales and shifts of weight and bias, and the weight's part in the bias. */
export const glora: AdapterKind = {
  type: 'GLORA',
  title: 'GLoRA',
  formula: 'W + W ∘ A + B, bias + bias ∘ D + E + W·C',
  parts: supports('ABCDE'),
  optional: supports('ABCDE'),
  fields: ['config_A_B', 'config_C', 'config_D_E', 'init_weights'],
  update(module) {
    const { outputs, inputs } = module;
    return {
      form: 'rows',
      open({ values }) {
        const [A, B] = [support(module, values, 'A', outputs), support(module, values, 'B', outputs)];
        return (row, o) => {
          for (let c = 0; c < inputs; c++) row[c] = row[c]! * (1 + A(o, c)) + B(o, c);
        };
      },
      async bias({ values, eachRow }) {
        const C = support(module, values, 'C', inputs);
        const [D, E] = [support(module, values, 'D', outputs), support(module, values, 'E', outputs)];
        const through = new Float64Array(outputs);
        await eachRow((row, o) => {
          for (let c = 0; c < inputs; c++) through[o]! += row[c]! * C(c, 0);
        });
        return (row) => {
          for (let o = 0; o < outputs; o++) row[o] = row[o]! * (1 + D(o, 0)) + E(o, 0) + through[o]!;
        };
      },
    };
  },
};

/** The entry of a support by its row and column. */
function support(
  { parts, refuse }: AdaptedModule,
  values: PartValues,
  letter: string,
  rows: number,
): (row: number, column: number) => number {
  const [down, up, X] = ['Xd', 'Xu', 'X'].map((part) => values[`glora_${letter}.${part}`]);
  if (X) return X.length === 1 ? () => X[0]! : (row) => X[row]!;
  if (!down || !up) return () => 0;
  const rank = down.length / rows;
  const [, width] = parts[`glora_${letter}.Xu`]!.shape as [number, number];
  if (up.length !== rank * width) return refuse('has factors of another size');
  return (row, column) => {
    let sum = 0;
    for (let k = 0; k < rank; k++) sum += down[row * rank + k]! * up[k * width + column]!;
    return sum;
  };
}
