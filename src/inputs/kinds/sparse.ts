/** Single weights of a matrix that are changed: SHiRA's, and what an inverse Haar transform makes of WaveFT's. */

import { torchGenerator } from '../../linalg/torch-random';
import { type AdapterKind, matrix, type RowChange } from './kind';

/** Adds values to single places of the rows. */
function addAt(changes: Iterable<readonly [row: number, column: number, value: number]>): RowChange {
  const byRow = new Map<number, [number, number][]>();
  for (const [row, column, value] of changes) {
    const known = byRow.get(row);
    if (known) known.push([column, value]);
    else byRow.set(row, [[column, value]]);
  }
  return (row, index) => {
    for (const [column, value] of byRow.get(index) ?? []) row[column]! += value;
  };
}

/** SHiRA (arXiv:2406.13175; PEFT tuners/shira/layer.py): values at stored places. */
export const shira: AdapterKind = {
  type: 'SHIRA',
  title: 'SHiRA',
  formula: 'W + S, S sparse',
  parts: ['shira_weight', 'shira_indices'],
  fields: ['mask_type', 'random_seed', 'init_weights'],
  update({ parts, refuse }) {
    const count = parts.shira_weight!.shape[0]!;
    const [two, places] = parts.shira_indices!.shape;
    if (two !== 2 || places !== count) refuse('has different numbers of positions and values');
    return {
      form: 'rows',
      open: ({ values: { shira_weight }, indices: { shira_indices } }) =>
        addAt(
          Array.from({ length: count }, (_, i) => {
            return [shira_indices![i]!, shira_indices![count + i]!, shira_weight![i]!] as const;
          }),
        ),
    };
  },
};

/**
 * Super and Supra (PEFT tuners/supertuning/layer.py): values at stored places of the flat weight, and with a rank LoRA
 * beside them.
 */
export const supertuning: AdapterKind = {
  type: 'SUPERTUNING',
  title: 'Super, Supra',
  formula: 'W + S + α/r · B·A, S sparse',
  parts: ['supertuning_values', 'supertuning_indices', 'supertuning_lora_A', 'supertuning_lora_B'],
  optional: ['supertuning_indices', 'supertuning_lora_A', 'supertuning_lora_B'],
  fields: ['sparsity', 'select_top', 'init_weights', 'save_precomputed_indices'],
  update({ parts, inputs, alpha, refuse }) {
    const places = parts.supertuning_indices?.shape[0];
    if (places === undefined) refuse('does not hold its places (save_precomputed_indices: false)');
    if (places !== parts.supertuning_values!.shape[0]) refuse('has different numbers of places and values');
    const rank = parts.supertuning_lora_A?.shape[0] ?? 0;
    return {
      form: 'rows',
      open({ values, indices }) {
        const sparse = addAt(
          Array.from(indices.supertuning_indices!, (place, i) => {
            return [Math.floor(place / inputs), place % inputs, values.supertuning_values![i]!] as const;
          }),
        );
        const [A, B] = [values.supertuning_lora_A!, values.supertuning_lora_B!];
        return (row, index, partner) => {
          sparse(row, index, partner);
          for (let k = 0; k < rank; k++) {
            const left = (alpha / rank) * B[index * rank + k]!;
            for (let c = 0; c < inputs; c++) row[c]! += left * A[k * inputs + c]!;
          }
        };
      },
    };
  },
};

/**
 * WaveFT with Haar wavelets (arXiv:2505.12532; PEFT tuners/waveft/layer.py): a few coefficients of a one-level wavelet
 * transform. A coefficient of the quarter (a, b) spreads over 2 × 2 weights with the signs of its filters.
 */
export const waveft: AdapterKind = {
  type: 'WAVEFT',
  title: 'WaveFT',
  formula: 'W + s · idwt2(spectrum)',
  parts: ['waveft_spectrum'],
  fields: [
    ...['n_frequency', 'scaling', 'wavelet_family', 'use_idwt', 'random_loc_seed', 'init_weights'],
    ...['n_frequency_pattern', 'proportional_parameters'],
  ],
  update({ parts, inputs, outputs, number, flag, setting, refuse }) {
    const family = setting('wavelet_family') ?? 'db1';
    const inverse = flag('use_idwt', true);
    if (inverse && family !== 'db1') refuse(`uses ${String(family)} wavelets; db1 can be merged`);
    if (inputs * outputs >= MOST_PLACES)
      refuse('draws its positions from a matrix too large to repeat the draw');
    const count = parts.waveft_spectrum!.shape[0]!;
    const scale = number('scaling', 25);
    const half = [Math.ceil(outputs / 2), Math.ceil(inputs / 2)] as const;
    return {
      form: 'rows',
      open({ values: { waveft_spectrum } }) {
        const places = firstOfPermutation(inputs * outputs, count, number('random_loc_seed', 777));
        return addAt(
          places.flatMap((place, k) => {
            const value = scale * waveft_spectrum![k]!;
            const [row, column] = [Math.floor(place / inputs), place % inputs];
            if (!inverse) return [[row, column, value] as const];
            const [high, right] = [row >= half[0], column >= half[1]];
            const [i, j] = [high ? row - half[0] : row, right ? column - half[1] : column];
            // PEFT's order of the bands: top right is high along the rows, bottom left along the columns
            return [0, 1].flatMap((p) =>
              [0, 1].map((q) => {
                const sign = (right && p === 1 ? -1 : 1) * (high && q === 1 ? -1 : 1);
                return [2 * i + p, 2 * j + q, (sign * value) / 2] as const;
              }),
            );
          }),
        );
      },
    };
  },
};

// PyTorch's random permutations, as far as adapters need them: which places of a matrix they train.

/** From here on PyTorch draws 64-bit numbers (ATen/native/TensorFactories.cpp, randperm_cpu). */
const MOST_PLACES = Math.floor((2 ** 32 - 1) / 20);

/**
 * The first `count` entries of `torch.randperm(n, generator=torch.Generator().manual_seed(seed))`: a Fisher–Yates
 * shuffle over MT19937, of which only the moved entries are stored.
 * @param n fewer than {@link MOST_PLACES}
 */
function firstOfPermutation(n: number, count: number, seed: number): number[] {
  const random = torchGenerator(seed);
  const moved = new Map<number, number>();
  const at = (i: number) => moved.get(i) ?? i;
  const out: number[] = [];
  for (let i = 0; i < Math.min(count, n); i++) {
    const j = i < n - 1 ? i + (random() % (n - i)) : i;
    const value = at(j);
    moved.set(j, at(i));
    out.push(value);
  }
  return out;
}

/**
 * FourierFT (arXiv:2405.03003; PEFT tuners/fourierft/layer.py): a few coefficients of the spectrum. The real part of each
 * wave e^{2πi(um/M + vn/N)} is a product of rank 2, so the inverse transform streams as one product of rank 2n.
 */
export const fourierft: AdapterKind = {
  type: 'FOURIERFT',
  title: 'FourierFT',
  formula: 'W + s · Re ifft2(spectrum)',
  parts: ['fourierft_spectrum'],
  fields: [
    'n_frequency',
    'alpha',
    'scaling',
    'random_loc_seed',
    'n_frequency_pattern',
    'init_weights',
    'ifft2_norm',
  ],
  update({ parts, inputs, outputs, number, setting, refuse }) {
    const count = parts.fourierft_spectrum!.shape[0]!;
    const norm = setting('ifft2_norm') ?? 'backward';
    const divisor = { backward: inputs * outputs, ortho: Math.sqrt(inputs * outputs), forward: 1 }[
      String(norm)
    ];
    if (divisor === undefined) refuse(`has an ifft2_norm of ${String(norm)}`);
    if (inputs * outputs >= MOST_PLACES)
      refuse('draws its positions from a matrix too large to repeat the draw');
    const places = () => firstOfPermutation(inputs * outputs, count, number('random_loc_seed', 777));
    const rank = 2 * count;
    const wave = (frequency: number, at: number, extent: number) =>
      (2 * Math.PI * ((frequency * at) % extent)) / extent;
    return {
      form: 'product',
      rank,
      scale: number('scaling', 150) / divisor!,
      left() {
        const at = places();
        return matrix(outputs, rank, (m, q) => {
          const angle = wave(Math.floor(at[q >> 1]! / inputs), m, outputs);
          return q % 2 === 0 ? Math.cos(angle) : -Math.sin(angle);
        });
      },
      right({ fourierft_spectrum }) {
        const at = places();
        return matrix(rank, inputs, (q, n) => {
          const angle = wave(at[q >> 1]! % inputs, n, inputs);
          return fourierft_spectrum![q >> 1]! * (q % 2 === 0 ? Math.cos(angle) : Math.sin(angle));
        });
      },
    };
  },
};
