/** Kernels that run along sequences, gates and weighted rows: both engines within their stated tolerances, and continued states. */
import { describe, expect, it } from 'vitest';
import { createCpuBackend } from '../cpu/cpu-backend';
import type { Kernel } from '../kernel';
import { activateRare, GATE_CODE, gateRows, RARE_CODE } from './activation';
import { comparison, floats, tolerance } from './forward-kernels.test.fixture';
import { sharedGpu } from './kernels.test.support';
import { scatterRows } from './rows';
import { causalConv, keepRows, lruScan, SCAN_CODE, stateScan } from './sequence';

const gpu = await sharedGpu();
const expectClose = comparison(createCpuBackend(), () => gpu);

/** Two pieces: five rows that begin a sequence in slot 1, two that go on in slot 0. */
const PIECES = Uint32Array.from([0, 5, 1, 1, 5, 2, 0, 0]);
const ROWS = 7;

const kernels = [
  activateRare,
  causalConv,
  gateRows,
  keepRows,
  lruScan,
  scatterRows,
  stateScan,
] as unknown as Kernel[];

describe.each(kernels.map((k) => [k.id, k] as const))('%s', (_, kernel) => {
  it('has a tolerance', () => {
    expect(tolerance(kernel)).toBeLessThan(1e-5);
  });
});

it.each(Object.entries(RARE_CODE))('activation %s', async (_, kind) => {
  const [rows, inner] = [5, 67];
  const x = floats(rows * 2 * inner, 20, 8);
  x.set([0, -0, 100, -100, 1e-4, -1e-4, 0.7, -0.7]);
  for (const gated of [0, 1]) {
    await expectClose(
      activateRare,
      { x, y: new Float32Array(rows * 68) },
      {
        rows,
        inner,
        x_stride: 2 * inner,
        y_stride: 68,
        gated,
        kind,
        xp: 0.8,
        xn: 0.9,
        beta: 0.5,
        floor: -1e-6,
      },
    );
  }
});

it.each(Object.entries(GATE_CODE))('rows gated by %s', async (_, kind) => {
  const [rows, width] = [3, 24];
  for (const [group, group_stride, unit, x_stride] of [
    [8, 16, 1, 60],
    [24, 0, 0, 4],
    [24, 0, 1, 0],
  ] as const) {
    await expectClose(
      gateRows,
      { x: floats(rows * 60, 30, 6), y: floats(rows * 28, 31) },
      { rows, width, kind, x_begin: 2, x_stride, group, group_stride, unit, y_stride: 28 },
    );
  }
});

it.each([
  [4, 1, 1],
  [3, 0, 0],
])(
  'convolution of %i taps, bias %i, SiLU %i, and what is kept for the next rows',
  async (taps, biased, silu) => {
    const channels = 70;
    const [x_stride, x_begin] = [80, 3];
    const x = floats(ROWS * x_stride, 32);
    const before = floats(2 * (taps - 1) * channels, 33);
    await expectClose(
      causalConv,
      {
        x,
        pieces_at: PIECES,
        before,
        weight: floats(channels * taps, 34),
        bias: floats(channels, 35),
        y: new Float32Array(ROWS * 72),
      },
      { pieces: 2, channels, taps, biased, silu, x_stride, x_begin, y_stride: 72 },
    );
    const kept = await expectClose(
      keepRows,
      { x, pieces_at: PIECES, before },
      { pieces: 2, channels, kept: taps - 1, x_stride, x_begin },
      'before',
    );
    // the last row of slot 0 is the last row of the piece that went on in it
    expect(kept[(taps - 2) * channels]).toBe(x[6 * x_stride + x_begin]);
  },
);

it.each([
  ['space', 1, 1],
  ['space', 8, 4],
  ['delta', 1, 2],
  ['decay', 1, 1],
] as const)('state of %s with %i decays a head, %i heads in common', async (kind, decays, share) => {
  const [heads, dim, states] = [4, 6, 8];
  const contents = {
    x: floats(ROWS * 30, 40),
    bc: floats(ROWS * 80, 41, 0.5),
    t: floats(ROWS * 12, 42, 3),
    constants: floats(heads * (decays + 2), 43).map((v, i) => (i < heads * decays ? -Math.abs(v) : v)),
    pieces_at: PIECES,
    state: floats(2 * heads * dim * states, 44),
    y: new Float32Array(ROWS * heads * dim),
  };
  const params = {
    pieces: 2,
    heads,
    dim,
    states,
    heads_per_group: share,
    decays,
    kind: SCAN_CODE[kind],
    x_begin: 2,
    x_stride: 30,
    b_begin: 3,
    c_begin: 40,
    bc_stride: 80,
    t_begin: 1,
    beta_begin: 6,
    t_stride: 12,
    y_stride: heads * dim,
    low: 0.01,
    high: 4,
    beta_scale: 2,
    y_scale: 0.7,
  };
  await expectClose(stateScan, contents, params);
  await expectClose(stateScan, contents, params, 'state');
});

it('recurrent unit with gates', async () => {
  const [width, block] = [24, 8];
  const contents = {
    x: floats(ROWS * 28, 50),
    gates: floats(2 * width * block, 51),
    biases: floats(2 * width, 52),
    rates: floats(width, 53, 2),
    pieces_at: PIECES,
    state: floats(2 * width, 54),
    y: new Float32Array(ROWS * width),
  };
  const params = { pieces: 2, width, block, x_stride: 28, y_stride: width };
  await expectClose(lruScan, contents, params);
  await expectClose(lruScan, contents, params, 'state');
});

it('weighted rows are added where they belong', async () => {
  const contents = {
    x: floats(3 * 72, 70),
    picks: Uint32Array.from([4, 0, 2]),
    factors: floats(3, 71),
    y: floats(5 * 70, 72),
  };
  const got = await expectClose(scatterRows, contents, { rows: 3, width: 70, x_stride: 72, y_stride: 70 });
  expect(got[70]).toBe(contents.y[70]);
  expect(got[0]).toBeCloseTo(contents.y[0]! + contents.factors[1]! * contents.x[72]!, 6);
});
