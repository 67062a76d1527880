/**
 * The kernels of the forward pass on both engines. Their transcendental functions and sums cannot agree to the bit, so
 * each states how far it may stray in the header of its WGSL, as a share of the largest value, and is held to that.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCpuEngine } from '../../cpu/cpu-engine';
import type { WeightDtype } from '../../formats/dtype';
import { decodeToF32, encodeFromF32 } from '../../formats/half';
import { createGpuEngine } from '../../gpu/gpu-engine';
import type { ComputeEngine } from '../engine';
import type { Kernel } from '../kernel';
import { philox } from '../philox';
import { ACTIVATION_CODE, activate } from './activate';
import { addScaled } from './add-scaled';
import { NO_WINDOW } from './attention-groups';
import { attentionMix } from './attention-mix';
import { attentionScores } from './attention-scores';
import { attentionSoftmax, attentionSoftmaxLine } from './attention-softmax';
import { capLogits } from './cap-logits';
import { countNonFinite } from './count-non-finite';
import { DTYPE_CODE } from './decode';
import { embed } from './embed';
import { gatherRows } from './gather-rows';
import { LOG_SUM_SEGMENT, logSum } from './log-sum';
import { type MatmulForm, matmul, matmulWork } from './matmul';
import { NORM_CODE, norm, normLine } from './norm';
import { placeHeads } from './place-heads';

const FORMS = Object.keys(matmul) as MatmulForm[];
const DTYPES: WeightDtype[] = ['F32', 'F16', 'BF16'];
const kernels = [
  activate,
  addScaled,
  attentionMix,
  attentionScores,
  attentionSoftmax,
  attentionSoftmaxLine,
  capLogits,
  countNonFinite,
  embed,
  gatherRows,
  logSum,
  norm,
  normLine,
  placeHeads,
  ...FORMS.flatMap((form) => DTYPES.map((dtype) => matmul[form][dtype])),
] as unknown as Kernel[];

let gpu: ComputeEngine;
const cpu = createCpuEngine();
beforeAll(async () => {
  gpu = await createGpuEngine();
});
afterAll(() => gpu.close());

/** Uniform in (−size, size). */
function floats(n: number, seed: number, size = 1): Float32Array<ArrayBuffer> {
  const words = new Uint32Array(4);
  return Float32Array.from({ length: n }, (_, i) => {
    philox(i, 0, seed, 3, words);
    return (words[0]! / 2 ** 31 - 1) * size;
  });
}

function packed(values: Float32Array, dtype: WeightDtype): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(values.length * (dtype === 'F32' ? 4 : 2));
  encodeFromF32(values, dtype, bytes);
  return bytes;
}

type Contents = Record<
  string,
  Float32Array<ArrayBuffer> | Uint32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>
>;

async function after(
  engine: ComputeEngine,
  kernel: Kernel,
  contents: Contents,
  params: Record<string, number>,
  work: { groups: number; elements: number },
  output: string,
): Promise<Uint8Array<ArrayBuffer>> {
  const buffers = Object.fromEntries(
    Object.entries(contents).map(([name, data]) => {
      const buffer = engine.allocate(Math.ceil(data.byteLength / 16) * 16, name);
      const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
      const even = new Uint8Array(Math.ceil(bytes.length / 4) * 4);
      even.set(bytes);
      engine.write(buffer, 0, even);
      return [name, buffer];
    }),
  );
  engine.run(kernel, { params, buffers, ...work });
  const [bytes] = await engine.read([{ buffer: buffers[output]!, byteLength: contents[output]!.byteLength }]);
  for (const b of Object.values(buffers)) engine.free(b);
  return bytes!;
}

/** Runs on both engines and compares one buffer; returns the CPU's. */
async function expectClose(
  kernel: object,
  contents: Contents,
  params: Record<string, number>,
  work: { groups: number; elements: number },
  output = 'y',
): Promise<Float32Array> {
  const k = kernel as Kernel;
  const a = new Float32Array((await after(cpu, k, contents, params, work, output)).buffer);
  const b = new Float32Array((await after(gpu, k, contents, params, work, output)).buffer);
  const largest = a.reduce((m, v) => Math.max(m, Math.abs(v)), 0);
  const worst = a.reduce((m, v, i) => Math.max(m, Math.abs(v - b[i]!)), 0);
  expect(largest).toBeGreaterThan(0);
  expect(worst / largest, `${k.id}: ${worst} of ${largest}`).toBeLessThanOrEqual(tolerance(k));
  expect(b.every(Number.isFinite)).toBe(true);
  return a;
}

function tolerance(kernel: Kernel): number {
  return Number(/Tolerance: ([\d.e-]+)/.exec(kernel.wgsl)![1]!.replace(/\.$/, ''));
}

const each = (n: number) => ({ groups: n, elements: n });
const inGroups = (n: number, size: number) => ({ groups: Math.ceil(n / size), elements: n });

describe.each(kernels.map((k) => [k.id, k] as const))('%s', (_, kernel) => {
  it('declares the same parameters and buffers twice, and its tolerance', () => {
    const struct = /struct Params \{([^}]*)\}/.exec(kernel.wgsl)![1]!;
    const fields = [...struct.matchAll(/(\w+): ([\w<>]+),/g)].map((m) => [m[1], m[2]]);
    expect(fields[0]).toEqual(['stamp', 'vec4<u32>']);
    expect(fields.slice(1)).toEqual(Object.entries(kernel.params));
    const bindings = [...kernel.wgsl.matchAll(/@binding\((\d)\) var<storage, (read|read_write)> (\w+):/g)]
      .filter((m) => m[1] !== '9')
      .map((m) => [Number(m[1]), m[3], m[2]]);
    expect(bindings).toEqual(
      Object.entries(kernel.buffers).map(([name, access], i) => [i + 1, name, access]),
    );
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
    const bias = floats(outputs, 3);
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
    const got = await expectClose(
      matmul[form][dtype],
      { weights: packed(w, dtype), x, bias, y },
      params,
      matmulWork(form, rows, outputs),
    );
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
      const wanted = (rows % 2 ? y[at]! : 0) + (outputs % 2 ? bias[o]! : 0) + 0.5 * sum;
      expect(got[at]).toBeCloseTo(wanted, 4);
    }
    expect(got[1]).toBe(y[1]);
    expect(got.at(-1)).toBe(y.at(-1));
  });
});

describe('rows', () => {
  it.each(DTYPES)('embed %s in two tiles', async (dtype) => {
    const [rows, width] = [9, 33];
    const ids = Uint32Array.from([0, 19, 5, 5, 7, 12, 8, 2, 1]);
    const table = packed(floats(8 * width, 5), dtype);
    const params = { rows, width, stride: width + 3, dtype: DTYPE_CODE[dtype], first: 5, count: 8 };
    const y = floats(rows * (width + 3), 6);
    const once = await expectClose(embed, { table, ids, y }, { ...params, add: 0, scale: 6.5 }, each(rows));
    // ids outside the tile leave their rows alone
    expect(once.slice(0, width + 3)).toEqual(y.slice(0, width + 3));
    await expectClose(embed, { table, ids, y }, { ...params, add: 1, scale: 1 }, each(rows));
  });

  it.each(Object.entries(NORM_CODE))('norm %s', async (_, kind) => {
    for (const [rows, groups, width] of [
      [5, 1, 200],
      [33, 4, 16],
    ] as const) {
      const stride = groups * width + 8;
      const all = rows * groups;
      for (const [kernel, work] of [
        [norm, each(all)],
        [normLine, inGroups(all, 64)],
      ] as const) {
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
            biased: kind === NORM_CODE.layer ? 1 : 0,
            epsilon: 1e-3,
          },
          work,
        );
      }
    }
  });

  it.each([0, 3, 4])('place-heads, %i pairs rotate', async (half) => {
    const [rows, heads, dim] = [6, 3, 8];
    const places = Uint32Array.from([4, 0, 5, 1, 6, 2, 0, 3, 1, 4, 2, 5]);
    for (const keep_rows of [0, 1]) {
      await expectClose(
        placeHeads,
        {
          x: floats(rows * 80, 10),
          places,
          angles: floats(6 * 2 * Math.max(half, 1), 11),
          y: new Float32Array(7 * heads * dim),
        },
        { rows, heads, head_dim: dim, half, x_begin: 4, x_stride: 80, head_stride: 24, keep_rows },
        each(rows),
      );
    }
  });

  it('gather-rows, add-scaled, cap-logits, count-non-finite', async () => {
    const picks = Uint32Array.from([3, 0, 3]);
    await expectClose(
      gatherRows,
      { x: floats(4 * 70, 12), picks, y: new Float32Array(3 * 70) },
      { rows: 3, width: 70 },
      each(3),
    );
    const n = 1111;
    await expectClose(
      addScaled,
      { x: floats(n, 13), y: floats(n, 14) },
      { elements: n, scale: 0.22 },
      inGroupsOf(n),
    );
    for (const cap of [0, 3]) {
      await expectClose(
        capLogits,
        { x: floats(n, 15, 40) },
        { elements: n, factor: 0.7, cap },
        inGroupsOf(n),
        'x',
      );
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
        { groups: Math.ceil(n / 1024), elements: n },
        'counts',
      );
      expect([...new Uint32Array(bytes.buffer)]).toEqual([1, 5]);
    }
  });

  const inGroupsOf = (n: number) => ({ groups: Math.ceil(n / 256), elements: n });

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
        inGroupsOf(rows * inner),
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
    const params = { rows, columns, stride, first_column: 100, sums_begin: 2 };
    const work = inGroups(rows * segments, 64);
    await expectClose(logSum, contents, params, work, 'sums');
    const picked = await expectClose(logSum, contents, params, work, 'picked');
    expect([...picked]).toEqual([contents.logits[0], contents.logits[stride + columns - 1], -1]);
  });
});

describe('attention', () => {
  // heads, heads per key head, head_dim / 4, window, cap, slopes
  const cases = [
    [6, 3, 2, NO_WINDOW, 0, 0],
    [4, 1, 6, NO_WINDOW, 2, 0],
    [10, 1, 1, NO_WINDOW, 0, 1],
    [4, 2, 4, 5, 0, 0],
  ] as const;

  it.each(cases)(
    '%i heads, %i a key head, 4·%i dims, window %i, cap %f',
    async (heads, share, dim4, window, cap, sloped) => {
      // two sequences: 10 rows from position 0 with keys from row 0 on, 3 rows from position 6 with keys from row 14 on
      const sequences = [
        { row: 0, count: 10, origin: 0, position: 0 },
        { row: 10, count: 3, origin: 14, position: 6 },
      ];
      const groups = sequences.flatMap(({ row, count, origin, position }) =>
        Array.from({ length: Math.ceil(count / 4) }, (_, i) => [
          row + 4 * i,
          Math.min(4, count - 4 * i),
          origin,
          position + 4 * i,
        ]),
      );
      const [rows, dim, span, skipped] = [13, dim4 * 4, 12, 1];
      const lines = (groups.length - skipped) * heads * 4;
      const shared = { groups: groups.length - skipped, group_begin: skipped, heads, span, window };
      const table = Uint32Array.from(groups.flat());
      const q = floats(rows * heads * dim, 20, 3);
      const k = floats(24 * (heads / share) * dim, 21, 3);
      const v = floats(k.length, 22);
      const slopes = floats(heads, 23);
      const scores = await expectClose(
        attentionScores,
        { q, k, groups: table, slopes, scores: new Float32Array(lines * span) },
        { ...shared, share, dim4, sloped, scale: 0.3, cap },
        inGroups((lines / 4) * (span / 4), 64),
        'scores',
      );
      const before = { groups: table, scores: scores.slice() };
      const shares = await expectClose(attentionSoftmax, before, shared, each(lines), 'scores');
      const again = await expectClose(attentionSoftmaxLine, before, shared, inGroups(lines, 64), 'scores');
      expect(again).toEqual(shares);
      const y = await expectClose(
        attentionMix,
        { shares: shares.slice(), v, groups: table, y: new Float32Array(q.length) },
        { ...shared, share, dim4 },
        inGroups((lines / 4) * dim4, 64),
      );
      // against the definition
      for (const [row, rowsOfGroup, origin, position] of groups.slice(skipped) as [
        number,
        number,
        number,
        number,
      ][]) {
        for (let i = 0; i < rowsOfGroup; i++) {
          for (const h of [0, heads - 1]) {
            const keys = Array.from(
              { length: Math.min(position + i + 1, window) },
              (_, j) => position + i - j,
            );
            const at = (key: number) => ((origin + key) * (heads / share) + Math.floor(h / share)) * dim;
            const weights = keys.map((key) => {
              let sum = 0;
              for (let d = 0; d < dim; d++) sum += q[((row + i) * heads + h) * dim + d]! * k[at(key) + d]!;
              const capped = cap > 0 ? cap * Math.tanh((sum * 0.3) / cap) : sum * 0.3;
              return Math.exp(capped + sloped * slopes[h]! * key);
            });
            const total = weights.reduce((a, b) => a + b, 0);
            const wanted = keys.reduce((sum, key, j) => sum + (weights[j]! / total) * v[at(key) + 1]!, 0);
            expect(y[((row + i) * heads + h) * dim + 1]).toBeCloseTo(wanted, 4);
          }
        }
      }
    },
  );
});
