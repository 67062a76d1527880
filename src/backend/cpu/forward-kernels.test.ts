/** The kernels of the forward pass in WebAssembly, with sums in f32, against their formulas in f64. */
import { describe, expect, it } from 'vitest';
import type { WeightDtype } from '../../formats/dtype';
import { f16ToF32 } from '../../formats/half';
import type { Kernel } from '../kernel';
import { attentionMix, attentionScores, NO_WINDOW, placeHeads } from '../kernels/attention';
import { DTYPE_CODE } from '../kernels/encoding';
import { after as contentsAfter, floats, packed } from '../kernels/forward-kernels.test.fixture';
import { matmul, matmulPacked, PANEL, packPanels } from '../kernels/matmul';
import { inputGram } from '../kernels/products';
import { addScaled } from '../kernels/sums';
import { createCpuBackend } from './cpu-backend';
import { closeToReference } from './references.test.support';

const engine = createCpuBackend();

const close = closeToReference(engine);

it('runs in WebAssembly here', () => {
  expect(engine.adapter).toBe('WebAssembly');
});

describe('the linear layer', () => {
  // panels of eight outputs and rows in fours, whole and not; sums of one piece and of several; the FFN of a 0.5 B model
  const shapes = [
    [1, 4, 1],
    [3, 12, 7],
    [4, 256, 8],
    [9, 260, 13],
    [6, 4864, 18],
  ] as const;
  const dtypes: WeightDtype[] = ['F32', 'F16', 'BF16'];
  it.each(
    (['block', 'line'] as const).flatMap((form) =>
      shapes.flatMap((s) => dtypes.map((d) => [form, d, ...s] as const)),
    ),
  )('%s %s [%i, %i] → %i', async (form, dtype, rows, inputs, outputs) => {
    for (const [add, biased] of [
      [0, 0],
      [1, 0],
      [0, 1],
      [1, 1],
    ] as const) {
      const contents = () => ({
        weights: packed(floats((outputs + 2) * inputs, 1), dtype),
        x: floats(rows * (inputs + 8), 2),
        bias: floats(outputs, 3),
        y: floats(rows * (outputs + 3) + 2, 4),
      });
      const params = {
        rows,
        outputs,
        inputs4: inputs / 4,
        w_first: 2,
        x_stride4: inputs / 4 + 2,
        y_stride: outputs + 3,
        y_begin: 2,
        add,
        biased,
        scale: 0.75,
      };
      const y = await close(matmul[form][dtype], contents, params);
      // what does not belong to it keeps its bits
      const before = contents().y;
      for (const at of [0, 1, outputs + 2, y.length - 3, y.length - 1]) {
        const inside = (at - 2) % (outputs + 3) < outputs && at >= 2;
        if (!inside) expect(y[at]).toBe(before[at]);
      }
    }
  });

  it.each(dtypes)('%s: a row has the same bits whatever the form and the rows beside it', async (dtype) => {
    const [rows, inputs, outputs] = [7, 700, 21];
    const x = floats(rows * inputs, 14);
    const run = async (form: 'block' | 'line', first: number, count: number) => {
      const contents = {
        weights: packed(floats(outputs * inputs, 15), dtype),
        x: x.slice(first * inputs, (first + count) * inputs),
        bias: floats(outputs, 16),
        y: new Float32Array(count * outputs),
      };
      const params = {
        rows: count,
        outputs,
        inputs4: inputs / 4,
        w_first: 0,
        x_stride4: inputs / 4,
        y_stride: outputs,
        y_begin: 0,
        add: 0,
        biased: 1,
        scale: 1.5,
      };
      const kernel = matmul[form][dtype] as unknown as Kernel;
      return contentsAfter(engine, kernel, contents, params, 'y');
    };
    const all = await run('block', 0, rows);
    for (const form of ['block', 'line'] as const) {
      for (let r = 0; r < rows; r++) {
        const row = all.slice(r * outputs * 4, (r + 1) * outputs * 4);
        expect(await run(form, r, 1)).toEqual(row);
      }
    }
  });

  it.each(
    dtypes.flatMap((dtype) =>
      [
        [1, 896, 133],
        [2, 700, 40],
        [1, 4, 3],
        [7, 516, 21],
      ].map(([rows, inputs, outputs]) => [dtype, rows!, inputs!, outputs!] as const),
    ),
  )('%s: laid out in panels, [%i, %i] → %i has the same bits', async (dtype, rows, inputs, outputs) => {
    const first = PANEL;
    const whole = Math.ceil((first + outputs) / PANEL) * PANEL;
    const weights = packed(floats(whole * inputs, 21), dtype);
    const room = new Uint8Array((weights.length / whole) * PANEL);
    const layout = { dtype: DTYPE_CODE[dtype], inputs, outputs: first + outputs };
    const laidOut = await contentsAfter(
      engine,
      packPanels as unknown as Kernel,
      { weights, room },
      layout,
      'weights',
    );
    for (const [add, biased] of [
      [0, 0],
      [1, 1],
    ] as const) {
      const params = {
        ...{ rows, outputs, inputs4: inputs / 4, w_first: first, x_stride4: inputs / 4 + 2 },
        ...{ y_stride: outputs + 3, y_begin: 2, add, biased, scale: 0.75 },
      };
      const contents = (of: Uint8Array<ArrayBuffer>) => ({
        weights: of,
        x: floats(rows * (inputs + 8), 22),
        bias: floats(outputs, 23),
        y: floats(rows * (outputs + 3) + 2, 24),
      });
      const run = (kernel: unknown, of: Uint8Array<ArrayBuffer>) =>
        contentsAfter(engine, kernel as Kernel, contents(of), params, 'y');
      expect(await run(matmulPacked[dtype], laidOut)).toEqual(await run(matmul.block[dtype], weights));
    }
  });

  it('widens every half exactly', async () => {
    const halves = Array.from({ length: 65536 }, (_, h) => h).filter((h) => (h & 0x7c00) !== 0x7c00);
    const weights = new Uint16Array(halves.length * 4);
    for (const [o, h] of halves.entries()) weights[4 * o] = h;
    for (const form of ['block', 'line'] as const) {
      const y = await contentsAfter(
        engine,
        matmul[form].F16 as unknown as Kernel,
        {
          weights: new Uint8Array(weights.buffer),
          x: Float32Array.of(1, 0, 0, 0),
          bias: new Float32Array(4),
          y: new Float32Array(halves.length),
        },
        {
          rows: 1,
          outputs: halves.length,
          inputs4: 1,
          w_first: 0,
          x_stride4: 1,
          y_stride: halves.length,
          y_begin: 0,
          add: 0,
          biased: 0,
          scale: 1,
        },
        'y',
      );
      // −0 becomes 0 in a sum
      const expected = new Float32Array(Uint32Array.from(halves, (h) => f16ToF32(h)).buffer);
      expect(new Float32Array(y.buffer)).toEqual(expected.map((v) => v + 0));
    }
  });

  it('carries what is not finite', async () => {
    const weights = floats(8 * 8, 5);
    weights[3 * 8 + 5] = Number.NaN;
    weights[6 * 8 + 1] = Number.NEGATIVE_INFINITY;
    for (const dtype of dtypes) {
      for (const form of ['block', 'line'] as const) {
        const y = await contentsAfter(
          engine,
          matmul[form][dtype] as unknown as Kernel,
          {
            weights: packed(weights, dtype),
            x: new Float32Array(8).fill(1),
            bias: new Float32Array(4),
            y: new Float32Array(8),
          },
          {
            rows: 1,
            outputs: 8,
            inputs4: 2,
            w_first: 0,
            x_stride4: 2,
            y_stride: 8,
            y_begin: 0,
            add: 0,
            biased: 0,
            scale: 1,
          },
          'y',
        );
        const values = new Float32Array(y.buffer);
        expect([...values].map(Number.isFinite)).toEqual([true, true, true, false, true, true, false, true]);
        expect(values[3]).toBeNaN();
        expect(values[6]).toBe(Number.NEGATIVE_INFINITY);
      }
    }
  });
});

describe('Gram matrices', () => {
  // widths of whole tiles and of half a tile more; rows of one panel and of several; dispatches that begin between tiles
  it.each([
    [4, 3, 0, 1],
    [8, 256, 0, 1],
    [20, 300, 0, 6],
    [20, 300, 2, 4],
    [76, 512, 0, 55],
    [76, 70, 7, 48],
    [100, 70, 0, 64],
  ])('width %i, %i rows, tiles from %i on, %i of them', async (width, rows, first_tile, tiles) => {
    const before = floats(width ** 2, 7);
    const symmetric = before.map((v, e) => v + before[(e % width) * width + Math.floor(e / width)]!);
    const side = Math.ceil(width / 8);
    const whole = first_tile === 0 && tiles === (side * (side + 1)) / 2;
    const s = await close(
      inputGram.block,
      () => ({ x: floats((rows + 2) * (width + 12), 8), s: symmetric.slice() }),
      { rows, first: 2, stride4: width / 4 + 3, begin4: 2, width4: width / 4, first_tile },
      's',
      tiles,
    );
    for (let i = 0; i < width; i++) {
      for (let j = 0; j < i; j++) expect(s[i * width + j]).toBe(s[j * width + i]);
    }
    expect(s.every((v, e) => v !== symmetric[e])).toBe(whole);
  });
});

describe('attention', () => {
  // heads, heads a key head, dimensions, window, slopes, cap
  it.each([
    [6, 3, 4, NO_WINDOW, 0, 0],
    [4, 2, 20, 5, 1, 0],
    [2, 1, 64, NO_WINDOW, 1, 0.7],
    [3, 3, 88, 3, 0, 30],
  ])(
    '%i heads, %i a key head, %i dimensions, window %i',
    async (heads, heads_per_key, dim, window, sloped, cap) => {
      // rows 0 … 9 from position 0, keys from row 1 on; rows 10 … 12 from position 6, keys from row 14 on
      const groups = [
        [0, 4, 1, 0],
        [4, 4, 1, 4],
        [8, 2, 1, 8],
        [10, 3, 14, 6],
        [13, 1, 14, 9],
      ];
      const line_width = 12;
      const shared = { groups: 4, group_begin: 1, heads, heads_per_key, dim4: dim / 4, line_width, window };
      const table = () => Uint32Array.from(groups.flat());
      const scores = await close(
        attentionScores,
        () => ({
          q: floats(14 * heads * dim, 9),
          k: floats(24 * (heads / heads_per_key) * dim, 10),
          groups: table(),
          slopes: floats(heads, 11),
          scores: new Float32Array(4 * heads * 4 * line_width),
        }),
        { ...shared, sloped, scale: 0.3, cap },
        'scores',
      );
      // as the softmax leaves them: nothing beyond a group's last key
      const shares = scores.map((v, e) => {
        const g = groups[1 + Math.floor(e / (heads * 4 * line_width))]!;
        const first = Math.max(0, g[3]! + 1 - window) & ~3;
        return first + (e % line_width) < g[3]! + g[1]! ? v : 0;
      });
      await close(
        attentionMix,
        () => ({
          shares: shares.slice(),
          v: floats(24 * (heads / heads_per_key) * dim, 12),
          groups: table(),
          y: floats(14 * heads * dim, 13),
        }),
        shared,
      );
    },
  );
});

describe('what goes through rows', () => {
  it.each([
    [0, 0],
    [3, 0],
    [4, 0],
    [6, 0],
    [3, 1],
    [6, 1],
  ])('heads are put where they belong, %i pairs rotated, neighbors %i', async (half, adjacent) => {
    const [rows, heads, head_dim] = [5, 3, 12];
    for (const keep_rows of [0, 1]) {
      await close(
        placeHeads,
        () => ({
          x: floats(rows * 100, 10),
          places: Uint32Array.from([4, 0, 0, 3, 6, 2, 1, 5, 3, 4]),
          angles: floats(6 * 2 * Math.max(half, 1), 11),
          y: new Float32Array(7 * (heads * (head_dim + 1) + 2)),
        }),
        {
          rows,
          heads,
          head_dim,
          half,
          x_begin: 4,
          x_stride: 100,
          head_stride: 16,
          group: 2,
          group_stride: 50,
          adjacent,
          y_begin: 1,
          y_dim: head_dim + 1,
          y_stride: heads * (head_dim + 1) + 2,
          keep_rows,
        },
      );
    }
  });

  it.each([1, 4, 1111])('%i elements are added', async (elements) => {
    const contents = () => ({ x: floats(elements, 12), y: floats(elements, 13) });
    await close(addScaled, contents, { elements, scale: 0.22 });
  });
});
