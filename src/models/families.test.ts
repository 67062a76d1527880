import { describe, expect, it } from 'vitest';
import { canonicalName, families, familyOf } from './families';
import { splitLayer, tensorPlace, tensorRole } from './tensor-role';

describe('families', () => {
  it('names every model_type once', () => {
    const types = families.flatMap((f) => Object.keys(f.modelTypes));
    expect(new Set(types).size).toBe(types.length);
  });

  it.each(families.map((f) => [f.id, f] as const))(
    '%s agrees with the roles of its own names',
    (_, family) => {
      expect(tensorRole(family.embedding, [8, 4])).toMatchObject({ kind: 'embedding', layer: null });
      expect(tensorRole(family.head, [8, 4])).toMatchObject({ kind: 'head', layer: null });
      expect(tensorPlace(family.head)).toBe('after');
      expect(splitLayer(`${family.stack}12.x.weight`)).toEqual({
        stack: family.stack,
        index: 12,
        rest: 'x.weight',
      });
      expect(canonicalName(family.embedding, family)).not.toBe(family.embedding);
    },
  );

  it('finds families by model_type and knows the default of the tie', () => {
    expect(familyOf('qwen2')?.modelTypes.qwen2?.tiedByDefault).toBe(false);
    expect(familyOf('gemma2')?.modelTypes.gemma2?.tiedByDefault).toBe(true);
    expect(familyOf('no-such-model')).toBeUndefined();
    expect(familyOf(undefined)).toBeUndefined();
    expect(familyOf('constructor')).toBeUndefined();
  });

  it('takes a name with and without prefix for the same tensor', () => {
    const gpt2 = familyOf('gpt2');
    expect(canonicalName('transformer.h.0.ln_1.weight', gpt2)).toBe('h.0.ln_1.weight');
    expect(canonicalName('h.0.ln_1.weight', gpt2)).toBe('h.0.ln_1.weight');
    expect(canonicalName('transformer.h.0.ln_1.weight', undefined)).toBe('transformer.h.0.ln_1.weight');
  });
});

describe('files', () => {
  it('every file of wirings has one that a family uses', () => {
    const files = import.meta.glob<Record<string, unknown>>('./wirings/*.ts', { eager: true });
    const used = new Set<unknown>(
      families.flatMap(({ modelTypes }) => Object.values(modelTypes).map(({ wiring }) => wiring)),
    );
    const unused = Object.entries(files).filter(([, file]) => !Object.values(file).some((w) => used.has(w)));
    expect(unused.map(([path]) => path)).toEqual([]);
  });
});
