import { expect, test } from 'vitest';
import { AmalgamError } from '../../src/errors';
import { headerLength, parseSafetensorsHeader } from '../../src/formats/safetensors-header';
import corpus from '../corpus/safetensors.json';

/** A case as the corpus describes it; see there. */
interface Case {
  name: string;
  header?: string;
  pad?: number;
  data?: number;
  length?: string;
  hex?: string;
  /** `accepts`, or what the reference implementation refuses with. */
  reference?: string;
  /** Why Amalgam refuses what the reference takes. */
  differs?: string;
}

function fileOf({ header = '', pad = 0, data = 0, length, hex }: Case): Uint8Array {
  if (hex !== undefined) return new Uint8Array(Buffer.from(hex, 'hex'));
  const text = Buffer.from(header);
  const file = Buffer.alloc(8 + text.length + pad + data);
  file.writeBigUInt64LE(BigInt(length ?? text.length + pad));
  text.copy(file, 8);
  file.fill(' ', 8 + text.length, 8 + text.length + pad);
  return new Uint8Array(file);
}

function accepts(file: Uint8Array): boolean {
  try {
    const length = headerLength(file.subarray(0, 8), file.length);
    parseSafetensorsHeader(file.subarray(8, 8 + length), file.length, 'case');
    return true;
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(AmalgamError);
    return false;
  }
}

const cases: Case[] = corpus.cases;

test('R1–R12: every header of the corpus is taken or refused as the reference implementation does', () => {
  expect(cases.length).toBeGreaterThan(100);
  const verdicts = cases.map((c) => ({
    name: c.name,
    taken: accepts(fileOf(c)),
    // what is refused on purpose is something that the reference takes
    reference: c.reference === 'accepts' && c.differs === undefined,
  }));
  expect(verdicts.filter(({ taken, reference }) => taken !== reference)).toEqual([]);
  for (const { name, differs, reference } of cases) {
    if (differs !== undefined) expect(reference, name).toBe('accepts');
  }
});
