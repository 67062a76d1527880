import { describe, expect, it } from 'vitest';
import { maskKey, philox } from './philox';

describe('philox4x32-10', () => {
  // known answers of the Random123 distribution (kat_vectors), those with c2 = c3 = 0
  it('gives the published words for counter 0, key 0', () => {
    const out = new Uint32Array(4);
    philox(0, 0, 0, 0, out);
    expect([...out]).toEqual([0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
  });

  it('agrees with a BigInt transcription of the paper', () => {
    const out = new Uint32Array(4);
    for (let i = 0; i < 200; i++) {
      const args = [i * 2654435761, i * 40503, i * 0x9e3779b9, 0xffffffff - i].map((x) => x >>> 0);
      philox(args[0]!, args[1]!, args[2]!, args[3]!, out);
      expect([...out]).toEqual(
        reference([BigInt(args[0]!), BigInt(args[1]!), 0n, 0n], [BigInt(args[2]!), BigInt(args[3]!)]),
      );
    }
  });
});

function reference(counter: bigint[], key: bigint[]): number[] {
  let c = counter;
  let k = key;
  const low = (x: bigint) => BigInt.asUintN(32, x);
  for (let round = 0; round < 10; round++) {
    const p0 = 0xd2511f53n * c[0]!;
    const p1 = 0xcd9e8d57n * c[2]!;
    c = [(p1 >> 32n) ^ c[1]! ^ k[0]!, low(p1), (p0 >> 32n) ^ c[3]! ^ k[1]!, low(p0)];
    k = [low(k[0]! + 0x9e3779b9n), low(k[1]! + 0xbb67ae85n)];
  }
  return c.map(Number);
}

describe('maskKey', () => {
  it('differs by seed, model and tensor, and does not confuse their borders', () => {
    const keys = [
      maskKey(0, 'a', 'bc'),
      maskKey(0, 'ab', 'c'),
      maskKey(1, 'a', 'bc'),
      maskKey(0, 'a', 'bd'),
      maskKey(10, 'a', 'bc'),
    ].map(String);
    expect(new Set(keys).size).toBe(keys.length);
  });

  it('is FNV-1a: a hand-computed key stays what it is', () => {
    // FNV-1a 64 of "0", NUL, NUL = ((((basis ^ 0x30) * p) ^ 0) * p ^ 0) * p
    const p = 0x100000001b3n;
    const mul = (x: bigint) => BigInt.asUintN(64, x * p);
    const hash = mul(mul(mul(0xcbf29ce484222325n ^ 0x30n)));
    expect(maskKey(0, '', '')).toEqual([Number(hash & 0xffffffffn), Number(hash >> 32n)]);
  });
});
