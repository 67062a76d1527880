/** What the tools of image models train beside LoRA, in a checkpoint, against its formula over whole matrices in f64. */
import { describe, expect, it } from 'vitest';
import { loraFile, scalar, tensor, type Values } from './image-loras';
import { mergeInNode, planInNode } from './merge-in-node';

type Matrix = number[][];

const LINEAR = 'model.diffusion_model.input_blocks.4.1.proj_in.weight';
const CONV = 'model.diffusion_model.input_blocks.4.0.in_layers.2.weight';
const [PROJ, KERNEL] = ['lora_unet_input_blocks_4_1_proj_in', 'lora_unet_input_blocks_4_0_in_layers_2'];
const base: Values = { [LINEAR]: tensor(1, 8, 12), [CONV]: tensor(2, 8, 6, 3, 3) };

/** A stored tensor as a matrix: all but its first dimension are columns. */
function matrix({ shape, values }: Values[string]): Matrix {
  const columns = values.length / shape[0]!;
  return Array.from({ length: shape[0]! }, (_, r) => [...values.subarray(r * columns, (r + 1) * columns)]);
}
const map = (a: Matrix, to: (value: number, row: number, column: number) => number) =>
  a.map((row, r) => row.map((value, c) => to(value, r, c)));
const plus = (a: Matrix, b: Matrix) => map(a, (value, r, c) => value + b[r]![c]!);
const times = (a: Matrix, b: Matrix) =>
  a.map((row) => b[0]!.map((_, c) => row.reduce((sum, value, k) => sum + value * b[k]![c]!, 0)));
const kron = (a: Matrix, b: Matrix) =>
  a.flatMap((row) => b.map((own) => row.flatMap((value) => own.map((other) => value * other))));
const norm = (values: readonly number[]) => Math.sqrt(values.reduce((sum, v) => sum + v * v, 0));

/** Merges the adapter with weight 1 and compares the one tensor that it changes. */
async function check(adapter: Values, name: string, wanted: Matrix, weights = base) {
  const folders = { base: loraFile('base', weights), one: loraFile('one', adapter) };
  const text =
    'merge_method: task_arithmetic\nbase_model: base\nmodels: [{model: base+one, parameters: {weight: 1}}]\n';
  const { tensors } = await mergeInNode(text, '.', folders);
  for (const [key, { values }] of tensors) {
    const want = key === name ? wanted.flat() : [...weights[key]!.values];
    const size = Math.max(...want.map(Math.abs));
    const worst = values.reduce((most, v, i) => Math.max(most, Math.abs(v - want[i]!)), 0);
    expect(worst / size, key).toBeLessThan(key === name ? 3e-6 : Number.MIN_VALUE);
  }
}

describe.each([
  ['a linear layer', LINEAR, PROJ, 12],
  ['a convolution', CONV, KERNEL, 54],
] as const)('of %s', (_, name, module, columns) => {
  const weight = matrix(base[name]!);

  it('LoHa: W + α/r · (A₁B₁) ∘ (A₂B₂)', async () => {
    const parts = [tensor(11, 8, 3), tensor(12, 3, columns), tensor(13, 8, 3), tensor(14, 3, columns)];
    const [a1, b1, a2, b2] = parts.map(matrix) as [Matrix, Matrix, Matrix, Matrix];
    const second = times(a2, b2);
    const change = map(times(a1, b1), (v, r, c) => (v * second[r]![c]! * 2) / 3);
    const keys = ['hada_w1_a', 'hada_w1_b', 'hada_w2_a', 'hada_w2_b'];
    const adapter = Object.fromEntries(keys.map((key, i) => [`${module}.${key}`, parts[i]!]));
    await check({ ...adapter, [`${module}.alpha`]: scalar(2) }, name, plus(weight, change));
  });

  it('LoKr with one factored matrix: W + α/r · W₁ ⊗ (A·B)', async () => {
    const [w1, a, b] = [tensor(21, 2, 2), tensor(22, 4, 3), tensor(23, 3, columns / 2)];
    const change = map(kron(matrix(w1), times(matrix(a), matrix(b))), (v) => v / 3);
    const adapter = { lokr_w1: w1, lokr_w2_a: a, lokr_w2_b: b, alpha: scalar(1) };
    await check(named(module, adapter), name, plus(weight, change));
  });

  it('LoKr of whole matrices: their α does not count', async () => {
    const [w1, w2] = [tensor(24, 4, 2), tensor(25, 2, columns / 2)];
    const shaped = name === CONV ? { ...w2, shape: [2, 3, 3, 3] } : w2;
    const adapter = { lokr_w1: w1, lokr_w2: shaped, alpha: scalar(7) };
    await check(named(module, adapter), name, plus(weight, kron(matrix(w1), matrix(w2))));
  });

  it.each([
    ['without a limit', 0],
    ['with a norm above its limit', 0.05],
  ])('OFT %s: outputs rotated in blocks, then scaled', async (_, alpha) => {
    const [blocks, rescale] = [tensor(31, 2, 4, 4), tensor(32, 8, 1)];
    const skew = [0, 1].map((k) =>
      Array.from({ length: 4 }, (_, i) =>
        Array.from(
          { length: 4 },
          (_, j) => blocks.values[k * 16 + i * 4 + j]! - blocks.values[k * 16 + j * 4 + i]!,
        ),
      ),
    );
    const size = norm(skew.flat(2));
    const limit = alpha > 0 && size > alpha * 8 ? (alpha * 8) / size : 1;
    expect(limit < 1).toBe(alpha > 0);
    const wanted = skew.flatMap((q, k) => {
      const own = map(q, (v) => v * limit);
      const r = times(plus(unit(4), own), inverse(map(own, (v, i, j) => (i === j ? 1 : 0) - v)));
      return r[0]!.map((_, m) =>
        weight[0]!.map((_, c) => {
          const sum = r.reduce((all, row, n) => all + row[m]! * weight[k * 4 + n]![c]!, 0);
          return rescale.values[k * 4 + m]! * sum;
        }),
      );
    });
    await check(named(module, { oft_blocks: blocks, rescale, alpha: scalar(alpha) }), name, wanted);
  });

  it('DoRA with a magnitude an output', async () => {
    const { down, up, sum } = factors(name, columns);
    const m = tensor(43, 8);
    const wanted = map(sum, (v, r) => (v * m.values[r]!) / norm(sum[r]!));
    const shape = name === CONV ? [8, 1, 1, 1] : [8, 1];
    await check(named(module, { ...lora(down, up), dora_scale: { ...m, shape } }), name, wanted);
  });

  it('DoRA with a magnitude an input, over outputs and kernel', async () => {
    const { down, up, sum } = factors(name, columns);
    const area = name === CONV ? 9 : 1;
    const m = tensor(44, columns / area);
    const norms = [...m.values].map((_, i) =>
      norm(sum.flatMap((row) => row.slice(i * area, (i + 1) * area))),
    );
    const wanted = map(
      sum,
      (v, _, c) => (v * m.values[Math.floor(c / area)]!) / norms[Math.floor(c / area)]!,
    );
    const shape = name === CONV ? [1, 6, 1, 1] : [1, 12];
    await check(named(module, { ...lora(down, up), dora_scale: { ...m, shape } }), name, wanted);
  });
});

it('LoKr with a kernel between its factors', async () => {
  const [w1, t, a, b] = [tensor(51, 2, 2), tensor(52, 2, 2, 3, 3), tensor(53, 2, 4), tensor(54, 2, 3)];
  const w2 = Array.from({ length: 4 }, (_, p) =>
    Array.from({ length: 27 }, (_, c) => {
      const [r, at] = [Math.floor(c / 9), c % 9];
      let sum = 0;
      for (let i = 0; i < 2; i++)
        for (let j = 0; j < 2; j++)
          sum += t.values[(i * 2 + j) * 9 + at]! * b.values[j * 3 + r]! * a.values[i * 4 + p]!;
      return sum;
    }),
  );
  const adapter = { lokr_w1: w1, lokr_t2: t, lokr_w2_a: a, lokr_w2_b: b, alpha: scalar(1) };
  const change = map(kron(matrix(w1), w2), (v) => v / 2);
  await check(named(KERNEL, adapter), CONV, plus(matrix(base[CONV]!), change));
});

it('LoKr of one of three matrices that are one in the checkpoint', async () => {
  const QKV = 'double_blocks.0.img_attn.qkv.weight';
  const weights = { [QKV]: tensor(61, 12, 4) };
  const [w1, w2] = [tensor(62, 2, 2), tensor(63, 2, 2)];
  const change = kron(matrix(w1), matrix(w2));
  const wanted = map(matrix(weights[QKV]), (v, r, c) => v + (r >= 4 && r < 8 ? change[r - 4]![c]! : 0));
  const adapter = named('lycoris_transformer_blocks_0_attn_to_k', { lokr_w1: w1, lokr_w2: w2 });
  await check(adapter, QKV, wanted, weights);
});

it('LoHa becomes a LoRA, LoKr does not', async () => {
  const text =
    'merge_method: task_arithmetic\nmodels: [{model: one, parameters: {weight: 1}}]\namalgam: {output: adapter}\n';
  const keys = ['hada_w1_a', 'hada_w1_b', 'hada_w2_a', 'hada_w2_b'];
  const shapes = [
    [8, 3],
    [3, 12],
    [8, 2],
    [2, 12],
  ];
  const one = named(PROJ, Object.fromEntries(keys.map((key, i) => [key, tensor(70 + i, ...shapes[i]!)])));
  const { plan } = await planInNode(text, '.', { one: loraFile('one', one) });
  expect(plan.tensors.map(({ shape }) => shape).sort()).toEqual([
    [6, 12],
    [8, 6],
  ]);
  const two = named(PROJ, { lokr_w1: tensor(80, 2, 2), lokr_w2: tensor(81, 4, 6) });
  await expect(planInNode(text, '.', { one: loraFile('one', two) })).rejects.toThrow(
    'uses LoKr, which cannot be part of a merged adapter',
  );
});

function named(module: string, parts: Values): Values {
  return Object.fromEntries(Object.entries(parts).map(([part, value]) => [`${module}.${part}`, value]));
}
function lora(down: Values[string], up: Values[string]): Values {
  return { 'lora_down.weight': down, 'lora_up.weight': up, alpha: scalar(1) };
}
function factors(name: string, columns: number) {
  const isConv = name === CONV;
  const down = isConv ? tensor(41, 2, 6, 3, 3) : tensor(41, 2, columns);
  const up = isConv ? tensor(42, 8, 2, 1, 1) : tensor(42, 8, 2);
  const change = map(times(matrix(up), matrix(down)), (v) => v / 2);
  return { down, up, sum: plus(matrix(base[name]!), change) };
}
function unit(n: number): Matrix {
  return Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => (i === j ? 1 : 0)));
}
/** By Gauss and Jordan. */
function inverse(a: Matrix): Matrix {
  const rows = a.map((row, i) => [...row, ...unit(a.length)[i]!]);
  for (const [k] of rows.entries()) {
    const best = rows
      .slice(k)
      .reduce((at, row, i) => (Math.abs(row[k]!) > Math.abs(rows[at]![k]!) ? k + i : at), k);
    [rows[k], rows[best]] = [rows[best]!, rows[k]!];
    rows[k] = rows[k]!.map((v) => v / rows[k]![k]!);
    for (const [i, row] of rows.entries())
      if (i !== k) rows[i] = row.map((v, c) => v - row[k]! * rows[k]![c]!);
  }
  return rows.map((row) => row.slice(a.length));
}
