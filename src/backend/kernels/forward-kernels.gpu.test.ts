/**
 * The kernels of the forward pass on both engines. Their transcendental functions and sums cannot agree to the bit, so
 * each states how far it may stray in the header of its WGSL, as a share of the largest value, and is held to that.
 */
import { afterAll, describe, expect, it, vi } from 'vitest';
import type { WeightDtype } from '../../formats/dtype';
import { decodeToF32 } from '../../formats/half';
import { createCpuBackend } from '../cpu/cpu-backend';
import { createGpuBackend } from '../gpu/gpu-backend';
import { wgslOf } from '../gpu/wgsl';
import type { Kernel } from '../kernel';
import {
  ACTIVATION_CODE,
  activate,
  capLogits,
  LOG_SUM_SEGMENT,
  logSum,
  NORM_CODE,
  norm,
  normLine,
} from './activation';
import { attention, attentionLine, placeHeads, placeProjected } from './attention';
import { DTYPE_CODE } from './encoding';
import { after, comparison, floats, packed, tolerance } from './forward-kernels.test.fixture';
import { sharedGpu } from './kernels.test.support';
import { type MatmulForm, matmul, matmulFew } from './matmul';
import { embed, gatherRows } from './rows';
import { countNonFinite } from './statistics';
import { addScaled } from './sums';

const FORMS = Object.keys(matmul) as MatmulForm[];
const FEW = Object.keys(matmulFew) as (keyof typeof matmulFew)[];
const DTYPES: WeightDtype[] = ['F32', 'F16', 'BF16'];
const kernels = [
  activate,
  addScaled,
  attention,
  attentionLine,
  capLogits,
  countNonFinite,
  embed,
  gatherRows,
  logSum,
  norm,
  normLine,
  placeHeads,
  placeProjected,
  ...FORMS.flatMap((form) => DTYPES.map((dtype) => matmul[form][dtype])),
  ...FEW.flatMap((form) => DTYPES.map((dtype) => matmulFew[form][dtype])),
] as unknown as Kernel[];

const gpu = await sharedGpu();
const cpu = createCpuBackend();
const expectClose = comparison(cpu, () => gpu);

/** A device that asks for no optional feature. */
const plain = await (() => {
  const { requestDevice } = GPUAdapter.prototype;
  const asked = vi.spyOn(GPUAdapter.prototype, 'requestDevice').mockImplementationOnce(function bare(
    this: GPUAdapter,
    descriptor,
  ) {
    return requestDevice.call(this, { ...descriptor, requiredFeatures: [] });
  });
  return createGpuBackend().finally(() => asked.mockRestore());
})();
const expectPlain = comparison(cpu, () => plain);
afterAll(() => plain.close());

describe.each(kernels.map((k) => [k.id, k] as const))('%s', (_, kernel) => {
  it('has a tolerance', () => {
    expect(tolerance(kernel)).toBeGreaterThanOrEqual(0);
    expect(tolerance(kernel)).toBeLessThan(1e-5);
  });
});

describe('the linear layer', () => {
  // rows, inputs, outputs: straddling the 4, 8 and 64 of the forms and the 32 of the tile's steps
  const SHAPES = [
    [1, 132, 70],
    [2, 36, 9],
    [9, 40, 65],
    [66, 352, 67],
  ] as const;
  const cases = FORMS.flatMap((form) =>
    SHAPES.flatMap((shape) => DTYPES.map((d) => [form, d, ...shape] as const)),
  );

  it.each(cases)('%s %s [%i, %i] → %i', async (form, dtype, rows, inputs, outputs) => {
    const x = floats(rows * inputs, 1);
    // three rows ahead that do not belong to it
    const w = floats((3 + outputs) * inputs, 2);
    const bias = floats(3 + outputs, 3);
    const y = floats(rows * (outputs + 5), 4);
    const params = {
      rows,
      outputs,
      inputs4: inputs / 4,
      w_first: 3,
      x_stride4: inputs / 4,
      y_stride: outputs + 5,
      y_begin: 2,
      add: rows % 2,
      biased: outputs % 2,
      scale: 0.5,
    };
    const got = await expectClose(matmul[form][dtype], { weights: packed(w, dtype), x, bias, y }, params);
    // against the definition, at the corners
    const stored = new Float32Array(w.length);
    decodeToF32(packed(w, dtype), dtype, stored);
    for (const [r, o] of [
      [0, 0],
      [rows - 1, outputs - 1],
      [rows >> 1, outputs >> 1],
    ] as const) {
      let sum = 0;
      for (let k = 0; k < inputs; k++) sum += x[r * inputs + k]! * stored[(3 + o) * inputs + k]!;
      const at = r * (outputs + 5) + 2 + o;
      const wanted = (rows % 2 ? y[at]! : 0) + (outputs % 2 ? bias[3 + o]! : 0) + 0.5 * sum;
      expect(got[at]).toBeCloseTo(wanted, 4);
    }
    expect(got[1]).toBe(y[1]);
    expect(got.at(-1)).toBe(y.at(-1));
  });

  // rows, inputs, outputs: straddling the four, eight and 64 of the forms
  const FEW_SHAPES = [
    [1, 132, 70],
    [2, 36, 9],
    [4, 352, 67],
  ] as const;
  const GATES = [0, ...new Set(Object.values(ACTIVATION_CODE).map((code) => 1 + code))];
  const fewCases = FEW.flatMap((form) =>
    FEW_SHAPES.flatMap((shape) => DTYPES.map((d) => [form, d, ...shape] as const)),
  );

  it.each(fewCases)(
    '%s %s [%i, %i] → %i, with norm, gate, update and summands',
    async (form, dtype, rows, inputs, outputs) => {
      for (const norm_kind of form === 'line' ? [0] : [0, 1, 2]) {
        for (const gate of norm_kind === 0 ? GATES : GATES.slice(0, 2)) {
          const [summands, w_step] = [norm_kind === 2 ? 1 : 3, 2 * outputs + 1];
          const given = [
            matmulFew[form][dtype],
            {
              weights: packed(floats((3 + summands * w_step) * inputs, 2), dtype),
              x: floats(rows * (inputs + 4), 1, 3),
              bias: floats(3 + summands * w_step, 3),
              norm: floats(inputs, 5),
              narrow: floats(rows * 3 * 8, 6),
              out_of: floats((3 + 2 * outputs) * 8, 7),
              y: floats(rows * (outputs + 5), 4),
            },
            {
              rows,
              outputs,
              inputs4: inputs / 4,
              w_first: 3,
              x_stride4: inputs / 4 + 1,
              y_stride: outputs + 5,
              y_begin: 2,
              add: norm_kind % 2,
              biased: rows % 2,
              norm_kind,
              gate,
              scale: 0.5,
              epsilon: 1e-3,
              ...{ layers: 3, second: 3, third: outputs >> 1, rank4: norm_kind === 2 ? 0 : 2 },
              update_scale: 0.3,
              ...{ summands, w_step },
            },
          ] as const;
          await expectClose(...given);
          if (form === 'vector') await expectPlain(...given);
        }
      }
    },
  );
});

it('subgroups add up where the device has them, and shared memory where not', async () => {
  const { features } = (await navigator.gpu.requestAdapter())!;
  expect(features.has('subgroups')).toBe(true);
  const modules = vi.spyOn(GPUDevice.prototype, 'createShaderModule');
  const kernel = { ...matmulFew.vector.F32, id: 'matmul-vector-f32-anew' } as unknown as Kernel;
  const zeros = Object.fromEntries(Object.keys(kernel.params).map((name) => [name, 0]));
  const contents = Object.fromEntries(Object.keys(kernel.buffers).map((name) => [name, floats(16, 1)]));
  for (const engine of [gpu, plain])
    await after(engine, kernel, contents, { ...zeros, rows: 1, outputs: 4, inputs4: 1, summands: 1 }, 'y');
  const compiled = modules.mock.calls.map(([{ code }]) => code);
  expect(compiled).toEqual([wgslOf(kernel, true), wgslOf(kernel)]);
  expect(compiled.map((code) => /^enable subgroups;/.test(code))).toEqual([true, false]);
  modules.mockRestore();
});

describe('rows', () => {
  it.each(DTYPES)('embed %s in two tiles', async (dtype) => {
    const [rows, width] = [9, 33];
    const ids = Uint32Array.from([0, 19, 5, 5, 7, 12, 8, 2, 1]);
    const table = packed(floats(8 * width, 5), dtype);
    const params = { rows, width, stride: width + 3, dtype: DTYPE_CODE[dtype], first: 5, count: 8 };
    const y = floats(rows * (width + 3), 6);
    const once = await expectClose(embed, { table, ids, y }, { ...params, add: 0, scale: 6.5 });
    // ids outside the tile leave their rows alone
    expect(once.slice(0, width + 3)).toEqual(y.slice(0, width + 3));
    await expectClose(embed, { table, ids, y }, { ...params, add: 1, scale: 1 });
  });

  it.each(Object.entries(NORM_CODE))('norm %s', async (_, kind) => {
    for (const [rows, groups, width] of [
      [5, 1, 200],
      [33, 4, 16],
    ] as const) {
      const stride = groups * width + 8;
      for (const kernel of [norm, normLine]) {
        await expectClose(
          kernel,
          {
            x: floats(rows * stride, 7),
            weight: floats(width, 8),
            bias: floats(width, 9),
            y: new Float32Array(rows * groups * width),
          },
          {
            rows,
            groups,
            group_stride4: width / 4,
            width4: width / 4,
            x_begin4: 1,
            x_stride4: stride / 4,
            y_stride4: (groups * width) / 4,
            kind,
            biased: kind >= NORM_CODE.layer ? 1 : 0,
            epsilon: 1e-3,
          },
        );
      }
    }
  });

  it.each([
    [0, 0],
    [3, 0],
    [4, 0],
    [3, 1],
    [4, 1],
  ])('place-heads, %i pairs rotate, neighbors %i', async (half, adjacent) => {
    const [rows, heads, dim] = [6, 3, 8];
    const places = Uint32Array.from([4, 0, 5, 1, 6, 2, 0, 3, 1, 4, 2, 5]);
    for (const keep_rows of [0, 1]) {
      await expectClose(
        placeHeads,
        {
          x: floats(rows * 80, 10),
          places,
          angles: floats(6 * 2 * Math.max(half, 1), 11),
          y: new Float32Array(7 * (heads * (dim + 1) + 2)),
        },
        {
          rows,
          heads,
          head_dim: dim,
          half,
          x_begin: 4,
          x_stride: 80,
          head_stride: 12,
          // two heads, then the third elsewhere
          group: 2,
          group_stride: 40,
          adjacent,
          y_begin: 1,
          y_dim: dim + 1,
          y_stride: heads * (dim + 1) + 2,
          keep_rows,
        },
      );
    }
  });

  it.each([
    [0, 0],
    [3, 0],
    [4, 1],
  ])('place-projected, %i pairs rotate, neighbors %i', async (half, adjacent) => {
    const [rows, heads, key_heads, head_dim] = [5, 4, 2, 8];
    const contents = {
      x: floats(rows * 84, 10),
      places: Uint32Array.from([4, 0, 6, 3, 0, 2, 1, 5, 3, 4]),
      angles: floats(6 * 2 * Math.max(half, 1), 11),
      queries: new Float32Array(rows * heads * head_dim),
      keys: new Float32Array(7 * key_heads * head_dim),
      values: new Float32Array(7 * key_heads * head_dim),
    };
    const params = {
      ...{ rows, heads, key_heads, head_dim, half, adjacent, x_stride: 84 },
      ...{ query_begin: 1, query_stride: 9, key_begin: 40, key_stride: 10, value_begin: 60, value_stride: 8 },
    };
    for (const output of ['queries', 'keys', 'values'])
      await expectClose(placeProjected, contents, params, output);
  });

  it('gather-rows, add-scaled, cap-logits, count-non-finite', async () => {
    const picks = Uint32Array.from([3, 0, 3]);
    await expectClose(
      gatherRows,
      { x: floats(4 * 70, 12), picks, y: new Float32Array(3 * 70) },
      { rows: 3, width: 70 },
    );
    const n = 1111;
    await expectClose(addScaled, { x: floats(n, 13), y: floats(n, 14) }, { elements: n, scale: 0.22 });
    for (const cap of [0, 3]) {
      await expectClose(capLogits, { x: floats(n, 15, 40) }, { elements: n, factor: 0.7, cap }, 'x');
    }
    const x = new Uint32Array(floats(n, 16).buffer);
    x.set([0x7fc00000, 0xff800000, 0x7f800001], 500);
    const counts = Uint32Array.from([1, 2]);
    for (const engine of [cpu, gpu]) {
      const bytes = await after(
        engine,
        countNonFinite as unknown as Kernel,
        { x, counts },
        { elements: n, slot: 1 },
        'counts',
      );
      expect([...new Uint32Array(bytes.buffer)]).toEqual([1, 5]);
    }
  });

  it.each(Object.entries(ACTIVATION_CODE))('activate %s', async (_, kind) => {
    const [rows, inner] = [5, 67];
    // beyond ±88 a careless exponential overflows
    const x = floats(rows * 2 * inner, 17, 8);
    x.set([0, -0, 100, -100, 1e-4, -1e-4, 0.7, -0.7]);
    for (const gated of [0, 1]) {
      await expectClose(
        activate,
        { x, y: new Float32Array(rows * 68) },
        { rows, inner, x_stride: 2 * inner, y_stride: 68, gated, kind },
      );
    }
  });

  it('log-sum', async () => {
    const [rows, columns, stride] = [3, 2 * LOG_SUM_SEGMENT + 77, 2200];
    const segments = Math.ceil(columns / LOG_SUM_SEGMENT);
    const contents = {
      logits: floats(rows * stride, 18, 30),
      targets: Uint32Array.from([100, 100 + columns - 1, 99]),
      sums: new Float32Array(2 + rows * segments * 2),
      picked: Float32Array.from([-1, -1, -1]),
    };
    const params = { rows, columns, stride, first_column: 100, sums_begin: 2, factor: 1 };
    await expectClose(logSum, contents, params, 'sums');
    const picked = await expectClose(logSum, contents, params, 'picked');
    expect([...picked]).toEqual([contents.logits[0], contents.logits[stride + columns - 1], -1]);
  });
});
