import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { AmalgamError } from '../../src/errors';
import { parseRecipe } from '../../src/formats/recipe-yaml';
import { headerLength, parseSafetensorsHeader } from '../../src/formats/safetensors-header';
import { yamlText } from '../../src/formats/yaml-text';
import names from '../corpus/names.json';
import corpus from '../corpus/safetensors.json';
import { SEED } from '../seed';
import { fuzz } from './fuzz';
import { fuzzTargets, seedBytes } from './fuzz-targets';

describe('R2–R6 R10 R13 R14 R22 R58 R59: hostile input', () => {
  // long enough to detect a hang on any machine: the command looks closer
  test.each(fuzzTargets)('$name', async (target) => {
    const { taken, refused } = await fuzz(target, 2000, SEED, 2000);
    expect(taken + refused).toBe(2000);
  });

  test.each(fuzzTargets)('$name: the inputs that are damaged are sound', async (target) => {
    let taken = 0;
    for (const seed of seedBytes(target)) {
      try {
        expect(await target.parse(seed)).toBeUndefined();
        taken++;
      } catch (thrown) {
        if (!(thrown instanceof AmalgamError)) throw thrown;
      }
    }
    expect(taken).toBeGreaterThan(0);
  });
});

test('R48: thirty names as attacks come back from YAML as they are, as values and as keys', () => {
  expect(names).toHaveLength(30);
  for (const name of names)
    expect(parse(yamlText({ name, list: [name] })), name).toEqual({ name, list: [name] });
});

test.each(names)('R48: a recipe that names %j is read as that name, or refused in words', (name) => {
  const { recipe, problems } = parseRecipe(
    `merge_method: linear\nmodels:\n  - model: ${JSON.stringify(name)}\n    parameters: {weight: 1}\n`,
  );
  if (problems.length > 0) expect(problems.every(({ hint }) => hint !== '')).toBe(true);
  else expect(recipe?.models?.[0]?.model).toBe(name);
});

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
