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
import { ACTIVATION_CODE, activate, capLogits, logSum, norm, normLine } from './activation';
import { attention, attentionLine, placeHeads, placeProjected } from './attention';
import { DTYPE_CODE } from './encoding';
import {
  ATTENTIONS,
  attentionCase,
  LOG_SUM_COLUMNS,
  logSumCase,
  ROW_CASES,
} from './forward-kernels.test.cases';
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

  it.each(ROW_CASES.map((one) => [one.title, one] as const))(
    '%s',
    async (_, { kernel, contents, params, outputs }) => {
      for (const output of outputs) await expectClose(kernel, contents(), params, output);
      if (kernel === normLine) await expectClose(norm, contents(), params);
    },
  );

  it('gather-rows, count-non-finite', async () => {
    const picks = Uint32Array.from([3, 0, 3]);
    await expectClose(
      gatherRows,
      { x: floats(4 * 70, 12), picks, y: new Float32Array(3 * 70) },
      { rows: 3, width: 70 },
    );
    const n = 1111;
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

  it.each(LOG_SUM_COLUMNS)('log-sum of %i columns', async (columns) => {
    const { kernel, contents, params } = logSumCase(columns);
    for (const output of ['sums', 'picked']) await expectClose(kernel, contents(), params, output);
  });
});

describe('attention', () => {
  it.each(ATTENTIONS.map((one) => [attentionCase(one).title, one] as const))('%s', async (_, one) => {
    const { contents, params } = attentionCase(one);
    const y = await expectClose(attention, contents(), params);
    expect(await expectClose(attentionLine, contents(), params)).toEqual(y);
  });
});
