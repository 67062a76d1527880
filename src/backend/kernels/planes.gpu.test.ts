/** Kernels of several streams of a row, and of sparse gates: both engines within what each states, and rows that show the rule. */
import { describe, expect, it } from 'vitest';
import { createCpuBackend } from '../cpu/cpu-backend';
import type { Kernel } from '../kernel';
import { comparison, floats, tolerance } from './forward-kernels.test.fixture';
import { sharedGpu } from './kernels.test.support';
import { matchSize, mixPlanes, spreadRows } from './planes';
import { sparseRows } from './rows';

const gpu = await sharedGpu();
const expectClose = comparison(createCpuBackend(), () => gpu);

const kernels = [matchSize, mixPlanes, sparseRows, spreadRows] as unknown as Kernel[];
describe.each(kernels.map((k) => [k.id, k] as const))('%s', (_, kernel) => {
  it('has a tolerance', () => {
    expect(tolerance(kernel)).toBeLessThan(1e-5);
  });
});

const [ROWS, WIDTH] = [70, 24];

it.each([2, 4])('%i streams, predicted and corrected', async (planes) => {
  for (const correct of [0, 1]) {
    const contents = {
      x: floats(ROWS * planes * WIDTH, 50),
      s: floats(ROWS * 4, 51, 3),
      w: floats(planes ** 3, 52),
      a: floats(ROWS * WIDTH, 53),
      y: new Float32Array(ROWS * planes * WIDTH),
      first: new Float32Array(ROWS * WIDTH),
    };
    const params = { rows: ROWS, width: WIDTH, planes, s_stride: 4, correct };
    const y = await expectClose(mixPlanes, contents, params);
    const first = await expectClose(mixPlanes, contents, params, 'first');
    expect(first[WIDTH]).toBe(y[planes * WIDTH]);
  }
});

it('rows at the size of others, tiny ones too', async () => {
  const y = floats(ROWS * WIDTH, 54, 0.5);
  y.fill(1e-6, 0, WIDTH);
  const x = floats(ROWS * WIDTH, 55, 9);
  const made = await expectClose(matchSize, { x, y }, { rows: ROWS, width: WIDTH });
  const size = (row: Float32Array) => Math.hypot(...row);
  const at = (all: Float32Array, r: number) => all.subarray(r * WIDTH, (r + 1) * WIDTH);
  expect(size(at(made, 5)) / size(at(x, 5))).toBeCloseTo(1, 5);
  expect(size(at(made, 0)) / size(at(x, 0))).toBeCloseTo(1e-6 / Math.sqrt(1e-5), 6);
});

it('rows added to several runs of columns', async () => {
  const y = floats(ROWS * 4 * WIDTH, 56);
  const made = await expectClose(
    spreadRows,
    { x: floats(ROWS * WIDTH, 57), y },
    { rows: ROWS, width: WIDTH, copies: 2, y_begin: WIDTH, y_stride: 4 * WIDTH },
  );
  expect(made.subarray(0, WIDTH)).toEqual(y.subarray(0, WIDTH));
  expect(made.subarray(3 * WIDTH, 4 * WIDTH)).toEqual(y.subarray(3 * WIDTH, 4 * WIDTH));
});

it('what rises above a row’s mean by some deviations', async () => {
  const stride = 2 * WIDTH;
  const x = floats(ROWS * stride, 58, 2);
  const made = await expectClose(
    sparseRows,
    { x },
    { rows: ROWS, width: WIDTH, stride, deviations: 0.5 },
    'x',
  );
  const row = Array.from(x.subarray(0, WIDTH));
  const mean = row.reduce((a, b) => a + b, 0) / WIDTH;
  const deviation = Math.sqrt(row.reduce((a, b) => a + (b - mean) ** 2, 0) / WIDTH);
  for (const [i, v] of row.entries()) {
    expect(made[i]).toBeCloseTo(Math.max(0, v - mean - 0.5 * deviation), 5);
  }
  // what stands beside is left alone
  expect(made.subarray(WIDTH, stride)).toEqual(x.subarray(WIDTH, stride));
});
