import { afterAll, expect, test, vi } from 'vitest';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { methods } from '../merge/methods';
import { fakeStorage } from '../store/opfs.test.fake';
import { furthest, MODELS, ofWritten, openLive, planned, turned } from './live-weights.test.fixture';
import { openPlannedWeights } from './planned-weights';

vi.stubGlobal('navigator', fakeStorage().navigator);
afterAll(() => vi.unstubAllGlobals());

const ROOM = 2 ** 30;

/** Those whose merge is the base plus changes, whatever the values are: where there is room, these stay apart. */
const LINEAR = ['linear', 'task_arithmetic'];

test.each(
  methods.map(({ id, models, modelParameters }) => [id, models.max, 'weight' in modelParameters] as const),
)(
  '%s: a recipe that changes in use gives the logits of what the changed one writes',
  async (id, most, weighs) => {
    const models = MODELS.slice(0, most);
    const { before, after, difference, isSum } = await turned(
      { id, models, weights: [0.7, 0.7, 0.7] },
      { id, models, weights: [0.2, 1.1, 0.5], ...(id === 'gram' && { lambda: 0.5 }) },
      LINEAR.includes(id) ? 0 : ROOM,
    );
    expect(isSum).toBe(false);
    expect(difference).toBeLessThan(1e-5);
    if (weighs) expect(after).not.toEqual(before);
  },
);

test.each([
  ['task_arithmetic', [0.2, 1.1], 0.4],
  ['task_arithmetic', [0, 0], 1],
  ['linear', [0.25, 0.75], undefined],
] as const)(
  '%s of LoRAs at %j, λ %s: weights are scales, and no stored weight is read again',
  async (id, weights, lambda) => {
    const at = (dtype?: 'bfloat16') => {
      const one = { id, models: MODELS.slice(0, 2), ...(dtype && { dtype }) };
      return turned(
        { ...one, weights: [0.7, 0.7] },
        { ...one, weights, ...(lambda !== undefined && { lambda }) },
      );
    };
    const { difference, before, after } = await at();
    expect(difference).toBeLessThan(1e-5);
    expect(after).not.toEqual(before);
    // as the base is stored, no tensor has another dtype than it
    const { changed, again, difference: rounding } = await at('bfloat16');
    expect(rounding).toBeLessThan(0.02);
    expect(changed.weights).toEqual(new Set());
    expect(changed.updates.size).toBeGreaterThan(0);
    expect(again).toBe(0);
  },
);

test.each(['ties', 'task_arithmetic'])(
  '%s: whoever stops while tensors are merged again is heard in the middle of one',
  async (id) => {
    const at = (weight: number) => ({ id, models: MODELS, weights: [weight, 0.7, 0.7] });
    const engine = createCpuBackend();
    const live = await openLive(at(0.7), engine, 0);
    const stop = new AbortController();
    const tensors: string[] = [];
    live.read.onRead = (key) => {
      if (/proj/.test(key)) tensors.push(key);
      if (tensors.length === 8) stop.abort();
    };
    const logitsOf = async ({ pass }: typeof live.runner, signal?: AbortSignal) => {
      const sequences = [{ ids: [5, 6, 7], from: 1 }];
      return (await pass({ sequences, output: 'logits', ...(signal && { signal }) })).logits[0]!;
    };
    await expect(logitsOf(live.runner, stop.signal)).rejects.toMatchObject({ code: 'Canceled' });
    expect(tensors.length).toBe(8);
    const after = await logitsOf(live.runner);
    live.close();
    engine.close();
    const fresh = await ofWritten(at(0.7), logitsOf);
    expect(furthest(after, fresh)).toBeLessThan(1e-5);
  },
);

test.each(
  LINEAR.flatMap((id) =>
    [
      [0.2, 1.1, 0.5],
      [0.5, 0.5, 0],
      [0.1, 0, 0.9],
    ].map((weights) => [id, weights] as const),
  ),
)(
  '%s at %j with a whole contributor: its difference stays, and only vectors and rows of the embedding are merged',
  async (id, weights) => {
    const from = { id, models: MODELS, weights: [0.7, 0.7, 0.7] };
    const turn = await turned(from, { ...from, weights }, ROOM);
    const { difference, before, after, changed, stored } = turn;
    const asWritten = await turned(
      { ...from, dtype: 'bfloat16' },
      { ...from, weights, dtype: 'bfloat16' },
      ROOM,
    );
    expect(turn.isSum).toBe(true);
    expect(after).not.toEqual(before);
    // a change in BF16 is exact to 2⁻⁹ of itself, far less than BF16 takes from what is written
    expect(difference).toBeLessThan(1e-3);
    expect(difference).toBeLessThan(furthest(turn.expected, asWritten.expected) / 8);
    const isMatrix = (name: string) => !/norm|embed_tokens/.test(name);
    expect([...stored, ...changed.weights].filter(isMatrix)).toEqual([]);
    expect([...changed.updates].some(isMatrix)).toBe(true);
    expect(asWritten.difference).toBeLessThan(0.02);
  },
);

test('differences that do not fit are merged, as they are when the method no longer is linear', async () => {
  const from = { id: 'task_arithmetic', models: MODELS, weights: [0.7, 0.7, 0.7] };
  const tight = await turned(from, { ...from, weights: [0.2, 1.1, 0.5] }, 2 ** 16);
  expect([tight.isSum, tight.difference < 1e-5]).toEqual([false, true]);
  const other = await turned(from, { ...from, id: 'ties' }, ROOM);
  expect([other.isSum, other.difference < 1e-5]).toEqual([false, true]);
});

test.each(['linear', 'task_arithmetic', 'dare_linear'])(
  '%s: a row of a merged table has the bytes that the whole table has there',
  async (id) => {
    const { plan, read } = await planned({ id, models: MODELS, weights: [0.2, 1.1, 0.5], dtype: 'bfloat16' });
    const engine = createCpuBackend();
    let bytesRead = 0;
    const counted: typeof read = (ref, begin, end) => {
      bytesRead += end - begin;
      return read(ref, begin, end);
    };
    const table = plan.tensors.find(({ name }) => name.includes('embed_tokens'))!;
    const rowBytes = 2 * table.shape[1]!;
    const open = () => openPlannedWeights(plan, [engine], counted, false);
    const [whole, rows] = [await open(), await open()];
    const all = await whole.read(table.name, 0, 2 * table.elements);
    const ofAll = bytesRead;
    for (const row of [0, 3, 250]) {
      const [begin, end] = [row * rowBytes, (row + 1) * rowBytes];
      expect(await rows.read(table.name, begin, end)).toEqual(all.slice(begin, end));
    }
    const isCut = bytesRead - ofAll < ofAll / 16;
    expect(isCut).toBe(id !== 'dare_linear');
    for (const weights of [whole, rows]) weights.close();
    engine.close();
  },
);
