/** Factors made of what all modules of the adapter share. */
import { torchNormals } from '../../linalg/torch-random';
import { type AdapterKind, matrix, multiply, type PartValues } from './kind';

/**
 * Lily (arXiv:2407.09946; PEFT tuners/lily/layer.py): modules share their A and B. Several B are mixed by what the text
 * is; one is a LoRA.
 */
export const lily: AdapterKind = {
  type: 'LILY',
  title: 'Lily of one B',
  formula: 'W + s · B·A',
  parts: ['lily_A', 'lily_B', 'lily_router'],
  optional: ['lily_router'],
  fields: ['stride_A', 'num_B', 'scaling', 'init_weights'],
  update({ parts, inputs, outputs, number, refuse }) {
    const [rank, columns] = parts.lily_A!.shape as [number, number];
    const [rows, width] = parts.lily_B!.shape as [number, number];
    if (columns !== inputs || width !== outputs) refuse('has factors of another size');
    if (rows !== rank) refuse(`mixes ${rows / rank} factors by what the text is (num_B)`);
    return {
      form: 'product',
      rank,
      scale: number('scaling', 1),
      left: ({ lily_B }) => matrix(outputs, rank, (o, k) => lily_B![k * outputs + o]!),
      right: ({ lily_A }) => lily_A!,
    };
  },
};

/** Uni-LoRA (arXiv:2506.00799; PEFT tuners/unilora/layer.py): every entry of the factors is one of a vector's, scaled. */
export const unilora: AdapterKind = {
  type: 'UNILORA',
  title: 'Uni-LoRA',
  formula: 'W + B·A, of entries of one vector',
  parts: ['unilora_indices_A', 'unilora_indices_B', 'unilora_scales_A', 'unilora_scales_B'],
  shared: ['unilora_theta_d'],
  lacking:
    'its indices (save_indices: false), which PEFT draws over all modules in the order Python has them in',
  fields: [
    ...['proj_seed', 'theta_d_length', 'unilora_dropout', 'init_theta_d_bound', 'init_weights'],
    'save_indices',
  ],
  update({ parts, inputs, outputs, refuse }) {
    const [rank, columns] = parts.unilora_indices_A!.shape as [number, number];
    const [rows] = parts.unilora_indices_B!.shape;
    if (columns !== inputs || rows !== outputs) refuse('has indices of another size');
    if (!parts.unilora_theta_d) refuse('does not hold its vector');
    const entries = ({ unilora_theta_d }: PartValues, at: Int32Array, scales: Float32Array) =>
      Float32Array.from(at, (index, i) => unilora_theta_d![index]! * scales[i]!);
    return {
      form: 'product',
      rank,
      scale: 1,
      left: (values, { unilora_indices_B }) => entries(values, unilora_indices_B!, values.unilora_scales_B!),
      right: (values, { unilora_indices_A }) => entries(values, unilora_indices_A!, values.unilora_scales_A!),
    };
  },
};

/** Projections that were stored in 16 bits differ from those drawn by less. */
const SAME_DRAW = 0.02;

/**
 * TinyLoRA (arXiv:2602.04118; PEFT tuners/tinylora): singular directions of the base, mixed by a few trained numbers. Which
 * of the vectors v belongs to a module goes by its place in the Python model; its projections, drawn from the seed plus that
 * place, say which it was.
 */
export const tinylora: AdapterKind = {
  type: 'TINYLORA',
  title: 'TinyLoRA',
  formula: 'W + B · Σᵢ vᵢPᵢ · A',
  parts: ['tinylora_A', 'tinylora_B', 'tinylora_P'],
  optional: ['tinylora_P'],
  shared: ['tinylora_v.#'],
  fields: [
    ...['u', 'weight_tying', 'projection_seed', 'save_projection', 'init_v_bound', 'tinylora_dropout'],
    'init_weights',
  ],
  update({ parts, inputs, outputs, number, modules, refuse }) {
    const [rank, columns] = parts.tinylora_A!.shape as [number, number];
    const { shape } = parts.tinylora_P ?? refuse('does not hold its projections (save_projection: false)');
    const [count] = shape as [number];
    if (columns !== inputs || parts.tinylora_B!.shape[0] !== outputs || shape[1] !== rank)
      refuse('has factors of another size');
    const groups = Math.max(1, roundHalfEven(modules * (1 - number('weight_tying', 0))));
    const together = Math.max(1, Math.floor(modules / groups));
    const seed = number('projection_seed', 42);
    /** Whether the projections are those of the place. */
    const drawnAt = (place: number, P: Float32Array) => {
      const drawn = torchNormals(seed + place, P.length);
      return P.every((value, i) => Math.abs(value - drawn[i]! / Math.sqrt(rank)) < SAME_DRAW);
    };
    const vectorOf = (values: PartValues): Float32Array => {
      const place =
        groups === 1
          ? 0
          : Array.from({ length: modules }, (_, i) => i).find((i) => drawnAt(i, values.tinylora_P!));
      if (place === undefined) return refuse('has projections that its seed does not give');
      const v = values[`tinylora_v.${Math.min(Math.floor(place / together), groups - 1)}`];
      return v?.length === count ? v : refuse('lacks a trained vector');
    };
    return {
      form: 'product',
      rank,
      scale: 1,
      left: ({ tinylora_B }) => tinylora_B!,
      right(values) {
        const v = vectorOf(values);
        const mixed = matrix(rank, rank, (i, j) =>
          v.reduce((sum, value, k) => sum + value * values.tinylora_P![(k * rank + i) * rank + j]!, 0),
        );
        return Float32Array.from(multiply(mixed, values.tinylora_A!, rank));
      },
    };
  },
};

/** Python's `round`. */
function roundHalfEven(x: number): number {
  const floor = Math.floor(x);
  return x - floor === 0.5 ? floor + (floor % 2) : Math.round(x);
}
