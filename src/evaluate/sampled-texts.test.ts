import { describe, expect, it } from 'vitest';
import type { Runner } from '../forward/runner';
import { partOf } from '../models/architecture';
import { openSample, sampleTokenizer } from './sample.test.fixture';
import { generateMany, sequencesAtOnce } from './sampled-texts';

const prefix = sampleTokenizer.prefix.length > 0 ? sampleTokenizer.prefix : [1];
const options = { count: 7, length: 12, temperature: 1, seed: 5, prefix };

describe('many sequences at once', () => {
  it('are as long as asked for, begin alike, differ, and do not depend on how many run together', async () => {
    const runner = openSample('base');
    const all = await generateMany(runner, options);
    expect(all.map((ids) => ids.length)).toEqual(Array(7).fill(12));
    expect(all.map((ids) => ids.slice(0, prefix.length))).toEqual(Array(7).fill(prefix));
    expect(new Set(all.map((ids) => ids.join())).size).toBe(7);
    for (const atOnce of [1, 3, 4]) {
      expect(await generateMany(runner, { ...options, atOnce })).toEqual(all);
    }
    expect((await generateMany(runner, { ...options, count: 2 }))[1]).toEqual(all[1]);
    expect(await generateMany(runner, { ...options, seed: 6 })).not.toEqual(all);
  });

  it('run one new token of each in a step, in even batches', async () => {
    const runner = openSample('base');
    const batches: number[] = [];
    const counted: Runner = {
      ...runner,
      pass(request, onStep) {
        batches.push(request.sequences.length);
        return runner.pass(request, onStep);
      },
    };
    const told: number[] = [];
    await generateMany(counted, {
      ...options,
      length: prefix.length + 2,
      atOnce: 5,
      onProgress: ({ tokensDone, tokens }) => told.push(tokensDone / tokens),
    });
    // 4 and 3; the prefix, which all share, is run once
    expect(batches).toEqual([1, 4, 1, 3]);
    expect(told).toEqual([4 / 14, 8 / 14, 11 / 14, 1]);
  });

  it('are as many at once as their keys fit the engine', () => {
    const runner = openSample('base');
    const attention = partOf(runner.architecture.blocks[0]!, 'attention')!;
    const layer = 4 * 100 * attention.keyValueHeads * attention.headDim;
    const small: Runner = { ...runner, engine: { ...runner.engine, maxBufferBytes: 3.5 * layer } };
    expect(sequencesAtOnce(small, 100)).toBe(3);
    expect(sequencesAtOnce({ ...small, engine: { ...runner.engine, maxBufferBytes: 1 } }, 100)).toBe(1);
  });

  it('are refused when they make no sense, and stop when asked', async () => {
    const runner = openSample('base');
    const run = (change: object) => generateMany(runner, { ...options, ...change });
    await expect(run({ prefix: [] })).rejects.toMatchObject({ code: 'TextEmpty' });
    await expect(run({ prefix: [10 ** 6] })).rejects.toMatchObject({ code: 'TokenOutOfRange' });
    await expect(run({ length: prefix.length })).rejects.toMatchObject({ code: 'Usage' });
    await expect(run({ count: 0 })).rejects.toMatchObject({ code: 'Usage' });
    await expect(run({ temperature: 0 })).rejects.toMatchObject({ code: 'Usage' });
    const short: Runner = { ...runner, architecture: { ...runner.architecture, maxPositions: 11 } };
    await expect(generateMany(short, options)).rejects.toMatchObject({ code: 'ContextTooLong' });
    const stop = new AbortController();
    const stopped = run({ signal: stop.signal, onProgress: () => stop.abort() });
    await expect(stopped).rejects.toMatchObject({ code: 'Canceled' });
  });
});
