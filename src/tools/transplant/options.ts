/** Options of another tokenizer for a model. */
import type { Options, OptionValues } from '../../reports/option';

export const transplantOptions = {
  way: {
    kind: 'choice',
    help: 'How rows of new tokens are made: omp, as few shared tokens as the donor needs for them (orthogonal matching pursuit); subwords, of the pieces of their text; neighbors, of the nearest shared tokens of the donor; mean and zero.',
    label: 'rows of new tokens',
    values: ['omp', 'subwords', 'neighbors', 'mean', 'zero'],
    labels: ['Matching pursuit', 'Subwords', 'Neighbors', 'Mean', 'Zero'],
    default: 'omp',
  },
  k: {
    kind: 'integer',
    argument: 'K',
    help: 'Shared tokens that a row of omp is made of.',
    label: 'shared tokens a row',
    default: 64,
    min: 1,
    max: 512,
    when: { way: ['omp'] },
  },
  nearest: {
    kind: 'integer',
    argument: 'K',
    help: 'Shared tokens that a row of neighbors is made of.',
    label: 'shared tokens a row',
    default: 8,
    min: 1,
    max: 512,
    when: { way: ['neighbors'] },
  },
  landmarks: {
    kind: 'integer',
    argument: 'N',
    help: 'Shared tokens that rows can be made of: those with the lowest ids of the donor, which are its most frequent.',
    label: 'of the first',
    default: 8192,
    min: 1,
    max: 65_536,
    when: { way: ['omp', 'neighbors'] },
  },
  weighting: {
    kind: 'choice',
    help: 'Of the pieces of a token: their mean, a mean that counts the last piece most in the embedding and the first in the head, that piece alone, or their sum.',
    label: 'pieces by',
    values: ['mean', 'weighted', 'end', 'sum'],
    labels: ['Mean', 'Weighted mean', 'First or last', 'Sum'],
    default: 'mean',
    when: { way: ['subwords'] },
  },
  magnitude: {
    kind: 'choice',
    help: 'Length of a new row: as it is made, the mean of the shared rows, or the donor’s row against those of its shared ones.',
    label: 'length',
    values: ['made', 'shared', 'donor'],
    labels: ['As made', 'As shared rows', 'As in the donor'],
    default: 'made',
    when: { way: ['omp', 'subwords', 'neighbors', 'mean'] },
  },
  padToMultipleOf: {
    kind: 'integer',
    argument: 'N',
    help: 'Rows of embedding and head are filled up to a multiple of so many.',
    label: 'rows a multiple of',
    default: 1,
    min: 1,
    max: 4096,
  },
} as const satisfies Options;

export type TransplantForm = OptionValues<typeof transplantOptions>;

/** Shared tokens that a row is made of at most. */
export function kOf({ way, k, nearest }: TransplantForm): number {
  return way === 'omp' ? k : nearest;
}

/** Whether rows are made of shared tokens, by the donor's weights. */
export function isFitted({ way }: Pick<TransplantForm, 'way'>): boolean {
  return way === 'omp' || way === 'neighbors';
}
