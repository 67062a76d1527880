import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  isJsonNumber,
  type JsonRules,
  type JsonValue,
  MAX_JSON_DEPTH,
  MAX_JSON_LENGTH,
  parseJson,
  parseStrictJson,
  strictInteger,
} from './strict-json';

const RULES: JsonRules = { code: 'JsonInvalid', maxLength: 10_000, maxString: 1000 };

function parse(text: string, rules = RULES): JsonValue {
  return parseStrictJson(text, 'file.json', rules);
}
function thrown(code: string): unknown {
  return expect.objectContaining({ code, message: expect.stringContaining('file.json') as string });
}
/** The tree as `JSON.parse` would have built it, for comparison. */
function plain(value: JsonValue): unknown {
  if (isJsonNumber(value)) return Number(value.text);
  if (Array.isArray(value)) return value.map(plain);
  if (!(value instanceof Map)) return value;
  const object: Record<string, unknown> = {};
  for (const [key, v] of value) {
    Object.defineProperty(object, key, {
      value: plain(v),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return object;
}

test('reads what JSON.parse reads', () => {
  fc.assert(
    fc.property(fc.json(), fc.constantFrom(undefined, 1, '\t'), (text, space) => {
      const spaced = JSON.stringify(JSON.parse(text), null, space);
      expect(plain(parse(spaced))).toEqual(JSON.parse(spaced));
    }),
  );
});

test('agrees with JSON.parse on what is not JSON', () => {
  const soup = fc.array(
    fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      'a',
      '\\',
      '\\u12',
      '1',
      '-',
      '0',
      '.',
      'e',
      'true',
      'nul',
      ' ',
      '\n',
    ),
    { maxLength: 8 },
  );
  fc.assert(
    fc.property(soup, (parts) => {
      const text = parts.join('');
      let valid = true;
      try {
        JSON.parse(text);
      } catch {
        valid = false;
      }
      let took = true;
      try {
        parse(text);
      } catch {
        took = false;
      }
      // Duplicate keys apart, which cannot arise from eight tokens with one letter… unless the key is repeated.
      if (took !== valid && !(valid && !took && /"(a*)":.*"\1":/s.test(text)))
        expect.fail(JSON.stringify(text));
    }),
    { numRuns: 20_000 },
  );
});

test('keeps the spelling of numbers and the order of keys', () => {
  const tree = parse('{"b":1e-05,"2":10000.0,"1":-0,"__proto__":{"x":[]}}') as Map<string, JsonValue>;
  expect([...tree.keys()]).toEqual(['b', '2', '1', '__proto__']);
  expect(tree.get('b')).toEqual({ text: '1e-05' });
  expect(tree.get('2')).toEqual({ text: '10000.0' });
  expect(tree.get('1')).toEqual({ text: '-0' });
  expect(tree.get('__proto__')).toEqual(new Map([['x', []]]));
});

test.each([
  ['0', 0],
  ['7', 7],
  ['9007199254740991', 2 ** 53 - 1],
  ['9007199254740992', undefined],
  ['9007199254740993', undefined],
  ['99999999999999999999', undefined],
  ['-0', undefined],
  ['-1', undefined],
  ['1.0', undefined],
  ['1e3', undefined],
  ['01', undefined],
  ['', undefined],
  ['1 ', undefined],
])('strict integer %j', (text, value) => {
  expect(strictInteger(text)).toBe(value);
});

test('duplicate keys are refused, however they are spelled', () => {
  expect(() => parse('{"a":1,"b":2,"a":1}')).toThrow(thrown('DuplicateKey'));
  expect(() => parse('{"a":1,"\\u0061":1}')).toThrow(/“a” appears twice/);
  expect(() => parse('[{"a":1},{"a":1}]')).not.toThrow();
});

describe('R3 R13: limits', () => {
  test('depth', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
    expect(() => parse(nested(MAX_JSON_DEPTH))).not.toThrow();
    expect(() => parse(nested(MAX_JSON_DEPTH + 1))).toThrow(thrown('JsonInvalid'));
    expect(() => parse('[{"a":'.repeat(100_000), { ...RULES, maxLength: 1e7 })).toThrow(
      /nested more than 64/,
    );
  });

  test('length of the text and of a string', () => {
    expect(() => parse(`${' '.repeat(9_998)}[]`)).not.toThrow();
    expect(() => parse(`${' '.repeat(9_999)}[]`)).toThrow(thrown('LimitExceeded'));
    expect(() => parse(`"${'x'.repeat(999)}"`)).not.toThrow();
    expect(() => parse(`"${'x'.repeat(1001)}"`)).toThrow(thrown('LimitExceeded'));
    expect(() => parse('1'.repeat(1001))).toThrow(thrown('LimitExceeded'));
  });
});

test('Python numbers only where they are allowed', () => {
  const text = '[NaN, Infinity, -Infinity]';
  expect(() => parse(text)).toThrow(thrown('JsonInvalid'));
  expect(parse(text, { ...RULES, pythonNumbers: true })).toEqual([
    { text: 'NaN' },
    { text: 'Infinity' },
    { text: '-Infinity' },
  ]);
});

describe('parseJson', () => {
  test('parses', () => {
    expect(parseJson('{"a":[1,"}"]}', 'file.json')).toEqual({ a: [1, '}'] });
  });

  test('names the file when the text is no JSON, too deep or too long', () => {
    expect(() => parseJson('{', 'file.json')).toThrow(thrown('JsonInvalid'));
    expect(() => parseJson('['.repeat(200_000), 'file.json')).toThrow(thrown('LimitExceeded'));
    expect(() => parseJson(' '.repeat(MAX_JSON_LENGTH + 1), 'file.json')).toThrow(thrown('LimitExceeded'));
    expect(() => parseJson(`"${'['.repeat(100)}\\"["`, 'file.json')).not.toThrow();
  });
});
