/** The contract of a merge method as tests on the processor, derived from its file (docs/adding-a-method.md). */
import { expect, it } from 'vitest';
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import type { WeightDtype } from '../../formats/dtype';
import type { MergeMethod } from '../method';
import type { TensorPlan } from '../plan/plan';
import { contractModel, DTYPES, judgeOf, mergedValues, mergeModel, variantsOf } from './contract.cases';
import type { OracleTensor } from './oracle';

const engine = createCpuBackend();

/** Half a unit in the last place of the output dtype, and f32 arithmetic on the way, relative to the inputs' size. */
const ROUNDING: Record<WeightDtype, number> = { F32: 2 ** -24, F16: 2 ** -11, BF16: 2 ** -8 };
const ARITHMETIC = 1e-6;
/** Half the distance of the smallest numbers. */
const SMALLEST: Record<WeightDtype, number> = { F32: 1e-9, F16: 2 ** -25, BF16: 1e-9 };
const SHAPES = [[96, 64], [31, 17], [257], [255], [3], [1], [4, 6, 10]];
/** Where blocks, rows and tiles end is the same for all settings: behind the defaults these need one tensor of each kind. */
const FEW_SHAPES = [[40, 64], [31, 17], [3]];
const TILED = [
  [
    [130, 64],
    [63, 64],
    [65, 64],
  ],
  [[4095], [4096], [4097]],
];
const FEW_TILED = [[[65, 64], [4097]]];

/** Largest of the inputs at an element, base and contributors. */
function sizeAt({ base, models }: OracleTensor, e: number): number {
  return Math.max(Math.abs(base?.[e] ?? 0), ...models.map((m) => Math.abs(m.weights[e]!)));
}

/** Declares the tests of one method. */
export function contractTests(method: MergeMethod, judge = judgeOf(method)): void {
  const { oracle, contract } = judge;
  const variants = variantsOf(method, judge);

  // what a method computes knows no dtype, tensors are decoded before it and encoded after it: a setting in one of them, in turn
  it.each(variants.map((v, i) => [v.name, v, i] as const))(
    'agrees with its f64 oracle: %s',
    async (_, variant, i) => {
      for (const dtype of i === 0 ? DTYPES : [DTYPES[i % DTYPES.length]!]) {
        const model = contractModel(method, variant, dtype, i === 0 ? SHAPES : FEW_SHAPES);
        const merged = await mergeModel(engine, method, model);
        for (const [t, tensor] of model.tensors.entries()) {
          const known = model.oracle[t]!;
          const result = oracle(known, model.oracle);
          const expected = result instanceof Float64Array ? result : result.values;
          const open = result instanceof Float64Array ? new Set<number>() : result.open;
          expect(open.size).toBeLessThan(Math.max(2, tensor.elements / 100));
          const off = [...mergedValues(merged, tensor)].findIndex((v, e) => {
            const size = Math.max(sizeAt(known, e), Math.abs(expected[e]!));
            return (
              !open.has(e) &&
              !(Math.abs(v - expected[e]!) <= size * (ROUNDING[dtype] * 1.01 + ARITHMETIC) + SMALLEST[dtype])
            );
          });
          expect(
            off,
            `${dtype} [${tensor.shape}] element ${off}: ${mergedValues(merged, tensor)[off]} ${expected[off]}`,
          ).toBe(-1);
        }
      }
    },
  );

  it.each(DTYPES)('equal inputs give their own bytes: %s', async (dtype) => {
    for (const variant of variants.filter((v) => v.name.endsWith('defaults'))) {
      const model = contractModel(method, variant, dtype, SHAPES, 'equal');
      const merged = await mergeModel(engine, method, model);
      for (const { name, models } of model.tensors) {
        expect(merged.bytes.get(name)).toEqual(model.bytes.get(models[0]!.view.origin));
      }
    }
  });

  it('gives the same bytes and report for any tile size', async () => {
    for (const [i, variant] of variants.entries()) {
      for (const shapes of i === 0 ? TILED : FEW_TILED) {
        const model = contractModel(method, variant, 'BF16', shapes);
        const whole = await mergeModel(engine, method, model, 65_536);
        for (const tile of i === 0 ? [4096, 8192] : [4096])
          expect(await mergeModel(engine, method, model, tile)).toEqual(whole);
      }
    }
  });

  it('reports norms of changes beside the norm of the base, else those of whole weights', async () => {
    const model = contractModel(method, variants[0]!, 'F32', [[63, 64], [257]]);
    const { reports } = await mergeModel(engine, method, model);
    const normOf = (values: Float64Array) => Math.sqrt(values.reduce((sum, v) => sum + v * v, 0));
    for (const [t, { base, models }] of model.oracle.entries()) {
      const { baseNorm, contributors } = reports[t]!;
      const expected = models.map(({ weights }) =>
        normOf(baseNorm > 0 ? weights.map((w, e) => w - base![e]!) : weights),
      );
      for (const [i, { norm }] of contributors.entries())
        expect(Math.abs(norm / expected[i]! - 1)).toBeLessThan(1e-3);
      if (baseNorm > 0) expect(Math.abs(baseNorm / normOf(base!) - 1)).toBeLessThan(1e-3);
    }
  });

  it('handles a tensor without elements', async () => {
    const model = contractModel(method, variants[0]!, 'F32', [[4], [0], [0, 8]]);
    const merged = await mergeModel(engine, method, model);
    expect([...merged.bytes.values()].map((b) => b.length)).toEqual([16, 0, 0]);
  });

  const many = method.models.max > 1;
  it(many ? `is ${contract.permutation} under a swap of contributors` : 'has one contributor', async () => {
    if (!many) return expect(contract.permutation).toBe('ordered');
    let moved = 0;
    for (const variant of variants) {
      const model = contractModel(method, variant, 'F32', [[40, 64], [257]]);
      const swapped = {
        ...model,
        tensors: model.tensors.map((t) => ({ ...t, models: t.models.toReversed() })),
      };
      const [a, b] = [await mergeModel(engine, method, model), await mergeModel(engine, method, swapped)];
      for (const [t, tensor] of model.tensors.entries()) {
        const [x, y] = [mergedValues(a, tensor), mergedValues(b, tensor)];
        moved = Math.max(moved, ...x.map((v, e) => Math.abs(v - y[e]!) / (sizeAt(model.oracle[t]!, e) || 1)));
      }
    }
    if (contract.permutation === 'invariant') expect(moved).toBeLessThan(ARITHMETIC);
    else expect(moved).toBeGreaterThan(1e-3);
  });

  const { single } = contract;
  it(
    single === 'none' ? 'has no weights' : `weight 1 for one model, 0 for the others: ${single}`,
    async () => {
      if (single === 'none') return expect(method.modelParameters).not.toHaveProperty('weight');
      for (const variant of variants.filter((v) => v.name.endsWith('defaults'))) {
        for (const chosen of variant.models.keys()) {
          const models = variant.models.map((m, i) => ({ ...m, weight: i === chosen ? 1 : 0 }));
          const model = contractModel(method, { ...variant, models }, 'F32', SHAPES);
          const merged = await mergeModel(engine, method, model);
          for (const [t, tensor] of model.tensors.entries()) {
            const ref = tensor.models[chosen]!.view.origin;
            const known = model.oracle[t]!;
            if (single === 'bytes' && !variant.base)
              expect(merged.bytes.get(tensor.name)).toEqual(model.bytes.get(ref));
            else
              expect(
                mergedValues(merged, tensor).findIndex((v, e) => {
                  const off = Math.abs(v - known.models[chosen]!.weights[e]!);
                  return !(off <= 2 ** -23 * sizeAt(known, e));
                }),
              ).toBe(-1);
          }
        }
      }
    },
  );

  it(`NaN stops the merge, or is carried no further than its ${contract.spread}`, async () => {
    for (const variant of variants) {
      const model = contractModel(method, variant, 'F32', [[8, 16], [40]]);
      const [tensor, other] = model.tensors as [TensorPlan, TensorPlan];
      const bad = 37;
      new Uint32Array(model.bytes.get(tensor.models[0]!.view.origin)!.buffer)[bad] = 0x7fc00001;
      await expect(mergeModel(engine, method, model)).rejects.toMatchObject({
        code: 'NonFinite',
        message: expect.stringMatching(/layers\.0.*1 value of m1/),
      });
      const merged = await mergeModel(engine, method, model, 65_536, 'carry');
      expect(mergedValues(merged, other).every(Number.isFinite)).toBe(true);
      const values = mergedValues(merged, tensor);
      const { spread } = contract;
      values.forEach((v, e) => {
        const near = spread === 'tensor' || (spread === 'row' ? e >> 4 === bad >> 4 : e === bad);
        expect(near || Number.isFinite(v), `element ${e} of ${variant.name}`).toBe(true);
      });
      if (spread === 'element' && variant.name === 'defaults') expect(values[bad]).toBeNaN();
      expect(merged.reports[0]!.nonFinite).toBeGreaterThan(0);
    }
  });

  const INFINITIES = {
    F32: [0x7f800000, 0xff800000],
    F16: [0x7c00, 0xfc00],
    BF16: [0x7f80, 0xff80],
  } as const;
  // weights of both signs have no sum of infinities
  const summed = variants.filter(({ parameters }) => parameters.normalize !== false);
  it.each(Object.entries(INFINITIES))(
    'an infinity that all have is carried as it is: %s',
    async (dtype, infinities) => {
      for (const variant of summed) {
        const model = contractModel(method, variant, dtype as keyof typeof INFINITIES, [[8, 16]]);
        const { base, models } = model.tensors[0]!;
        for (const { origin } of [...(base ? [base] : []), ...models.map((m) => m.view)]) {
          const { buffer } = model.bytes.get(origin)!;
          const bits = dtype === 'F32' ? new Uint32Array(buffer) : new Uint16Array(buffer);
          [bits[37], bits[90]] = infinities;
        }
        const merged = await mergeModel(engine, method, model, 65_536, 'carry');
        const values = mergedValues(merged, model.tensors[0]!);
        expect([values[37], values[90]], variant.name).toEqual([
          Number.POSITIVE_INFINITY,
          Number.NEGATIVE_INFINITY,
        ]);
        expect(values.filter(Number.isFinite).length, variant.name).toBe(values.length - 2);
        expect(merged.reports[0]!.nonFinite, variant.name).toBeGreaterThan(0);
      }
    },
  );
}
