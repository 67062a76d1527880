/** Weights stored in no dtype of weights that are numbers all the same (F64, eight bits without scales), over every place. */
import { expect, test } from 'vitest';
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import { openLiveWeights } from '../../evaluate/live-weights';
import { openPlannedWeights } from '../../evaluate/planned-weights';
import type { Dtype } from '../../formats/dtype';
import { copyOf } from '../../formats/recipe';
import { headerLength, parseSafetensorsHeader } from '../../formats/safetensors-header';
import { byteLevelTokenizer } from '../../gguf/tokenizer.test.support';
import {
  factors,
  openerOf,
  recipeOf,
  type Shapes,
  safetensors,
  tinyAdapter,
  tinyModel,
  tinyShapes,
} from '../../inputs/memory-models.test.support';
import { readingRows } from '../../inputs/row-reader';
import { findFile, type ModelFolder } from '../../sources/model-folder';
import { openSides } from '../../tools/difference/compare-models';
import { pairTensors } from '../../tools/difference/tensor-pairs';
import { methodById } from '../methods';
import { makePlan } from './recipe-plan';

/** 1, −2, 0.5 and 4 in turn, which every dtype holds. */
const NUMBERS = [1, -2, 0.5, 4];
const HALVES: Partial<Record<Dtype, Uint8Array>> = {
  F32: new Uint8Array(Float32Array.from(NUMBERS).buffer),
  F64: new Uint8Array(Float64Array.from(NUMBERS).buffer),
  F8_E5M2: Uint8Array.of(0x3c, 0xc0, 0x38, 0x44),
  F8_E4M3: Uint8Array.of(0x38, 0xc0, 0x30, 0x48),
};
const ODD = ['F64', 'F8_E5M2', 'F8_E4M3'] as const;

/** A whole tiny Llama of {@link NUMBERS} whose matrices, or all of whose tensors, are of a dtype. */
function numbers(path: string, dtype: Dtype, more: Shapes = {}): ModelFolder {
  const shapes = { ...tinyShapes({ whole: true, hidden: 8, dtype }), ...more };
  const file = safetensors(shapes);
  const end = 8 + headerLength(file.subarray(0, 8), file.length);
  const { tensors } = parseSafetensorsHeader(file.slice(8, end), file.length, path);
  for (const { dtype: own, begin, end: to } of tensors.values()) {
    const part = HALVES[own]!;
    for (let at = begin; at < to; at++) file[at] = part[(at - begin) % part.length]!;
  }
  return tinyModel(path, {
    whole: true,
    hidden: 8,
    files: { 'model.safetensors': file, 'tokenizer.json': byteLevelTokenizer(8) },
  });
}

const plan = (folder: ModelFolder, changes = {}, ...more: ModelFolder[]) =>
  makePlan({ ...copyOf('m'), ...changes }, openerOf(folder, ...more), methodById);
const remedies = ({ problems }: Awaited<ReturnType<typeof plan>>) =>
  problems.filter(({ severity }) => severity === 'error').map(({ remedy }) => remedy);

test.each(ODD)('%s: what runs are its numbers', async (dtype) => {
  const folder = numbers('m', dtype);
  const engine = createCpuBackend();
  const read = readingRows((ref, begin, end) =>
    findFile(folder, ref.file)!
      .open()
      .read(ref.begin + begin, ref.begin + end),
  );
  const planned = await plan(folder);
  const opened = [false, true].flatMap((exact) => [
    openPlannedWeights(planned, [engine], read, exact),
    openLiveWeights(planned, [engine], read, { factored: new Set(), summed: new Set(), roomBytes: 0 }, exact),
  ]);
  for (const weights of await Promise.all(opened)) {
    expect([...weights.tensors.keys()].sort()).toEqual(Object.keys(tinyShapes({ whole: true })).sort());
    for (const [name, stored] of weights.tensors) {
      const count = stored.shape.reduce((n, extent) => n * extent, 1);
      const { buffer } = await weights.read(name, 0, 4 * count);
      expect(stored.dtype).toBe('F32');
      expect([...new Float32Array(buffer)], name).toEqual(
        Array.from({ length: count }, (_, i) => NUMBERS[i % 4]),
      );
    }
    weights.close();
  }
  engine.close();
});

test.each(ODD)('%s: with an output dtype an adapter is put on it, without one it is said', async (dtype) => {
  const adapter = tinyAdapter('a', factors('model.layers.0.self_attn.q_proj', 8, 8));
  const of = (changes: object) => plan(numbers('m', dtype), { ...copyOf('m+a'), ...changes }, adapter);
  const made = await of({ outDtype: 'float32' });
  expect(remedies(made)).toEqual([]);
  const changed = made.tensors.filter(({ models }) => models[0]?.view.lowRank);
  expect(changed.map(({ name, dtype: written }) => `${name} ${written}`)).toEqual([
    'model.layers.0.self_attn.q_proj.weight F32',
  ]);
  for (const remedy of remedies(await of({}))) expect(remedy).toMatch(/out_dtype/);
});

test.each(ODD)(
  '%s: refusals to merge it and to write it as GGUF name what helps, and it does',
  async (dtype) => {
    const base = numbers('base', 'F32');
    const merged = (changes: object) =>
      makePlan(recipeOf(['m'], changes), openerOf(base, numbers('m', dtype)), methodById);
    const gguf = (changes: object) => plan(numbers('m', dtype), { amalgam: { gguf: 'F16' }, ...changes });
    for (const made of [merged, gguf]) {
      const said = remedies(await made({}));
      expect(said.length).toBeGreaterThan(0);
      for (const remedy of said) expect(remedy).toMatch(/^Choose an output dtype \(out_dtype\)/);
      expect(remedies(await made({ outDtype: 'bfloat16' }))).toEqual([]);
    }
  },
);

test.each(ODD)('%s: it is compared, and extracted from, by its numbers', async (dtype) => {
  const { base, tuned, notes } = await openSides(
    'm',
    'b',
    openerOf(numbers('m', dtype), numbers('b', 'F32')),
  );
  const { shared, raw } = pairTensors(base, tuned);
  expect([shared.length, raw.length]).toEqual([base.tensors.size, 0]);
  expect(notes.join()).toMatch(dtype === 'F64' ? /^What m stores as F64 is rounded to F32/ : /^$/);
});

test('tied ends of two dtypes are one where their numbers are', async () => {
  const heads: [Dtype, number][] = [
    ['F64', 0],
    ['BF16', 1],
  ];
  for (const [dtype, problems] of heads) {
    HALVES.BF16 = Uint8Array.of(0x80, 0x3f);
    const made = await plan(numbers('m', 'F32', { 'lm_head.weight': [dtype, [8, 8]] }));
    expect(made.problems.filter(({ code }) => code === 'EndsDiffer')).toHaveLength(problems);
  }
});
