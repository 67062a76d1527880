import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AmalgamError } from '../errors';
import { DTYPE_BITS, type Dtype } from './dtype';
import { headerLength, MAX_HEADER_BYTES, parseSafetensorsHeader } from './safetensors-header';
import { parseShardIndex } from './shard-index';

const utf8 = new TextEncoder();

function parse(json: string | Uint8Array, dataLength = 0) {
  const bytes = typeof json === 'string' ? utf8.encode(json) : json;
  return parseSafetensorsHeader(bytes, 8 + bytes.length + dataLength, 'w.safetensors');
}
function f32(begin: number | string, end: number | string, shape = '[1]'): string {
  return `{"dtype":"F32","shape":${shape},"data_offsets":[${begin},${end}]}`;
}
function u64(length: bigint): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, length, true);
  return bytes;
}
function refusal(code: string, about = 'w.safetensors'): unknown {
  return expect.objectContaining({ code, message: expect.stringContaining(about) as string });
}

describe('R1 R2: headerLength', () => {
  test.each([
    ['an empty file', new Uint8Array(0), 0, 'HeaderTooSmall'],
    ['7 bytes', new Uint8Array(7), 7, 'HeaderTooSmall'],
    ['2^63', u64(2n ** 63n), 1e9, 'HeaderTooLarge'],
    ['2^53 + 1, which a number cannot hold', u64(2n ** 53n + 1n), 2 ** 53, 'HeaderTooLarge'],
    ['2^64 − 8, which wraps when 8 is added', u64(2n ** 64n - 8n), 1e9, 'HeaderTooLarge'],
    ['one above the limit', u64(BigInt(MAX_HEADER_BYTES) + 1n), 1e9, 'HeaderTooLarge'],
    ['longer than the file', u64(93n), 100, 'FileSizeMismatch'],
  ])('%s', (_, first8, fileLength, code) => {
    expect(() => headerLength(first8, fileLength, 'w.safetensors')).toThrow(refusal(code));
  });

  test('the limits themselves are taken', () => {
    expect(headerLength(u64(92n), 100)).toBe(92);
    expect(headerLength(u64(0n), 8)).toBe(0);
    expect(headerLength(u64(BigInt(MAX_HEADER_BYTES)), 2e8)).toBe(MAX_HEADER_BYTES);
  });

  test.each([
    ['version https://git-lfs.github.com/spec/v1\noid sha256:00', 'LfsPointer', 'git-lfs pointer'],
    ['PK\x03\x04\x00\x00\x08\x08\x00\x00', 'NotSafetensors', 'zip archive'],
    ['\x80\x02\x8a\x0al\xfc\x9cF\xf9', 'NotSafetensors', 'pickle'],
    ['GGUF\x03\x00\x00\x00\x00', 'NotSafetensors', 'GGUF'],
    ['\x89HDF\r\n\x1a\n', 'NotSafetensors', 'HDF5'],
    ['<!DOCTYPE html><html>', 'NotSafetensors', 'web page'],
    ['\n\n <html lang="en">', 'NotSafetensors', 'web page'],
    ['<?xml version="1.0"?>', 'NotSafetensors', 'web page'],
    ['{"error":"Repository not found"}', 'NotSafetensors', 'JSON'],
    ['Access denied.', 'NotSafetensors', 'a text file'],
  ])('%j is named for what it is', (content, code, word) => {
    const bytes = Uint8Array.from(content, (c) => c.charCodeAt(0));
    expect(() => headerLength(bytes.subarray(0, 8), 134, 'w.safetensors')).toThrow(refusal(code, word));
  });
});

describe('R3 R4 R5 R6 R7 R10 R11: attacks', () => {
  const one = `"a":${f32(0, 4)}`;
  test.each<[string, string | Uint8Array, number, string]>([
    ['not UTF-8', Uint8Array.of(0x7b, 0xff, 0x7d), 0, 'HeaderInvalid'],
    ['a byte order mark', '\ufeff{}', 0, 'HeaderInvalid'],
    ['no JSON', '{', 0, 'HeaderInvalid'],
    ['an empty header', '', 0, 'HeaderInvalid'],
    ['an array at the root', '[]', 0, 'HeaderInvalid'],
    ['something behind the object', '{}{}', 0, 'HeaderInvalid'],
    ['a NUL behind the object', '{}\0', 0, 'HeaderInvalid'],
    ['200 000 levels', `{"a":${'['.repeat(200_000)}`, 0, 'HeaderInvalid'],
    ['deep in an ignored field', `{"a":{"x":${'['.repeat(100)}`, 0, 'HeaderInvalid'],
    ['the same tensor twice', `{${one},${one}}`, 4, 'DuplicateKey'],
    ['a name twice with another body', `{${one},"a":${f32(4, 8)}}`, 8, 'DuplicateKey'],
    ['a name twice, once escaped', `{${one},"\\u0061":${f32(4, 8)}}`, 8, 'DuplicateKey'],
    [
      'a field twice',
      '{"a":{"dtype":"F32","dtype":"I32","shape":[1],"data_offsets":[0,4]}}',
      4,
      'DuplicateKey',
    ],
    ['__metadata__ twice', '{"__metadata__":{},"__metadata__":{}}', 0, 'DuplicateKey'],
    ['a first offset that is not 0', `{"a":${f32(4, 8)}}`, 8, 'InvalidOffset'],
    ['a hole', `{${one},"b":${f32(8, 12)}}`, 12, 'InvalidOffset'],
    ['an overlap', `{${one},"b":${f32(2, 6)}}`, 6, 'InvalidOffset'],
    ['two tensors on the same bytes', `{${one},"b":${f32(0, 4)}}`, 4, 'InvalidOffset'],
    ['an end before the begin', `{"a":${f32(4, 0)}}`, 4, 'InvalidOffset'],
    ['a negative offset', `{"a":${f32(-4, 0)}}`, 4, 'InvalidOffset'],
    ['an exponent', `{"a":${f32(0, '4e0')}}`, 4, 'InvalidOffset'],
    ['a fraction', `{"a":${f32(0, '4.0')}}`, 4, 'InvalidOffset'],
    ['minus zero', `{"a":${f32('-0', 4)}}`, 4, 'InvalidOffset'],
    ['2^53', `{"a":${f32(0, '9007199254740992')}}`, 4, 'InvalidOffset'],
    ['2^53 + 1', `{"a":${f32(0, '9007199254740993')}}`, 4, 'InvalidOffset'],
    ['an offset as string', `{"a":${f32(0, '"4"')}}`, 4, 'InvalidOffset'],
    ['one offset', '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}}', 4, 'HeaderInvalid'],
    ['three offsets', '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}}', 4, 'InvalidOffset'],
    ['offsets that are no list', '{"a":{"dtype":"F32","shape":[1],"data_offsets":4}}', 4, 'InvalidOffset'],
    [
      'an extent without elements',
      '{"a":{"dtype":"F32","shape":[0,1099511627776],"data_offsets":[0,0]}}',
      0,
      'LimitExceeded',
    ],
    ['a shape too large', `{"a":${f32(0, 4, '[2]')}}`, 4, 'ShapeMismatch'],
    ['a shape too small', `{"a":${f32(0, 8)}}`, 8, 'ShapeMismatch'],
    ['a shape with a fraction', `{"a":${f32(0, 4, '[1.0]')}}`, 4, 'ShapeMismatch'],
    ['a negative extent', `{"a":${f32(0, 4, '[-1]')}}`, 4, 'ShapeMismatch'],
    [
      'a product that wraps to 4 in 64 bits',
      `{"a":${f32(0, 4, '[4294967296,4294967296,1]')}}`,
      4,
      'ShapeMismatch',
    ],
    ['an overflow that a zero hides', `{"a":${f32(0, 0, '[4294967296,4294967296,0]')}}`, 0, 'ShapeMismatch'],
    ['65 dimensions', `{"a":${f32(0, 4, `[${Array(65).fill(1)}]`)}}`, 4, 'ShapeMismatch'],
    [
      '4-bit elements that end inside a byte',
      '{"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}}',
      2,
      'ShapeMismatch',
    ],
    [
      '6-bit elements that end inside a byte',
      '{"a":{"dtype":"F6_E2M3","shape":[3],"data_offsets":[0,2]}}',
      2,
      'ShapeMismatch',
    ],
    ['bytes behind the last tensor', `{${one}}`, 5, 'FileSizeMismatch'],
    ['bytes behind no tensor', '{}', 1, 'FileSizeMismatch'],
    ['truncated data', `{${one}}`, 3, 'FileSizeMismatch'],
    [
      'a dtype that does not exist',
      '{"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}}',
      4,
      'HeaderInvalid',
    ],
    [
      'a dtype from the prototype',
      '{"a":{"dtype":"constructor","shape":[1],"data_offsets":[0,4]}}',
      4,
      'HeaderInvalid',
    ],
    ['a dtype that is no string', '{"a":{"dtype":4,"shape":[1],"data_offsets":[0,4]}}', 4, 'HeaderInvalid'],
    ['no dtype', '{"a":{"shape":[1],"data_offsets":[0,4]}}', 4, 'HeaderInvalid'],
    ['a tensor that is no object', '{"a":[]}', 0, 'HeaderInvalid'],
    ['metadata that is no object', '{"__metadata__":"x"}', 0, 'HeaderInvalid'],
    ['metadata with a number', '{"__metadata__":{"x":1}}', 0, 'HeaderInvalid'],
    ['a tensor called __metadata__', `{"__metadata__":${f32(0, 4)}}`, 4, 'HeaderInvalid'],
    ['metadata with half a surrogate pair', '{"__metadata__":{"x":"\\ud800"}}', 0, 'HeaderInvalid'],
    ['NUL in a name', `{"a\\u0000b":${f32(0, 4)}}`, 4, 'UnsafeName'],
    ['half a surrogate pair in a name', `{"\\udc00":${f32(0, 4)}}`, 4, 'UnsafeName'],
    ['a name of 1 MB', `{"${'x'.repeat(1_000_000)}":${f32(0, 4)}}`, 4, 'UnsafeName'],
    ['a string of 17 MB', `{"__metadata__":{"x":"${'x'.repeat(17_000_000)}"}}`, 0, 'LimitExceeded'],
  ])('%s', (_, json, dataLength, code) => {
    expect(() => parse(json, dataLength)).toThrow(refusal(code));
  });

  test('the message names the tensor', () => {
    expect(() => parse(`{${one},"model.\\u202enorm":${f32(8, 12)}}`, 12)).toThrow(
      'w.safetensors: tensor “model.\\u{202e}norm” (bytes 8 to 12) leaves a hole before it.',
    );
  });
});

describe('what is fine', () => {
  test('R10: names that hurt plain objects', () => {
    const names = ['__proto__', 'constructor', 'toString', '2', '1', '', '\u202e'];
    const json = names.map((name, i) => `${JSON.stringify(name)}:${f32(i * 4, i * 4 + 4)}`).join(',');
    const { tensors } = parse(`{${json}}`, names.length * 4);
    expect([...tensors.keys()]).toEqual(names);
    expect(tensors.get('__proto__')?.shape).toEqual([1]);
  });

  test('R9 R11: scalars, empty tensors, no tensors, no metadata, null metadata, unknown fields', () => {
    const { tensors, metadata } = parse(
      `{"scalar":${f32(0, 4, '[]')},"empty":${f32(4, 4, '[2,0]')},"also":${f32(4, 4, '[0]')},"rest":{"note":[1,{"x":2.5e3}],"dtype":"U8","shape":[3],"data_offsets":[4,7]}}`,
      7,
    );
    expect([...tensors.keys()]).toEqual(['scalar', 'empty', 'also', 'rest']);
    expect(metadata.size).toBe(0);
    expect(parse('{}').tensors.size).toBe(0);
    expect(parse('{"__metadata__":null}').metadata.size).toBe(0);
    expect(parse('{"__metadata__":{"__proto__":"x"}}').metadata).toEqual(new Map([['__proto__', 'x']]));
  });

  test('white space on both sides; offsets are absolute and in file order', () => {
    const json = ` \n\t{"b":${f32(4, 8)},"a":${f32(0, 4)}}   `;
    const { tensors } = parse(json, 8);
    const data = 8 + json.length;
    expect([...tensors.values()]).toEqual([
      { name: 'a', dtype: 'F32', shape: [1], begin: data, end: data + 4 },
      { name: 'b', dtype: 'F32', shape: [1], begin: data + 4, end: data + 8 },
    ]);
  });

  test.each(Object.entries(DTYPE_BITS))('8 elements of %s', (dtype, bits) => {
    const { tensors } = parse(`{"a":{"dtype":"${dtype}","shape":[8],"data_offsets":[0,${bits}]}}`, bits);
    expect(tensors.get('a')?.dtype).toBe(dtype);
  });

  test('a file written by the Python package', () => {
    const bytes = readFileSync('public/samples/kitchen/adapter_model.safetensors');
    const length = headerLength(bytes.subarray(0, 8), bytes.length, 'kitchen');
    const { tensors, metadata } = parseSafetensorsHeader(
      bytes.subarray(8, 8 + length),
      bytes.length,
      'kitchen',
    );
    const want = JSON.parse(bytes.toString('utf8', 8, 8 + length)) as Record<string, Record<string, unknown>>;
    expect(metadata).toEqual(new Map([['format', 'pt']]));
    expect(tensors.size).toBe(Object.keys(want).length - 1);
    for (const tensor of tensors.values()) {
      expect(want[tensor.name]).toEqual({
        dtype: tensor.dtype,
        shape: tensor.shape,
        data_offsets: [tensor.begin - 8 - length, tensor.end - 8 - length],
      });
    }
  });
});

describe('fuzz', () => {
  const dtypes = Object.keys(DTYPE_BITS) as Dtype[];
  const layout = fc.array(
    fc.record({
      name: fc.string({ unit: 'grapheme', maxLength: 8 }),
      dtype: fc.constantFrom(...dtypes),
      shape: fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 3 }),
    }),
    { maxLength: 5 },
  );
  /** A sound header, its fields in any order. */
  const sound = layout.map((tensors) => {
    let at = 0;
    const members = new Map<string, string>();
    for (const { name, dtype, shape } of tensors) {
      const bits = shape.reduce((n, d) => n * d, DTYPE_BITS[dtype]);
      if (bits % 8 !== 0 || members.has(name) || name.includes('\0') || name === '__metadata__') continue;
      members.set(
        name,
        `${JSON.stringify(name)}:{"shape":[${shape}],"data_offsets":[${at},${at + bits / 8}],"dtype":"${dtype}"}`,
      );
      at += bits / 8;
    }
    return {
      json: `{${[...members.values()].reverse().join(',')}}`,
      names: [...members.keys()],
      dataLength: at,
    };
  });

  test('sound headers are taken whole', () => {
    fc.assert(
      fc.property(sound, ({ json, names, dataLength }) => {
        const { tensors } = parse(json, dataLength);
        expect([...tensors.keys()].sort()).toEqual([...names].sort());
        expect([...tensors.values()].reduce((n, t) => n + t.end - t.begin, 0)).toBe(dataLength);
      }),
    );
  });

  test('damaged headers are refused in words or still describe every byte once', () => {
    const damage = fc.array(
      fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 }), fc.constantFrom('set', 'insert', 'delete')),
      {
        minLength: 1,
        maxLength: 3,
      },
    );
    fc.assert(
      fc.property(sound, damage, ({ json, dataLength }, edits) => {
        const bytes = [...utf8.encode(json)];
        for (const [where, byte, kind] of edits) {
          const at = where % (bytes.length + 1);
          bytes.splice(at, kind === 'insert' ? 0 : 1, ...(kind === 'delete' ? [] : [byte]));
        }
        const header = Uint8Array.from(bytes);
        const fileLength = 8 + header.length + dataLength;
        try {
          let at = 8 + header.length;
          for (const t of parseSafetensorsHeader(header, fileLength, 'w').tensors.values()) {
            expect(t.begin).toBe(at);
            expect(t.shape.reduce((n, d) => n * d, DTYPE_BITS[t.dtype])).toBe((t.end - t.begin) * 8);
            at = t.end;
          }
          expect(at).toBe(fileLength);
        } catch (thrown) {
          if (!(thrown instanceof AmalgamError)) throw thrown;
          expect(thrown.hint).not.toBe('');
        }
      }),
      { numRuns: 3000 },
    );
  });

  test('any 8 bytes give a length inside the file or a refusal', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 8, maxLength: 8 }), fc.maxSafeNat(), (first8, fileLength) => {
        try {
          expect(headerLength(first8, fileLength)).toBeLessThanOrEqual(fileLength - 8);
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(AmalgamError);
        }
      }),
    );
  });
});

test('R59: more tensors than any model has are refused', () => {
  const entries = Array.from(
    { length: 250_001 },
    (_, i) => `"t${i}":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`,
  );
  const header = new TextEncoder().encode(`{${entries.join()}}`);
  expect(() => parseSafetensorsHeader(header, 8 + header.length, 'a')).toThrow(/more than 250000 tensors/);
  expect(() =>
    parseShardIndex(`{"weight_map":{${entries.map((_, i) => `"t${i}":"a.safetensors"`).join()}}}`, 'i'),
  ).toThrow(/more than 250000 tensors/);
});
