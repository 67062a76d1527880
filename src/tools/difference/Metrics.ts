/** Metrics of the difference chart. Pure. */

import { formatPercent, formatReal } from '../../formats/quantity';
import { SHARE, type ShownMetric, SIZE } from '../../ui/charts/measured';
import type { compareOptions } from './options';

export type DifferenceMetricId = (typeof compareOptions.metric.values)[number];

const absent = 'not compared';
const share = (words: string) => ({
  ...{ ...SHARE, absent },
  phrase: (v: number) => `${formatPercent(v)} ${words}`,
});
const size = (words: string) => ({
  ...{ ...SIZE, absent },
  phrase: (v: number) => `${words} ${formatReal(v)}`,
});

export const differenceMetrics: readonly (ShownMetric & { id: DifferenceMetricId })[] = [
  {
    id: 'relative',
    label: 'Relative',
    meaning: '‖Δ‖ / ‖base‖: how far the tensor has moved, as a part of its own norm.',
    ...size('relative difference'),
  },
  {
    id: 'meanAbs',
    label: 'Mean |Δ|',
    meaning: 'How far a weight has moved on average.',
    ...size('mean change'),
  },
  {
    id: 'maxAbs',
    label: 'Max |Δ|',
    meaning: 'How far the weight that moved most has moved.',
    ...size('largest change'),
  },
  {
    id: 'changedRatio',
    label: 'Changed',
    meaning: 'Share of weights that moved by more than the threshold.',
    ...share('changed'),
  },
  {
    id: 'cosine',
    label: 'Cosine',
    meaning: 'Cosine of the tensor before and after: 1 is the same direction.',
    ...size('cosine'),
    full: { min: 0, max: 1 },
    format: cosineText,
    phrase: (v) => `cosine ${cosineText(v)}`,
  },
  {
    id: 'signFlipRatio',
    label: 'Sign flips',
    meaning: 'Share of weights that changed their sign.',
    ...share('with the sign flipped'),
    full: { min: 0, max: null },
  },
  {
    id: 'bitDifferentRatio',
    label: 'Bits differ',
    meaning: 'Share of weights whose stored bits differ, however small the change.',
    ...share('with different bits'),
  },
];

export function differenceMetric(id: DifferenceMetricId) {
  return differenceMetrics.find((m) => m.id === id)!;
}

function cosineText(value: number): string {
  const text = value.toFixed(4).replace('-', '\u2212');
  return value < 1 && text === '1.0000' ? '>0.9999' : text;
}
