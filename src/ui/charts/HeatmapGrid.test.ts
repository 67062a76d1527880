import { expect, test } from 'vitest';
import { firstName, nextName } from './HeatmapGrid';
import { heatmap, layerGrid } from './heatmap-data';
import { metricById } from './metrics';

const tensor = (layer: number, module: string) => ({
  name: `${layer}${module}`,
  layer,
  module,
  copied: false,
});

/** Layer 0 has q, k, v; layer 1 lacks k. */
const data = heatmap(
  layerGrid([
    ...['q_proj', 'k_proj', 'v_proj'].map((m) => tensor(0, m)),
    ...['q_proj', 'v_proj'].map((m) => tensor(1, m)),
  ]),
  new Map(),
  metricById('trimmed'),
  ['a'],
);

test.each([
  ['0q_proj', 'ArrowRight', false, '0k_proj'],
  ['0q_proj', 'End', false, '0v_proj'],
  ['0v_proj', 'ArrowLeft', true, '0q_proj'],
  // A hole is stepped over sideways, and met with the row's first cell from above.
  ['1q_proj', 'ArrowRight', false, '1v_proj'],
  ['0k_proj', 'ArrowDown', false, '1q_proj'],
  ['1v_proj', 'ArrowDown', false, null],
  ['0v_proj', 'ArrowDown', true, '1v_proj'],
  ['1q_proj', 'ArrowUp', true, '0q_proj'],
  ['0q_proj', 'ArrowUp', false, null],
  ['0q_proj', 'ArrowLeft', false, null],
  ['0q_proj', 'x', false, null],
  ['nowhere', 'ArrowDown', false, null],
])('from %s by %s (far: %s) to %s', (from, key, far, to) => {
  expect(nextName(data, from, key, far)).toBe(to);
});

test('Tab reaches the first cell there is', () => {
  expect(firstName(data)).toBe('0q_proj');
});
