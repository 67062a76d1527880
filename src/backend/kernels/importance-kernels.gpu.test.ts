/**
 * The kernels of the importance on both engines: bit for bit where their header says nothing of a tolerance or says 0, within
 * it where it names one. What they compute together is compared with an oracle in src/calibration.
 */
import { describe, expect, it } from 'vitest';
import { createCpuBackend } from '../cpu/cpu-backend';
import type { Kernel } from '../kernel';
import { cgBegin, cgStep, splitByMask } from './compensation';
import { addDamped, choleskyTile, triangularPanel, triangularTile } from './factor';
import { after, comparison, floats, tolerance } from './forward-kernels.test.fixture';
import { sameOnBoth, sharedGpu, words } from './kernels.test.support';
import { GRAM_ROWS, inputGram, inputSquares, matrixDiagonal } from './products';
import { REFERENCES } from './references.test.support';
import { copyColumns, rearrange } from './rows';
import { columnScore, maskRowWords, packMask, trimRows } from './select';
import { mixColumns } from './sums';

const gpu = await sharedGpu();
const cpu = createCpuBackend();
const expectClose = comparison(cpu, () => gpu);
const expectSame = sameOnBoth(() => [cpu, gpu]);

describe('Gram matrices', () => {
  // quads that do not fill the tiles of 2 and 16; a dispatch in the middle of the tiles
  const [rows, stride4, begin4, width4] = [GRAM_ROWS / 8, 26, 3, 19];
  const x = floats((rows + 2) * stride4 * 4, 1);
  const width = 4 * width4;
  const before = floats(width ** 2, 2);
  const s = before.map((v, e) => v + before[(e % width) * width + Math.floor(e / width)]!);

  it.each([
    ['block', 2, 64, 0],
    ['tile', 16, 1, 1],
  ] as const)('%s', async (form, side4, perGroup, first_tile) => {
    const side = Math.ceil(width4 / side4);
    const tiles = (side * (side + 1)) / 2 - first_tile;
    const params = { rows, first: 2, stride4, begin4, width4, first_tile };
    const kernel = inputGram[form] as unknown as Kernel;
    const work = { groups: Math.ceil(tiles / perGroup), elements: tiles };
    const found = new Float32Array((await after(gpu, kernel, { x, s }, params, 's', work)).buffer);
    const expected = s.slice();
    REFERENCES['input-gram']!({
      params: { ...params, tiles, side: 4 * side4 },
      u32: () => new Uint32Array(0),
      f32: (name) => (name === 'x' ? x : expected),
    });
    const largest = expected.reduce((m, v) => Math.max(m, Math.abs(v)), 0);
    const worst = expected.reduce((m, v, i) => Math.max(m, Math.abs(v - found[i]!)), 0);
    expect(worst / largest).toBeLessThanOrEqual(tolerance(kernel));
  });

  it('squares and diagonals', async () => {
    const params = { rows, first: 1, stride4, width4 };
    await expectClose(inputSquares, { x, squares: floats(4 * width4, 3) }, params, 'squares');
    const m = floats(70 * 70, 4);
    await expectSame(
      matrixDiagonal as unknown as Kernel,
      { m, diagonal: new Float32Array(76) },
      { width: 70, out: 3 },
    );
  });
});

describe('matrices', () => {
  it.each([
    { reversed: 0, add: 0, fill_dead: 1 },
    { reversed: 1, add: 1, fill_dead: 0 },
  ])('damped %o', async (flags) => {
    const width = 45;
    const s = floats(width ** 2, 5);
    s[4 * (width + 1)] = 0;
    const params = { width, ...flags, scale: 0.25, shift: 0.125 };
    await expectClose(addDamped, { s, y: floats(width ** 2, 6) }, params);
  });

  it('transposed', async () => {
    const contents = { x: floats(45 * 31, 7), y: new Float32Array(45 * 31) };
    await expectSame(rearrange as unknown as Kernel, contents, { rows: 45, cols: 31 });
  });

  it('parts copied and mixed', async () => {
    const shape = {
      rows: 40,
      cols: 30,
      x_first: 2,
      x_stride: 50,
      x_begin: 7,
      y_first: 1,
      y_stride: 33,
      y_begin: 3,
    };
    const contents = { x: floats(42 * 50, 8), y: floats(41 * 33, 9) };
    for (const add of [0, 1]) {
      await expectClose(copyColumns, contents, { ...shape, add, scale: -0.3 });
    }
    await expectClose(
      mixColumns,
      { x: floats(1200, 10), reference: floats(1200, 11), factor: floats(30, 12), y: floats(1200, 13) },
      { elements: 1200, cols: 30 },
    );
  });
});

describe('triangular', () => {
  const width = 76;
  // diagonally dominant, so that no sum runs away
  const factor = floats(width ** 2, 14, 0.1).map((v, e) => (e % (width + 1) === 0 ? 2 + v : v));
  const x = floats(9 * width, 15);
  const params = { width4: width / 4, column4: 16 };

  it('a panel and a tile of rows of their own', async () => {
    const contents = { factor, x };
    const rows = { ...params, rows: 9, first_row: 0, unit: 0 };
    await expectClose(triangularPanel.other, contents, rows, 'x');
    await expectClose(triangularTile.other, contents, rows, 'x');
  });

  it('a step of a factoring', async () => {
    const rows = { width4: width / 4, column4: 8, rows: 44, first_row: 32, unit: 0 };
    await expectClose(triangularPanel.own, { factor }, rows, 'factor');
    const below = { ...rows, rows: 12, first_row: 64 };
    await expectClose(triangularTile.own, { factor }, below, 'factor');
    const contents = { factor, failed: new Uint32Array(1) };
    await expectClose(choleskyTile, contents, { width, column: 32, floor: 0.1 }, 'factor');
  });

  it('the pivot that fails is the first one, by its bits', async () => {
    for (const bad of [-1, 1e-3, Number.NaN, Number.POSITIVE_INFINITY]) {
      const damaged = factor.slice();
      for (const column of [40, 50]) damaged[column * (width + 1)] = bad;
      for (const engine of [cpu, gpu]) {
        const buffers = {
          factor: engine.allocate(damaged.byteLength, 'factor'),
          failed: engine.allocate(4, 'failed'),
        };
        engine.write(buffers.factor, 0, new Uint8Array(damaged.buffer));
        engine.run(choleskyTile, { params: { width, column: 32, floor: 0.1 }, buffers });
        const [bytes] = await engine.read([{ buffer: buffers.failed, byteLength: 4 }]);
        expect(new Uint32Array(bytes!.buffer)[0], `${engine.kind} ${bad}`).toBe(41);
      }
    }
  });
});

describe('masks', () => {
  it.each([60, 44, 7])('scores and packed bits in blocks of %i columns', async (block) => {
    const [rows, cols] = [50, 60];
    const keys = new Uint32Array(rows * cols);
    const contents = { values: floats(rows * cols, 16), scale: floats(cols, 17).map(Math.abs), keys };
    const shape = { rows, cols, block };
    const scored = await expectSame(columnScore as unknown as Kernel, contents, shape);
    const mask = new Uint32Array(rows * maskRowWords(cols));
    const left = Uint32Array.from(scored.keys!, (key) => (key > 0x3e000000 ? key : 0));
    const packed = { keys: left, mask };
    await expectSame(packMask as unknown as Kernel, packed, shape);
  });

  it.each(['group', 'line'] as const)('rows trimmed, a row per %s', async (form) => {
    const [rows, cols] = [70, 129];
    // many ties: three keys a row in turn
    const keys = words(rows * cols, 30).map((w, e) =>
      Math.floor(e / cols) % 2 ? 1 + (w % 3) : 1 + (w >>> 1),
    );
    for (const keep of [1, 40, 129]) {
      await expectSame(trimRows[form] as unknown as Kernel, { keys }, { rows, cols, keep });
    }
  });

  const [rows, width, cols, begin] = [70, 76, 160, 48];
  const mask = words((rows + 3) * maskRowWords(cols), 18);
  const entries = (seed: number) => floats(rows * width, seed);
  const params = {
    rows,
    width4: width / 4,
    mask_row: 3,
    mask_words: maskRowWords(cols),
    mask_begin: begin,
    may_rest: 0,
    shift: 0.05,
  };

  it('split', async () => {
    const contents = { mask, x: entries(19), dropped: new Float32Array(rows * width) };
    await expectSame(splitByMask as unknown as Kernel, contents, params);
  });

  it.each(['group', 'line'] as const)('conjugate gradients, a row per %s', async (form) => {
    const inverse = floats(width, 20).map((v) => 1 + v / 2);
    const rho = floats(2 * rows, 21).map((v) => 2 + v);
    const start = { mask, inverse, q: entries(22), p: entries(23), r: entries(24), rho };
    for (const output of ['p', 'r', 'rho']) await expectClose(cgBegin[form], start, params, output);
    // q = H p with H near the identity: the energy is positive
    const p = entries(25);
    const q = p.map((v, e) => v + 0.1 * start.q[e]!);
    const state = { mask, inverse, q, p, r: entries(26), x: entries(27), rho };
    for (const may_rest of [0, 1]) {
      for (const output of ['p', 'r', 'x', 'rho']) {
        await expectClose(cgStep[form], state, { ...params, may_rest }, output);
      }
    }
  });
});
