import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  emptySample,
  keepBySize,
  patternsOf,
  type SizeSelection,
  sampleBins,
  stepBySize,
} from './sample-selection';

const value = fc.oneof(
  fc.float({ noDefaultInfinity: false, noNaN: false }),
  fc.float({ min: -2, max: 2, noNaN: true }),
  fc.constantFrom(0, -0, 1, -1, 0.5),
);
const edge = fc.oneof(fc.double({ min: 0, max: 3, noNaN: true }), fc.constantFrom(0, 0.5, 1, Infinity));
const selection: fc.Arbitrary<SizeSelection> = fc.oneof(
  fc.constant({ kind: 'all' as const }),
  fc.record({ kind: fc.constant('band' as const), from: edge, below: edge }),
);

/** A selection in plain form, without patterns and bins: the sign of every element kept, else 0. */
function plainly(values: Float32Array, { kind, ...band }: SizeSelection & Partial<Record<string, unknown>>) {
  const { from, below } =
    kind === 'all' ? { from: 0, below: Infinity } : (band as { from: number; below: number });
  return [...values].map((v) => (v !== 0 && Math.abs(v) >= from && Math.abs(v) < below ? Math.sign(v) : 0));
}

test('a step keeps what the selection alone keeps', () => {
  fc.assert(
    fc.property(
      fc.array(value, { maxLength: 80 }),
      fc.array(selection, { minLength: 2, maxLength: 4 }),
      (list, path) => {
        const values = Float32Array.from(list);
        const bins = sampleBins(patternsOf(values));
        const sample = emptySample(values.length);
        keepBySize(sample, values, path[0]!);
        for (const next of path.slice(1)) {
          stepBySize(sample, sample.band!, bins, next);
          const alone = emptySample(values.length);
          keepBySize(alone, values, next);
          expect(sample).toEqual({ ...alone, version: sample.version });
          const said = [...values].map(
            (_, e) =>
              ((sample.positive[e >> 5]! >>> (e & 31)) & 1) - ((sample.negative[e >> 5]! >>> (e & 31)) & 1),
          );
          expect(said).toEqual(plainly(values, next));
        }
      },
    ),
  );
});
