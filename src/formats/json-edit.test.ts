import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { editJsonObject } from './json-edit';
import type { PlainJson } from './strict-json';

describe('editJsonObject', () => {
  it('keeps the spelling of everything it does not edit', () => {
    const text = `{
  "eps": 1e-05,
  "theta": 10000.0, "nested": {"tie": [1.0, "}"]},
  "tie": true
}
`;
    const edits = new Map<string, PlainJson>([
      ['tie', false],
      ['dtype', 'bfloat16'],
      ['layer_types', ['a', 'b']],
    ]);
    expect(editJsonObject(text, edits)).toBe(`{
  "eps": 1e-05,
  "theta": 10000.0, "nested": {"tie": [1.0, "}"]},
  "tie": false,
  "dtype": "bfloat16",
  "layer_types": [
    "a",
    "b"
  ]
}
`);
  });

  it('fills an empty object', () => {
    expect(editJsonObject('{}', new Map([['a', 1]]))).toBe('{\n  "a": 1\n}');
  });

  it('does what parsing, setting and printing would do', () => {
    const json = fc.dictionary(fc.string({ maxLength: 6 }), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 6 });
    fc.assert(
      fc.property(json, json, fc.constantFrom(undefined, 2, '\t'), (object, edits, space) => {
        const wanted = new Map(Object.entries(object));
        for (const [k, v] of Object.entries(edits)) wanted.set(k, v);
        const text = editJsonObject(
          JSON.stringify(object, null, space),
          new Map(Object.entries(edits) as [string, PlainJson][]),
        );
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(Object.fromEntries(wanted))));
      }),
      { numRuns: 500 },
    );
  });
});
