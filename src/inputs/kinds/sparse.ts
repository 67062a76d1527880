/** Single weights of a matrix that are changed: SHiRA's, and what an inverse Haar transform makes of WaveFT's. */
import type { AdapterKind, RowChange } from './kind';
import { firstOfPermutation, MOST_PLACES } from './torch-random';

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
      open: ({ shira_weight, shira_indices }) =>
        addAt(
          Array.from({ length: count }, (_, i) => {
            return [shira_indices![i]!, shira_indices![count + i]!, shira_weight![i]!] as const;
          }),
        ),
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
      open({ waveft_spectrum }) {
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
