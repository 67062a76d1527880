/** Published outputs of `torch.manual_seed(0)` and `torch.randn` on the processor. */
import { expect, it } from 'vitest';
import { torchNormals } from './torch-random';

const rounded = (values: Float64Array) => Array.from(values, (x) => Number(x.toFixed(4)));

it('draws fewer than sixteen as PyTorch does, pair by pair', () => {
  expect(rounded(torchNormals(0, 6))).toEqual([1.541, -0.2934, -2.1788, 0.5684, -1.0845, -1.3986]);
  expect(rounded(torchNormals(42, 5))).toEqual([0.3367, 0.1288, 0.2345, 0.2303, -1.1229]);
});

it('draws sixteen at a time', () => {
  expect(rounded(torchNormals(0, 16)).slice(0, 8)).toEqual([
    -1.1258, -1.1524, -0.2506, -0.4339, 0.8487, 0.692, -0.316, -2.1152,
  ]);
  const seventeen = torchNormals(0, 17);
  expect(rounded(seventeen).slice(0, 1)).toEqual([-1.1258]);
  expect(seventeen[16]).not.toBe(0);
});
