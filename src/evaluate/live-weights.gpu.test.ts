import { expect, test } from 'vitest';
import { sharedGpu } from '../backend/kernels/kernels.test.support';
import { MODELS, turned } from './live-weights.test.fixture';

test.each(['linear', 'task_arithmetic'])(
  '%s with a whole contributor: on the graphics device a changed recipe gives what it writes on the processor',
  async (id) => {
    const from = { id, models: MODELS, weights: [0.7, 0.7, 0.7] };
    const { difference, isSum, after, before } = await turned(
      from,
      { ...from, weights: [0.2, 1.1, 0.5] },
      2 ** 30,
      sharedGpu,
    );
    expect(isSum).toBe(true);
    expect(after).not.toEqual(before);
    expect(difference).toBeLessThan(1e-3);
  },
);
