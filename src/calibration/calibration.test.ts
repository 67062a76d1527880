import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { conversationLine } from '../formats/conversations';
import type { Runner } from '../forward/runner';
import { openModels } from '../host/models';
import { tinyModel } from '../inputs/memory-models.test.support';
import { calibrationHash, cutWindows, heldOutSize, readingOf, tokenCounts } from './calibration';
import { calibrationSource, singlePlan } from './calibration-context';

const ids = Array.from({ length: 1000 }, (_, i) => i);

test('conversations are read as the model’s own chat template writes them, with nothing put in front', async () => {
  const models = openModels(() => ({ url: 'https://hub.invalid' }));
  const files = {
    'tokenizer_config.json': {
      chat_template: '{{ bos_token }}{% for m in messages %}{{ m.content }}.{% endfor %}',
      bos_token: 'B',
    },
  };
  await models.add(tinyModel('tuned', { files }), 'tuned');
  await models.add(tinyModel('base'), 'base');
  const line = conversationLine([
    { role: 'user', content: 'a' },
    { role: 'assistant', content: 'b' },
  ]);
  models.texts.add('chats', `${line}\n${line}`);
  const { signal } = new AbortController();
  const sourceFor = async (model: string) => {
    const plan = await singlePlan(model, models);
    return calibrationSource('chats', plan, plan.recipe, models, signal);
  };
  const source = await sourceFor('tuned');
  expect(source).toEqual({ kind: 'text', name: 'chats', text: 'Ba.b.Ba.b.', rendered: true });
  const reader = {
    runner: { architecture: {} } as Runner,
    prefix: async () => [7],
    encode: async (t: string) => [...t].map((c) => c.charCodeAt(0)),
  };
  const [ids] = await readingOf(source, { windows: 1, length: 4 }, reader, { use: 'calibration' });
  expect(String.fromCharCode(...ids!)).toBe('Ba.b');
  await expect(sourceFor('base')).rejects.toMatchObject({ code: 'TokenizerUnsupported' });
});

describe('windows over a text', () => {
  test('are as many and as long as asked, from the first token to the last, in order', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 40 }), fc.integer({ min: 8, max: 200 }), (windows, length) => {
        const cut = cutWindows(ids, { windows, length }, 'text');
        expect(cut.map((w) => w.length)).toEqual(Array.from({ length: windows }, () => length));
        expect(cut[0]![0]).toBe(0);
        expect(cut.at(-1)!.at(-1)).toBe(999);
        for (const window of cut) expect(window.at(-1)! - window[0]!).toBe(length - 1);
        for (let i = 1; i < windows; i++) expect(cut[i]![0]).toBeGreaterThan(cut[i - 1]![0]!);
      }),
    );
  });

  test('do not overlap where the text is long enough', () => {
    const cut = cutWindows(ids, { windows: 10, length: 100 }, 'text');
    expect(new Set(cut.flat()).size).toBe(1000);
  });

  test('of a text that is too short are refused, never filled up', () => {
    expect(() => cutWindows(ids.slice(0, 99), { windows: 1, length: 100 }, 'my.txt')).toThrow(
      expect.objectContaining({ code: 'TextTooShort', message: expect.stringContaining('my.txt') }),
    );
    expect(() => cutWindows(ids.slice(0, 105), { windows: 8, length: 100 }, 'my.txt')).toThrow(
      expect.objectContaining({ code: 'TextTooShort' }),
    );
  });
});

test('the hash of a calibration depends on all that determines what is read, and nothing else', async () => {
  const size = { windows: 8, length: 64 };
  const hashes = await Promise.all([
    calibrationHash({ kind: 'self', seed: 0 }, size),
    calibrationHash({ kind: 'self', seed: 1 }, size),
    calibrationHash({ kind: 'self', seed: 0 }, { ...size, windows: 9 }),
    calibrationHash({ kind: 'self', seed: 0 }, { ...size, length: 65 }),
    calibrationHash({ kind: 'text', name: 'a', text: 'some' }, size),
    calibrationHash({ kind: 'text', name: 'a', text: 'other' }, size),
    calibrationHash({ kind: 'text', name: 'a', text: 'other', rendered: true }, size),
    calibrationHash({ kind: 'tokens', name: 'a', ids: [1, 2], heldOut: false }, size),
    calibrationHash({ kind: 'tokens', name: 'a', ids: [1, 3], heldOut: false }, size),
    calibrationHash({ kind: 'tokens', name: 'a', ids: [1, 2], heldOut: true }, size),
  ]);
  expect(new Set(hashes).size).toBe(hashes.length);
  expect(await calibrationHash({ kind: 'text', name: 'b', text: 'some' }, size)).toBe(hashes[4]);
});

describe('token ids that are given', () => {
  const size = { windows: 10, length: 100 };
  const runner = { architecture: { maxPositions: undefined } } as unknown as Runner;
  const never = () => Promise.reject(new Error('no tokenizer is wanted'));
  const read = (heldOut: boolean, use: 'calibration' | 'held-out') =>
    readingOf(
      { kind: 'tokens', name: 'ids.json', ids, heldOut },
      size,
      { runner, prefix: never, encode: never },
      { use },
    );

  test('are read from the first to the last, as they are', async () => {
    expect((await read(false, 'calibration')).flat()).toEqual(ids);
  });

  test('leave their last tenth to the search for λ', async () => {
    expect((await read(true, 'calibration')).at(-1)!.at(-1)).toBe(899);
    await expect(read(true, 'held-out')).rejects.toMatchObject({ code: 'TextTooShort' });
  });
});

test('λ is measured on a quarter of the calibration, 8 to 32 windows', () => {
  const windows = (n: number) => heldOutSize({ windows: n, length: 256 }).windows;
  expect([1, 32, 100, 128, 4096].map(windows)).toEqual([8, 8, 25, 32, 32]);
});

test('token counts', () => {
  expect([
    ...tokenCounts(
      [
        [1, 2, 2],
        [2, 0],
      ],
      4,
    ),
  ]).toEqual([1, 1, 3, 0]);
});
