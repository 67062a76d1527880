import { describe, expect, test } from 'vitest';
import { AmalgamError } from '../../errors';
import { serveThread } from '../../host/serve-thread';
import { startThreadsHere } from '../../host/threads.test.support';
import { factors, memoryFolder, tinyAdapter } from '../../inputs/memory-models.test.support';
import {
  CONFIG,
  lowRankDelta,
  modelFolder,
  optionsOf,
  plus,
  random,
  sidesOf,
  type Weights,
  zeros,
} from './compare.test.support';
import { compareModels } from './compare-models';
import { compareTensors, openComparison } from './compare-tensors';

const Q = 'model.layers.0.self_attn.q_proj.weight';
const K = 'model.layers.0.self_attn.k_proj.weight';
const NORM = 'model.norm.weight';
const EMBEDDING = 'model.embed_tokens.weight';

const base: Record<string, Weights> = {
  [EMBEDDING]: random([40, 24], 0.1, 1),
  [Q]: random([24, 24], 0.1, 2),
  [K]: random([12, 24], 0.1, 3),
  [NORM]: random([24], 1, 4),
};
const tuned = {
  ...base,
  [Q]: plus(base[Q]!, lowRankDelta([24, 24], 2, 0.01, 5)),
  [NORM]: plus(base[NORM]!, random([24], 1e-7, 6)),
};

/** The figures by their definitions, in f64 from the f32 difference. */
function expected(a: Float32Array, b: Float32Array) {
  const d = Array.from(b, (x, i) => Math.fround(x - a[i]!));
  const norm = (x: Iterable<number>) => Math.hypot(...x);
  const share = (of: (i: number) => boolean) => d.filter((_, i) => of(i)).length / d.length;
  return {
    meanAbs: d.reduce((sum, x) => sum + Math.abs(x), 0) / d.length,
    maxAbs: Math.max(...d.map(Math.abs)),
    normDelta: norm(d),
    relative: norm(d) / (norm(a) + 1e-10),
    changedRatio: share((i) => Math.abs(d[i]!) > 1e-6),
    signFlipRatio: share((i) => a[i]! * b[i]! < 0),
    bitDifferentRatio: share((i) => !Object.is(a[i], b[i])),
    cosine: a.reduce((sum, x, i) => sum + x * b[i]!, 0) / (norm(a) * norm(b)),
  };
}

describe('figures', () => {
  test('by their definitions, whatever the tile size', async () => {
    const sides = await sidesOf([modelFolder('base', base), modelFolder('tuned', tuned)]);
    const whole = await compareTensors(optionsOf(sides));
    const cut = await compareTensors(optionsOf(sides, { tileElements: 4096 }));
    const timeless = (tensors: typeof whole.tensors) => tensors.map((t) => ({ ...t, seconds: 0 }));
    expect(timeless(cut.tensors)).toEqual(timeless(whole.tensors));
    startThreadsHere(() => serveThread({ compare: openComparison }));
    const shared = await compareTensors(optionsOf(sides, { threads: 2, tileElements: 4096 }));
    expect(timeless(shared.tensors)).toEqual(timeless(whole.tensors));
    expect(shared.total).toEqual(whole.total);
    expect([...shared.rowNorms]).toEqual([...whole.rowNorms]);
    expect(whole.tensors.map((t) => t.name)).toEqual([EMBEDDING, K, Q, NORM]);
    for (const t of whole.tensors) {
      const truth = expected(base[t.name]!.values, tuned[t.name as keyof typeof tuned]!.values);
      for (const [key, value] of Object.entries(truth)) {
        expect(Math.abs(t[key as keyof typeof truth] - value), `${t.name} ${key}`).toBeLessThanOrEqual(
          1e-6 * Math.abs(value),
        );
      }
    }
    const q = whole.tensors.find((t) => t.name === Q)!;
    expect(q.modified).toBe(true);
    expect(q.lora).toMatchObject({ rank95: 2, exact: true, potentialLora: true, effectiveRank: 2 });
    expect(q.rows.count).toBe(24);
    expect(Math.hypot(...whole.rowNorms.get(Q)!)).toBeCloseTo(q.normDelta, 6);
    expect(Math.hypot(...q.rows.strip)).toBeCloseTo(q.normDelta, 6);
    const untouched = whole.tensors.find((t) => t.name === K)!;
    expect(untouched).toMatchObject({
      relative: 0,
      cosine: expect.closeTo(1, 6),
      stableRank: 0,
      modified: false,
    });
    expect(whole.tensors.find((t) => t.name === NORM)).toMatchObject({
      changedRatio: 0,
      modified: false,
      stableRank: null,
    });
    expect(whole.ranking[0]).toBe(Q);
    expect(whole.total).toMatchObject({
      compared: 4,
      modified: 1,
      identical: 2,
      elements: 40 * 24 + 24 * 24 + 12 * 24 + 24,
    });
  });

  test('a base of zeros: cosine 0, relative to 1e-10; both zero: cosine 1', async () => {
    const one = { a: zeros([8]), b: zeros([3, 5]) };
    const two = { a: random([8], 1, 1), b: zeros([3, 5]) };
    const { tensors } = await compareTensors(
      optionsOf(await sidesOf([modelFolder('base', one), modelFolder('tuned', two)])),
    );
    expect(tensors[0]).toMatchObject({ name: 'a', cosine: 0 });
    expect(tensors[0]!.relative).toBeCloseTo(tensors[0]!.normDelta * 1e10, -6);
    expect(tensors[1]).toMatchObject({ name: 'b', cosine: 1, relative: 0 });
  });

  test('a change just at the threshold is no change', async () => {
    const at = { a: { shape: [3], values: Float32Array.of(0, 0, 0) } };
    const to = { a: { shape: [3], values: Float32Array.of(0.5, 0.25, 0.50000006) } };
    const { tensors } = await compareTensors(
      optionsOf(await sidesOf([modelFolder('base', at), modelFolder('tuned', to)]), { threshold: 0.5 }),
    );
    expect(tensors[0]!.changedRatio).toBeCloseTo(1 / 3, 12);
  });

  test('without the analysis no spectrum, with all of them a stable rank of everything that changed', async () => {
    const little = { ...tuned, [K]: plus(base[K]!, random([12, 24], 2e-7, 9)) };
    const sides = await sidesOf([modelFolder('base', base), modelFolder('tuned', little)]);
    const compared = async (more: Parameters<typeof optionsOf>[1]) => {
      const { tensors } = await compareTensors(optionsOf(sides, more));
      const of = (name: string) => tensors.find((t) => t.name === name)!;
      return [of(Q), of(K), of(EMBEDDING)].map(({ stableRank, lora }) => [stableRank, lora?.rank95]);
    };
    const [some, none] = [expect.closeTo(1.5, 1), null];
    expect(await compared({ loraAnalysis: false })).toEqual([
      [none, undefined],
      [none, undefined],
      [0, undefined],
    ]);
    expect(await compared({})).toEqual([
      [some, 2],
      [none, undefined],
      [0, undefined],
    ]);
    expect(await compared({ allSpectra: true })).toEqual([
      [some, 2],
      [expect.closeTo(6, -1), undefined],
      [0, undefined],
    ]);
  });

  test('a matrix that is proven to look like no LoRA has no spectrum, and what its spectrum says is the same', async () => {
    const shape: [number, number] = [160, 640];
    // Δ of rank 40 with more and more noise: the share outside of rank 64 goes from nothing to most
    const changes = [0, 0.2, 0.6, 4].map((noise, i) =>
      plus(lowRankDelta(shape, 40, 0.01 / Math.sqrt(40), 60 + i), random(shape, 0.01 * noise, 70 + i)),
    );
    const named = (of: (i: number) => Weights) => Object.fromEntries(changes.map((_, i) => [`w${i}`, of(i)]));
    const before = named((i) => random(shape, 0.02, 50 + i));
    const sides = await sidesOf([
      modelFolder('base', before),
      modelFolder(
        'tuned',
        named((i) => plus(before[`w${i}`]!, changes[i]!)),
      ),
    ]);
    const { tensors: quick } = await compareTensors(optionsOf(sides));
    const { tensors: whole } = await compareTensors(optionsOf(sides, { allSpectra: true }));
    for (const [i, { lora }] of quick.entries()) {
      const truth = whole[i]!.lora!;
      expect(lora!.potentialLora).toBe(truth.potentialLora);
      if (lora!.singularValues.length > 0) expect(lora).toEqual(truth);
      else {
        expect(lora).toMatchObject({ rank95: 65, rank95IsBound: true, effectiveRankIsBound: true });
        expect(truth.rank95).toBeGreaterThan(64);
        expect(truth.effectiveRank).toBeGreaterThanOrEqual(64);
      }
    }
    const proven = quick.map(({ lora }) => lora!.singularValues.length === 0);
    expect(proven).toEqual([false, false, false, true]);
  });

  test('spectra of all modified matrices, not of the first twenty by name', async () => {
    const names = Array.from({ length: 24 }, (_, i) => `model.layers.${i}.self_attn.q_proj.weight`);
    const before = Object.fromEntries(names.map((name, i) => [name, random([24, 24], 0.1, 100 + i)]));
    const after = Object.fromEntries(
      names.map((name, i) => [name, plus(before[name]!, lowRankDelta([24, 24], 1 + (i % 3), 0.01, 200 + i))]),
    );
    const sides = await sidesOf([modelFolder('base', before), modelFolder('tuned', after)]);
    const { tensors } = await compareTensors(optionsOf(sides));
    const ranks = new Map(
      tensors.map(({ name, lora }) => [name, lora?.singularValues.filter((s) => s > 1e-5).length]),
    );
    expect(names.map((name) => ranks.get(name))).toEqual(names.map((_, i) => 1 + (i % 3)));
  });
});

describe('what does not fit', () => {
  test('missing and differently shaped tensors are listed, and the rest is compared', async () => {
    const other = { ...tuned, [K]: random([6, 24], 1, 7), 'lm_head.weight': random([40, 24], 1, 8) };
    const { [NORM]: _, ...rest } = other;
    const { report } = await compareModels(
      optionsOf(await sidesOf([modelFolder('base', base), modelFolder('tuned', rest)])),
      [],
    );
    expect(report.onlyInBase).toEqual([NORM]);
    expect(report.onlyInFinetuned).toEqual(['lm_head.weight']);
    expect(report.shapeMismatches).toEqual([{ name: K, base: [12, 24], finetuned: [6, 24] }]);
    expect(report.tensors.map((t) => t.name)).toEqual([EMBEDDING, Q]);
    const words = report.words.join('\n');
    expect(words).toContain(`1 tensor is in the base only: ${NORM}.`);
    expect(words).toContain(`1 tensor has a different shape and was not compared: ${K} [12,24] and [6,24].`);
  });

  test('a tensor with NaN, and one that cannot be read, are reported; the others go on', async () => {
    const broken = {
      ...tuned,
      [K]: { shape: [12, 24], values: base[K]!.values.slice().fill(Number.NaN, 3, 5) },
    };
    const sides = await sidesOf([modelFolder('base', base), modelFolder('tuned', broken)]);
    const read: typeof sides.read = async (ref, begin, end) => {
      if (ref.key === EMBEDDING) throw new AmalgamError('FileChanged', 'The file changed.', 'Open it again.');
      return sides.read(ref, begin, end);
    };
    const { tensors, failed } = await compareTensors(optionsOf({ ...sides, read }));
    expect(tensors.map((t) => t.name)).toEqual([Q, NORM]);
    expect(failed).toMatchObject([
      { name: EMBEDDING, code: 'FileChanged' },
      { name: K, code: 'NonFinite', message: `${K}: 2 values of the fine-tune are NaN or infinite.` },
    ]);
  });

  test('when everything fails, that is the error', async () => {
    const sides = await sidesOf([modelFolder('base', base), modelFolder('tuned', tuned)]);
    const read = async () => {
      throw new AmalgamError('StorageFailed', 'The disk is gone.', 'Look for it.');
    };
    await expect(compareTensors(optionsOf({ ...sides, read }))).rejects.toMatchObject({
      code: 'StorageFailed',
    });
  });

  test('stops when it is canceled', async () => {
    const sides = await sidesOf([modelFolder('base', base), modelFolder('tuned', tuned)]);
    const controller = new AbortController();
    const options = optionsOf(sides, { signal: controller.signal, onTensor: () => controller.abort() });
    await expect(compareTensors(options)).rejects.toMatchObject({ code: 'Canceled' });
  });

  test('models without a common tensor, of other families, are refused in words', async () => {
    const gpt2 = { 'wte.weight': random([40, 24], 1, 1) };
    const sides = await sidesOf([
      modelFolder('base', base),
      modelFolder('tuned', gpt2, { ...CONFIG, model_type: 'gpt2' }),
    ]);
    const failure = compareTensors(optionsOf(sides));
    await expect(failure).rejects.toMatchObject({ code: 'NothingToCompare' });
    await expect(failure).rejects.toThrow(/base \(llama\) and tuned \(gpt2\) have no tensor in common/);
  });

  test('identical models are said to be identical', async () => {
    const { report } = await compareModels(
      optionsOf(await sidesOf([modelFolder('base', base), modelFolder('tuned', base)])),
      [],
    );
    expect(report.words[0]).toBe('base and tuned are identical: 4 tensors, not one bit differs.');
    expect(report.total).toMatchObject({ relative: 0, identical: 4, modified: 0 });
  });

  test('tensors of other dtypes are compared byte by byte', async () => {
    const file = (last: number) => {
      const header =
        '{"a":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},"b":{"dtype":"U8","shape":[3],"data_offsets":[16,19]}}';
      const bytes = new Uint8Array(8 + header.length + 19);
      new DataView(bytes.buffer).setBigUint64(0, BigInt(header.length), true);
      bytes.set(new TextEncoder().encode(header), 8);
      bytes[bytes.length - 1] = last;
      return bytes;
    };
    const folder = (path: string, last: number) => memoryFolder(path, { 'model.safetensors': file(last) });
    const { raw, tensors } = await compareTensors(
      optionsOf(await sidesOf([folder('base', 1), folder('tuned', 2)])),
    );
    expect(tensors).toEqual([]);
    expect(raw).toEqual([
      { name: 'a', dtype: { base: 'I64', finetuned: 'I64' }, identical: true },
      { name: 'b', dtype: { base: 'U8', finetuned: 'U8' }, identical: false },
    ]);
  });

  test('an adapter alone, and a model behind a “+”, are refused with the way to write them', async () => {
    const adapter = tinyAdapter('kitchen', factors('model.layers.0.self_attn.q_proj', 24, 24), {
      base_model_name_or_path: 'base',
    });
    const folders = [modelFolder('base', base), modelFolder('tuned', tuned), adapter];
    await expect(sidesOf(folders, 'base', 'kitchen')).rejects.toMatchObject({
      code: 'Usage',
      message: 'kitchen is an adapter, not a model.',
      hint: 'Write the model it belongs to in front of it: base+kitchen. LoRAs alone are combined by a recipe.',
    });
    await expect(sidesOf(folders, 'base', 'base+tuned')).rejects.toThrow(/it is a whole model/);
  });
});

describe('adapters and heads', () => {
  test('a head of its own is compared with the embedding of a tied base', async () => {
    const head = { ...base, 'lm_head.weight': plus(base[EMBEDDING]!, random([40, 24], 0.1, 9)) };
    const sides = await sidesOf([
      modelFolder('base', base, { ...CONFIG, tie_word_embeddings: true }),
      modelFolder('tuned', head),
    ]);
    const { tensors, onlyInFinetuned } = await compareTensors(optionsOf(sides));
    expect(onlyInFinetuned).toEqual([]);
    expect(tensors.find((t) => t.name === 'lm_head.weight')!.modified).toBe(true);
    expect(sides.notes.join(' ')).toMatch(/head of its own/);
  });
});
