/** The kernels of the forward pass in WebAssembly, with sums in f32, against their formulas in f64. */
import { describe, expect, it } from 'vitest';
import type { WeightDtype } from '../../formats/dtype';
import { f16ToF32 } from '../../formats/half';
import type { Kernel } from '../kernel';
import { ACTIVATION_CODE } from '../kernels/activation';
import { DTYPE_CODE } from '../kernels/encoding';
import {
  ATTENTIONS,
  attentionCase,
  LOG_SUM_COLUMNS,
  logSumCase,
  ROW_CASES,
} from '../kernels/forward-kernels.test.cases';
import { after as contentsAfter, floats, packed } from '../kernels/forward-kernels.test.fixture';
import { matmul, matmulFew, matmulPacked, PANEL, packPanels } from '../kernels/matmul';
import { inputGram } from '../kernels/products';
import { createCpuBackend } from './cpu-backend';
import { closeToReference } from './references.test.support';

const engine = createCpuBackend();

const close = closeToReference(engine);

const FORMS = { block: matmul.block, line: matmulFew.line };
/** What the forms for few rows ask for besides: no norm, no gate, no update. */
const NO_UPDATE = { layers: 0, second: 0, third: 0, rank4: 0, update_scale: 0, summands: 1, w_step: 0 };
const PLAIN = { norm_kind: 0, gate: 0, epsilon: 0, ...NO_UPDATE };
const NO_NORM = { norm: new Float32Array(4), narrow: new Float32Array(4), out_of: new Float32Array(4) };

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
        bias: floats(outputs + 2, 3),
        y: floats(rows * (outputs + 3) + 2, 4),
        ...NO_NORM,
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
      const y = await close(FORMS[form][dtype], contents, { ...params, ...PLAIN });
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
        ...NO_NORM,
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
      const kernel = FORMS[form][dtype] as unknown as Kernel;
      return contentsAfter(engine, kernel, contents, { ...params, ...PLAIN }, 'y');
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
        bias: floats(first + outputs, 23),
        y: floats(rows * (outputs + 3) + 2, 24),
      });
      const run = (kernel: unknown, of: Uint8Array<ArrayBuffer>) =>
        contentsAfter(engine, kernel as Kernel, contents(of), params, 'y');
      expect(await run(matmulPacked[dtype], laidOut)).toEqual(await run(matmul.block[dtype], weights));
    }
  });

  it.each(
    dtypes.flatMap((dtype) =>
      [
        [1, 896, 37],
        [2, 36, 1030],
        [3, 260, 8],
      ].map(([rows, inputs, outputs]) => [dtype, rows!, inputs!, outputs!] as const),
    ),
  )(
    '%s: few rows with norm, gate, update and summands, [%i, %i] → %i',
    async (dtype, rows, inputs, outputs) => {
      for (const norm_kind of [0, 1, 2]) {
        for (const gate of [0, 1 + ACTIVATION_CODE.silu, 1 + ACTIVATION_CODE.gelu_erf]) {
          const [summands, w_step] = [1 + norm_kind, 2 * outputs + 1];
          const contents = () => ({
            weights: packed(floats((2 + summands * w_step) * inputs, 31), dtype),
            x: floats(rows * (inputs + 4), 32, 3),
            bias: floats(2 + summands * w_step, 33),
            norm: floats(inputs, 34),
            narrow: floats(rows * 3 * 8, 36),
            out_of: floats((2 + 2 * outputs) * 8, 37),
            y: floats(rows * (outputs + 3), 35),
          });
          const params = {
            ...{ rows, outputs, inputs4: inputs / 4, w_first: 2, x_stride4: inputs / 4 + 1 },
            ...{ y_stride: outputs + 3, y_begin: 1, add: gate ? 0 : 1, biased: 1, scale: 0.75 },
            ...{ norm_kind, gate, epsilon: 1e-5, update_scale: 0.3 },
            ...{ layers: 3, second: 3, third: outputs >> 1, rank4: norm_kind === 1 ? 0 : 2 },
            ...{ summands, w_step },
          };
          await close(matmulFew.line[dtype], contents, params);
        }
      }
    },
  );

  it('widens every half exactly', async () => {
    const halves = Array.from({ length: 65536 }, (_, h) => h).filter((h) => (h & 0x7c00) !== 0x7c00);
    const weights = new Uint16Array(halves.length * 4);
    for (const [o, h] of halves.entries()) weights[4 * o] = h;
    for (const form of ['block', 'line'] as const) {
      const y = await contentsAfter(
        engine,
        FORMS[form].F16 as unknown as Kernel,
        {
          weights: new Uint8Array(weights.buffer),
          x: Float32Array.of(1, 0, 0, 0),
          bias: new Float32Array(4),
          y: new Float32Array(halves.length),
          ...NO_NORM,
        },
        {
          ...PLAIN,
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
          FORMS[form][dtype] as unknown as Kernel,
          {
            weights: packed(weights, dtype),
            x: new Float32Array(8).fill(1),
            bias: new Float32Array(4),
            y: new Float32Array(8),
            ...NO_NORM,
          },
          {
            ...PLAIN,
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

describe('rows', () => {
  it.each(ROW_CASES.map((one) => [one.title, one] as const))(
    '%s',
    async (_, { kernel, contents, params, outputs }) => {
      for (const output of outputs) await close(kernel, contents, params, output);
    },
  );

  it.each(LOG_SUM_COLUMNS)('log-sum-exp of %i columns', async (columns) => {
    const { kernel, contents, params } = logSumCase(columns);
    await close(kernel, contents, params, 'sums');
    const [first, last, none] = await close(kernel, contents, params, 'picked');
    const { logits } = contents();
    expect([first, last, none]).toEqual([logits![0], logits![columns + 1 + columns - 1], -1]);
  });
});

describe('attention', () => {
  it.each(ATTENTIONS.map((one) => [attentionCase(one).title, one] as const))('%s', async (_, one) => {
    const { kernel, contents, params } = attentionCase(one);
    const y = await close(kernel, contents, params);
    // a row alone in its group has the bits it has beside others
    const alone = attentionCase(one, 5);
    const bytes = await contentsAfter(engine, kernel as Kernel, alone.contents(), alone.params, 'y');
    const [heads, , , value4] = one;
    const row = [5 * heads * 4 * value4, 6 * heads * 4 * value4];
    expect(new Float32Array(bytes.buffer).slice(...row)).toEqual(y.slice(...row));
  });
});
