/** Changes to each row of a weight for itself. */
import {
  type AdaptedModule,
  type AdapterKind,
  multiply,
  type OpenRows,
  type PartValues,
  type Rows,
} from './kind';

/** C³A (arXiv:2407.19342; PEFT tuners/c3a): blocks of circulant matrices, divided by the number of inputs. */
export const c3a: AdapterKind = {
  type: 'C3A',
  title: 'C³A',
  formula: 'W + circulant blocks / inputs',
  parts: ['c3a_kernel'],
  fields: ['block_size', 'block_size_pattern', 'init_weights'],
  update({ parts, inputs, outputs, refuse }) {
    const [m, n, size] = parts.c3a_kernel!.shape as [number, number, number];
    if (m * size !== outputs || n * size !== inputs) refuse('has a kernel of another size');
    return {
      form: 'rows',
      open:
        ({ values: { c3a_kernel } }) =>
        (row, index) => {
          const [block, k] = [Math.floor(index / size), index % size];
          for (let c = 0; c < inputs; c++) {
            const t = (c + size - k) % size;
            row[c]! += c3a_kernel![(block * n + Math.floor(c / size)) * size + t]! / inputs;
          }
        },
    };
  },
};

/** HiRA (ICLR 2025; PEFT tuners/hira/layer.py): every weight is scaled by a low-rank matrix. */
export const hira: AdapterKind = {
  type: 'HIRA',
  title: 'HiRA',
  formula: 'W ∘ (1 + B·A)',
  parts: ['hira_A', 'hira_B'],
  fields: ['hira_dropout', 'init_weights', 'rank_pattern'],
  update({ parts, inputs }) {
    const rank = parts.hira_A!.shape[0]!;
    return {
      form: 'rows',
      open({ values: { hira_A, hira_B } }) {
        const factor = new Float64Array(inputs);
        return (row, index) => {
          factor.fill(1);
          for (let k = 0; k < rank; k++) {
            const b = hira_B![index * rank + k]!;
            for (let c = 0; c < inputs; c++) factor[c]! += b * hira_A![k * inputs + c]!;
          }
          for (let c = 0; c < inputs; c++) row[c]! *= factor[c]!;
        };
      },
    };
  },
};

/** (IA)³ (arXiv:2205.05638; PEFT tuners/ia3/layer.py): outputs are scaled, bias included, or the inputs of a feed-forward. */
export const ia3: AdapterKind = {
  type: 'IA3',
  title: '(IA)³',
  formula: 'diag(l) · W, or W · diag(l) for feed-forward modules',
  parts: ['ia3_l'],
  fields: ['feedforward_modules', 'init_ia3_weights'],
  update({ parts, inputs, outputs, refuse }) {
    const [rows, columns] = parts.ia3_l!.shape;
    const onInputs = rows === 1 && columns === inputs;
    if (!onInputs && !(rows === outputs && columns === 1)) refuse('has a vector of another size');
    const along: OpenRows =
      ({ values: { ia3_l } }) =>
      (row) => {
        for (let c = 0; c < row.length; c++) row[c]! *= ia3_l![c]!;
      };
    const whole: OpenRows =
      ({ values: { ia3_l } }) =>
      (row, index) => {
        for (let c = 0; c < row.length; c++) row[c]! *= ia3_l![index]!;
      };
    return {
      form: 'rows',
      open: onInputs ? along : whole,
      openStored: onInputs ? whole : along,
      ...(onInputs ? {} : { bias: along }),
    };
  },
};

/** LoKr (arXiv:2212.10650; PEFT tuners/lokr/layer.py): a Kronecker product of two small matrices, each whole or of rank r. */
export const lokr: AdapterKind = {
  type: 'LOKR',
  title: 'LoKr',
  formula: 'W + α/r · W₁ ⊗ W₂',
  parts: ['lokr_w1', 'lokr_w1_a', 'lokr_w1_b', 'lokr_w2', 'lokr_w2_a', 'lokr_w2_b'],
  optional: ['lokr_w1', 'lokr_w1_a', 'lokr_w1_b', 'lokr_w2', 'lokr_w2_a', 'lokr_w2_b'],
  fields: [
    ...['alpha', 'rank_dropout', 'module_dropout', 'rank_dropout_scale', 'use_effective_conv2d'],
    ...['decompose_both', 'decompose_factor', 'init_weights'],
  ],
  update({ parts, alpha, rank, inputs, outputs, refuse }) {
    const extents = (name: string): [number, number] => {
      const whole = parts[name]?.shape;
      const [a, b] = [parts[`${name}_a`]?.shape, parts[`${name}_b`]?.shape];
      if (whole?.length === 2) return [whole[0]!, whole[1]!];
      return a?.length === 2 && b?.length === 2 ? [a[0]!, b[1]!] : refuse(`lacks ${name}`);
    };
    const factor = (values: PartValues, name: string) =>
      values[name] ?? multiply(values[`${name}_a`]!, values[`${name}_b`]!, parts[`${name}_b`]!.shape[0]!);
    const [one, two] = [extents('lokr_w1'), extents('lokr_w2')];
    if (one[0] * two[0] !== outputs || one[1] * two[1] !== inputs) refuse('has factors of another size');
    return {
      form: 'rows',
      open({ values }) {
        const [w1, w2] = [factor(values, 'lokr_w1'), factor(values, 'lokr_w2')];
        const scale = alpha / rank;
        return (row, index) => {
          const [o, p] = [Math.floor(index / two[0]), index % two[0]];
          for (let c = 0; c < row.length; c++) {
            const i = Math.floor(c / two[1]);
            row[c]! += scale * w1[o * one[1] + i]! * w2[p * two[1] + (c % two[1])]!;
          }
        };
      },
    };
  },
};

/** MiSS (arXiv:2409.15371; PEFT tuners/miss/layer.py): one block, repeated along the inputs; `bat` multiplies by it too. */
export const miss: AdapterKind = {
  type: 'MISS',
  title: 'MiSS',
  formula: 'W + (D D D …), D [outputs, r]; bat: W + W·D + D',
  parts: ['miss_block'],
  fields: ['miss_dropout', 'mini_r', 'init_weights'],
  update: (module) => repeated(module, 'miss_block'),
};

/** Bone, as MiSS was called until PEFT 0.20 (tuners/bone/layer.py there). */
export const bone: AdapterKind = {
  ...miss,
  type: 'BONE',
  title: 'Bone',
  parts: ['bone_block'],
  fields: ['init_weights'],
  update: (module) => repeated(module, 'bone_block'),
};

function repeated({ parts, inputs, outputs, setting, refuse }: AdaptedModule, block: string): Rows {
  const { shape } = parts[block]!;
  const bat = setting('init_weights') === 'bat';
  const [rank, columns] = bat ? [shape[2]!, 0] : [shape[0]!, shape[1]!];
  const fits = bat
    ? shape.length === 3 && shape[0]! * rank === outputs && inputs % rank === 0
    : shape.length === 2 && outputs % columns === 0;
  if (!fits) refuse(`has a block of [${shape}] for a weight of [${outputs}, ${inputs}]`);
  return {
    form: 'rows',
    open({ values }) {
      const D = values[block]!;
      if (!bat) {
        return (row, index) => {
          for (let c = 0; c < inputs; c++) row[c]! += D[(c % rank) * columns + (index % columns)]!;
        };
      }
      const before = new Float64Array(rank);
      return (row, index) => {
        const at0 = Math.floor(index / rank) * rank * rank;
        for (let at = 0; at < inputs; at += rank) {
          before.set(row.subarray(at, at + rank));
          for (let j = 0; j < rank; j++) {
            let sum = D[at0 + (index % rank) * rank + j]!;
            for (let i = 0; i < rank; i++) sum += before[i]! * D[at0 + i * rank + j]!;
            row[at + j]! += sum;
          }
        }
      };
    },
  };
}

/** BEFT (arXiv:2509.15974; PEFT tuners/beft/layer.py): biases alone. */
export const beft: AdapterKind = {
  type: 'BEFT',
  title: 'BEFT',
  formula: 'bias + b',
  parts: ['beft_bias'],
  fields: ['init_weights'],
  update({ name, parts, outputs, hasBias, refuse }) {
    if (parts.beft_bias!.shape.at(-1) !== outputs) refuse('has a bias of another size');
    if (!hasBias) refuse(`adds a bias to ${name}, which has none`);
    return {
      form: 'rows',
      bias:
        ({ values: { beft_bias } }) =>
        (row) => {
          for (let o = 0; o < outputs; o++) row[o]! += beft_bias![o]!;
        },
    };
  },
};
