/** Whole transplants in memory: each row against what the tokens say it is, in f64. */
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { readTensors } from '../../../e2e/merge-in-node';
import { factors, tinyAdapter } from '../../inputs/memory-models.test.support';
import { fakeStorage } from '../../store/opfs.test.fake';
import type { TransplantForm } from './options';
import { nearestByLoops, pursuedByLoops } from './oracle.test.support';
import { folderOf, type Spec, transplantIn, valuesOf } from './transplant.test.support';

beforeEach(() => vi.stubGlobal('navigator', fakeStorage().navigator));

const LETTERS = Array.from('abcdefghij');
/** Letters, spaced letters, a line's end and a byte, as SentencePiece writes them; special ones by other names. */
const MODEL: Spec = {
  tokens: [...LETTERS, ...LETTERS.slice(0, 6).map((c) => `▁${c}`), '▁', '<0x0A>', '<0xC3>', 'é'],
  special: ['<s>', '</s>', '<unk>'],
  width: 12,
  head: true,
  spelling: 'marks',
  settings: { bos_token: '<s>', eos_token: '</s>', unk_token: '<unk>' },
  config: { bos_token_id: 20, eos_token_id: 21, pad_token_id: 22 },
  seed: 11,
};
/** Others, in another order, as bytes: `Ġa`, `Ċ`, `Ã`, `Ã©`. New: `ab`, ` ba`, `k`, `Ġ ` with two spaces, and a special one. */
const DONOR: Spec = {
  tokens: ['Ġ', ...LETTERS.toReversed(), 'Ġb', 'Ġa', 'ab', 'Ġba', 'Ċ', 'Ã', 'Ã©', 'ĠĠ', 'k'],
  special: ['<|end|>', '<|user|>'],
  width: 8,
  spelling: 'bytes',
  settings: { eos_token: '<|end|>', pad_token: '<|end|>' },
  config: { bos_token_id: null, eos_token_id: 20 },
  seed: 31,
};
/** Row of the model for each token of the donor; undefined for new ones. */
const SHARED: (number | undefined)[] = [
  16,
  ...LETTERS.map((_, i) => 9 - i),
  ...[11, 10, undefined, undefined, 17, 18, 19, undefined, undefined],
  ...[21, undefined],
];
/** Pieces of the new tokens, rows of the model: `ab`, ` ba`, two spaces, and nothing for `k` and the special one. */
const PIECES = new Map([
  [13, [0, 1]],
  [14, [16, 1, 0]],
  [18, [16, 16]],
]);
const NEW = SHARED.flatMap((row, id) => (row === undefined ? [id] : []));
const rowsIn = (values: Float32Array, width: number) =>
  Array.from({ length: values.length / width }, (_, i) => [...values.subarray(i * width, (i + 1) * width)]);
const norm = (row: readonly number[]) => Math.hypot(...row);
const sum = (rows: number[][], weights: number[]) =>
  rows[0]!.map((_, c) => rows.reduce((all, row, i) => all + weights[i]! * row[c]!, 0));
const meanOf = (rows: number[][]) =>
  sum(
    rows,
    rows.map(() => 1 / rows.length),
  );

/** Every row of the output, in f64. */
function wantedRows(own: number[][], donor: number[][], form: Partial<TransplantForm>, isHead: boolean) {
  const shared = SHARED.flatMap((row, id) => (row === undefined ? [] : [{ id, row }]));
  const landmarks = shared.slice(0, form.landmarks);
  const make = (id: number): number[] => {
    const dictionary = landmarks.map((one) => donor[one.id]!);
    const rowsOf = (rows: number[]) => rows.map((row) => own[landmarks[row]!.row]!);
    if (form.way === 'omp') {
      const { rows, weights } = pursuedByLoops(donor[id]!, dictionary, form.k!);
      return sum(rowsOf(rows), weights);
    }
    if (form.way === 'neighbors') {
      const { rows, weights } = nearestByLoops(donor[id]!, dictionary, form.nearest!);
      return sum(rowsOf(rows), weights);
    }
    const pieces = form.way === 'subwords' ? PIECES.get(id) : undefined;
    if (!pieces) return form.way === 'zero' ? own[0]!.map(() => 0) : meanOf(own);
    const of = pieces.map((row) => own[row]!);
    const last = isHead ? 0 : of.length - 1;
    if (form.weighting === 'end') return of[last]!;
    const places = of.map((_, i) => (isHead ? of.length - i : i + 1));
    const factors = form.weighting === 'weighted' ? places : of.map(() => 1);
    const total = form.weighting === 'sum' ? 1 : factors.reduce((x, y) => x + y, 0);
    return sum(
      of,
      factors.map((factor) => factor / total),
    );
  };
  const mean = (all: number[]) => all.reduce((a, b) => a + b, 0) / all.length;
  const here = mean(shared.map(({ row }) => norm(own[row]!)));
  const there = mean(shared.map(({ id }) => norm(donor[id]!)));
  return SHARED.map((row, id) => {
    if (row !== undefined) return own[row]!;
    const made = make(id);
    const lengths = { made: norm(made), shared: here, donor: (norm(donor[id]!) * here) / there };
    const length = norm(made) === 0 ? 1 : lengths[form.magnitude ?? 'made'] / norm(made);
    return made.map((value) => value * length);
  });
}

describe('every way, embedding and head, equal to f64', () => {
  test.each<Partial<TransplantForm>>([
    { way: 'omp', k: 4 },
    { way: 'omp', k: 64, magnitude: 'shared' },
    { way: 'omp', k: 3, landmarks: 6, magnitude: 'donor' },
    { way: 'neighbors', nearest: 3 },
    { way: 'neighbors', nearest: 1, magnitude: 'donor' },
    { way: 'subwords' },
    { way: 'subwords', weighting: 'weighted' },
    { way: 'subwords', weighting: 'end', magnitude: 'shared' },
    { way: 'subwords', weighting: 'sum' },
    { way: 'mean', magnitude: 'shared' },
    { way: 'zero' },
  ])('%j', async (form) => {
    const [model, donor] = [folderOf('m', MODEL), folderOf('d', DONOR)];
    const { tensors, report, json } = await transplantIn({ model, donor }, form);
    expect(report.tokens).toEqual({ shared: 17, special: 1, new: 5 });
    expect(report.rows).toEqual({ before: 23, after: 22 });
    // the donor's head is its embedding
    const there = rowsIn(valuesOf(DONOR).embedding, 8);
    for (const [name, values] of [
      ['model.embed_tokens.weight', valuesOf(MODEL).embedding],
      ['lm_head.weight', valuesOf(MODEL).head],
    ] as const) {
      const own = rowsIn(values, 12);
      const wanted = wantedRows(own, there, { landmarks: 99, ...form }, name === 'lm_head.weight');
      const found = rowsIn(tensors.get(name)!, 12);
      expect(found).toHaveLength(22);
      for (const [id, row] of found.entries()) {
        for (const [c, value] of row.entries()) {
          const what = `${name} ${id} ${c}`;
          if (NEW.includes(id)) expect(value, what).toBeCloseTo(wanted[id]![c]!, 5);
          else expect(value, what).toBe(wanted[id]![c]);
        }
      }
    }
    const config = { vocab_size: 22, eos_token_id: 20, bos_token_id: null, pad_token_id: 20 };
    expect(json('config.json')).toMatchObject(config);
  });
});

test('where the donor has a head of its own, rows of the head are fitted to it', async () => {
  const donor = { ...DONOR, head: true };
  const form = { way: 'omp', k: 3, landmarks: 99 } as const;
  const { tensors, report } = await transplantIn(
    { model: folderOf('m', MODEL), donor: folderOf('d', donor) },
    form,
  );
  const own = rowsIn(valuesOf(MODEL).head, 12);
  const wanted = wantedRows(own, rowsIn(valuesOf(donor).head, 8), form, true);
  const found = rowsIn(tensors.get('lm_head.weight')!, 12);
  for (const id of NEW) for (const c of own[0]!.keys()) expect(found[id]![c]).toBeCloseTo(wanted[id]![c]!, 5);
  expect(report.left.map(({ tensor }) => tensor)).toEqual(['model.embed_tokens.weight', 'lm_head.weight']);
});

describe('what has to hold', () => {
  test('onto itself every byte stays', async () => {
    const model = folderOf('m', { ...MODEL, dtype: 'BF16' });
    const { bytes, report } = await transplantIn({ model, donor: model });
    const file = model.files.find(({ path }) => path === 'model.safetensors')!;
    const before = readTensors(await file.open().read(0, file.byteLength), 'm');
    expect(bytes.size).toBe(3);
    for (const [name, own] of bytes) expect(own, name).toEqual(before.get(name)!.bytes);
    expect(report.tokens).toMatchObject({ shared: 23, new: 0 });
  });

  test('where the donor has no other tokens, rows only move: byte for byte', async () => {
    const tokens = ['Ċ', 'Ġ', ...LETTERS.toReversed(), 'Ã'];
    const donor = folderOf('d', { ...DONOR, tokens, special: [], settings: {}, config: {} });
    const spec = { ...MODEL, dtype: 'BF16' as const };
    const { tensors, report } = await transplantIn({ model: folderOf('m', spec), donor });
    expect(report.tokens).toEqual({ shared: 13, special: 0, new: 0 });
    const own = rowsIn(valuesOf(spec).embedding, 12);
    const moved = [17, 16, ...LETTERS.map((_, i) => 9 - i), 18].map((row) => own[row]!);
    expect(rowsIn(tensors.get('model.embed_tokens.weight')!, 12)).toEqual(moved);
  });

  test('a negative zero of a row that is taken over stays one beside rows that are made', async () => {
    const change = (embedding: Float32Array) => embedding.set([-0]);
    const model = folderOf('m', { ...MODEL, dtype: 'BF16', head: false, change });
    const donor = folderOf('d', DONOR);
    const { tensors, bytes } = await transplantIn({ model, donor }, { way: 'omp', k: 2 });
    expect(bytes.get('model.embed_tokens.weight')).toHaveLength(2 * 22 * 12);
    // `a` is row 0 of the model, and the donor's token 10
    expect(Object.is(tensors.get('model.embed_tokens.weight')![10 * 12], -0)).toBe(true);
  });

  test('rows without a token are the mean of the model, up to the multiple asked for', async () => {
    const models = { model: folderOf('m', MODEL), donor: folderOf('d', DONOR) };
    const { tensors, json, report } = await transplantIn(models, { way: 'zero', padToMultipleOf: 16 });
    expect(json('config.json')).toMatchObject({ vocab_size: 32 });
    expect(report.rows.after).toBe(32);
    const rows = rowsIn(tensors.get('lm_head.weight')!, 12);
    const mean = meanOf(rowsIn(valuesOf(MODEL).head, 12));
    for (const row of rows.slice(22)) {
      for (const [c, value] of row.entries()) expect(value).toBeCloseTo(mean[c]!, 6);
    }
  });

  test('an adapter on the embedding is in every row', async () => {
    const model = folderOf('m', { ...MODEL, head: false });
    const shapes = factors('base_model.model.model.embed_tokens', 23, 12);
    const adapter = tinyAdapter('lora', shapes, { target_modules: ['embed_tokens'] });
    const donor = folderOf('d', DONOR);
    const request = { model: 'm+lora' };
    const { tensors } = await transplantIn({ model, donor, more: [adapter] }, { way: 'mean' }, request);
    expect(tensors.get('model.embed_tokens.weight')).toHaveLength(22 * 12);
  });

  test('tokens that nobody knows are refused in words', async () => {
    const donor = folderOf('d', { ...DONOR, files: { 'tokenizer.json': '{}' } });
    await expect(transplantIn({ model: folderOf('m', MODEL), donor })).rejects.toThrow(/names no tokens/);
  });
});
