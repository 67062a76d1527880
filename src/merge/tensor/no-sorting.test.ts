/**
 * No method sorts a tensor, nor a row of one. Exact thresholds come from histograms of the digits (radix-select.ts): a
 * sort of a billion values would need them all at once, and ties would fall as the sort likes.
 */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import { contractModel, mergeModel, variantsOf } from '../methods/contract.cases';
import { methods } from '../methods/index';

const ROWS = 70;
const COLUMNS = 96;
const KINDS = [Array, Float32Array, Float64Array, Uint32Array, Int32Array, Uint16Array, Uint8Array];
const longest = { length: 0 };

beforeEach(() => {
  longest.length = 0;
  for (const { prototype } of KINDS) {
    for (const name of ['sort', 'toSorted'] as const) {
      const original = prototype[name] as (...args: unknown[]) => unknown;
      vi.spyOn(prototype as { sort(): unknown; toSorted(): unknown }, name).mockImplementation(function (
        this: { length: number },
        ...args: unknown[]
      ) {
        longest.length = Math.max(longest.length, this.length);
        return original.apply(this, args);
      });
    }
  }
});
afterEach(() => vi.restoreAllMocks());

it('sees a sort', () => {
  new Float32Array(COLUMNS).sort();
  expect(longest.length).toBe(COLUMNS);
});

const cases = methods
  .filter((method) => method.compute.kind !== 'solved')
  .flatMap((method) =>
    variantsOf(method).map((variant) => ({ id: method.id, name: variant.name, method, variant })),
  );

it.each(cases)('$id, $name', async ({ method, variant }) => {
  const model = contractModel(method, variant, 'F32', [
    [ROWS, COLUMNS],
    [ROWS, COLUMNS],
  ]);
  await mergeModel(createCpuBackend(), method, model, 2048);
  expect(longest.length).toBeLessThan(COLUMNS);
});
