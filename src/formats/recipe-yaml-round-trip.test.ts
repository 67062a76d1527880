import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse as parseYaml } from 'yaml';
import type { ParameterSetting, Recipe, RecipeParameters } from './recipe';
import { formatRecipe } from './recipe-format';
import { parseRecipe } from './recipe-yaml';

describe('round trip', () => {
  const number = fc.double({ noNaN: true, noDefaultInfinity: true });
  const text = fc.string({ unit: 'binary', minLength: 1 });
  const gradient = fc.array(number, { minLength: 1, maxLength: 4 });
  const scalar = fc.oneof(number, fc.boolean(), text);
  const filter = fc.record(
    { filter: text, value: fc.oneof(scalar, gradient) },
    { requiredKeys: ['value'], noNullPrototype: true },
  );
  const setting: fc.Arbitrary<ParameterSetting> = fc.oneof(
    scalar,
    gradient,
    fc.array(filter, { minLength: 1, maxLength: 3 }),
  );
  const word = fc.stringMatching(/^[a-z][a-z0-9_]{0,11}$/);
  const parameters: fc.Arbitrary<RecipeParameters> = fc.dictionary(word, setting, {
    maxKeys: 3,
    noNullPrototype: true,
  });
  const path = text.filter((s) => !/[+@]/.test(s));
  const ref = fc
    .tuple(path, fc.option(path), fc.option(path))
    .map(([p, rev, lora]) => `${p}${rev === null ? '' : `@${rev}`}${lora === null ? '' : `+${lora}`}`);
  const models = fc.array(fc.record({ model: ref, parameters }, { noNullPrototype: true }), {
    minLength: 1,
    maxLength: 3,
  });
  const slices = fc.array(
    fc.record(
      {
        sources: fc.array(
          fc.record(
            {
              model: ref,
              layerRange: fc.tuple(fc.nat(50), fc.integer({ min: 51, max: 99 })),
              parameters,
            },
            { noNullPrototype: true },
          ),
          { minLength: 1, maxLength: 2 },
        ),
        baseModel: ref,
        parameters,
      },
      { requiredKeys: ['sources', 'parameters'], noNullPrototype: true },
    ),
    { minLength: 1, maxLength: 2 },
  );
  const amalgam = fc.record(
    {
      seed: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
      gradientEnds: fc.constantFrom('mergekit' as const, 'nearest' as const),
      shardBytes: fc.integer({ min: 1 }),
      nonFinite: fc.constantFrom('stop' as const, 'carry' as const),
      include: fc.array(text, { minLength: 1, maxLength: 2 }),
      exclude: fc.array(text, { minLength: 1, maxLength: 2 }),
    },
    { requiredKeys: [], noNullPrototype: true },
  );
  const recipe: fc.Arbitrary<Recipe> = fc
    .record(
      {
        mergeMethod: word,
        baseModel: ref,
        parameters,
        outDtype: fc.constantFrom('float32' as const, 'float16' as const, 'bfloat16' as const),
        tokenizerSource: ref,
        amalgam,
      },
      { requiredKeys: ['mergeMethod', 'parameters', 'amalgam'], noNullPrototype: true },
    )
    .chain((rest) =>
      fc.oneof(
        models.map((m) => ({ ...rest, models: m })),
        slices.map((s) => ({ ...rest, slices: s })),
      ),
    );

  test('any recipe comes back as it was', () => {
    fc.assert(
      fc.property(recipe, (r) => {
        const { recipe: back, problems } = parseRecipe(formatRecipe(r));
        expect(problems).toEqual([]);
        expect(back).toEqual(r);
      }),
      { numRuns: 100 },
    );
  });

  test('as YAML 1.1, which PyYAML and so mergekit reads, the text means the same', () => {
    fc.assert(
      fc.property(recipe, (r) => {
        const written = formatRecipe(r);
        expect(parseYaml(written, { version: '1.1' })).toEqual(parseYaml(written));
      }),
      { numRuns: 100 },
    );
  });

  test('numbers with an exponent have a point and a sign, or PyYAML reads a text', () => {
    const written = formatRecipe({
      mergeMethod: 'x',
      models: [{ model: 'no', parameters: { a: 1e-7, b: 1.5e300, c: 3, d: -0, e: 'word' } }],
      parameters: {},
      amalgam: {},
    });
    expect(written).toBe(
      'merge_method: x\nmodels:\n  - model: "no"\n    parameters:\n      a: 1.0e-7\n      b: 1.5e+300\n      c: 3\n      d: -0.0\namalgam:\n  models:\n    "no":\n      e: word\n',
    );
  });

  test('a parameter that is not finite cannot be written', () => {
    const bad: Recipe = { mergeMethod: 'x', parameters: { t: Number.NaN }, amalgam: {} };
    expect(() => formatRecipe(bad)).toThrow(expect.objectContaining({ code: 'RecipeInvalid' }));
  });
});
