import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { depthInNode } from '../../../e2e/collapse-in-node';
import { GOLDEN_FOLDER, loadGolden, values } from '../../forward/golden.test.fixture';
import { cutTexts } from './calibration';
import { groupSequences, measureLayers, measureSteps } from './measures';
import { wholeStack } from './stack';

describe('cutTexts', () => {
  const ids = (n: number) => Array.from({ length: n }, (_, i) => i);
  it('cuts each text by itself, without overlap and without losing a token', () => {
    const cut = cutTexts([ids(10), ids(3)], 4).map((s) => [...(s.ids as number[])]);
    expect(cut).toEqual([
      [0, 1, 2, 3],
      [4, 5, 6, 7],
      [8, 9],
      [0, 1, 2],
    ]);
  });
  it.each([
    [[], 256, 'TextEmpty', /no calibration text/],
    [[ids(20), []], 256, 'TextEmpty', /text 2 has no tokens/],
    [[ids(7)], 256, 'TextTooShort', /7 tokens; 8 is the least/],
  ])('%j in windows of %d is refused', (texts, window, code, words) => {
    expect(() => cutTexts(texts, window)).toThrow(expect.objectContaining({ code }));
    expect(() => cutTexts(texts, window)).toThrow(words);
  });
  it('groups whole sequences', () => {
    const groups = groupSequences(cutTexts([ids(10), ids(3)], 4), 8);
    expect(groups.map((g) => g.map((s) => s.ids.length))).toEqual([
      [4, 4],
      [2, 3],
    ]);
    expect(groupSequences(cutTexts([ids(10)], 8), 4).map((g) => g.length)).toEqual([1, 1]);
  });
});

describe('measureLayers', () => {
  it('is what the golden streams of every family say', async () => {
    for (const name of ['llama', 'gpt2', 'gemma3', 'opt']) {
      const golden = await loadGolden(name, async (path) => new Uint8Array(await readFile(path)));
      const depth = await depthInNode(GOLDEN_FOLDER, name);
      const { blocks, hidden } = depth.model.architecture;
      const { runner, close } = await depth.open(wholeStack(blocks.length));
      const sequences = cutTexts([golden.ids], golden.ids.length);
      let steps = 0;
      const { influence, distance } = await measureLayers(runner, sequences, golden.ids.length, {
        onStep: () => steps++,
      });
      expect(steps).toBeLessThanOrEqual(measureSteps(runner, sequences));
      // written by transformers: the stream as it enters each layer
      const key = [...golden.golden.keys()].filter((k) => /resid/.test(k)).sort();
      expect(key.length, name).toBeGreaterThanOrEqual(blocks.length);
      const streams = key.map((k) => values(golden.golden.get(k)!));
      const cosine = (i: number, j: number, t: number) => {
        const at = (x: Float64Array) => x.subarray(t * hidden, (t + 1) * hidden);
        const product = (x: Float64Array, y: Float64Array) => x.reduce((sum, v, k) => sum + v * y[k]!, 0);
        const [a, b] = [at(streams[i]!), at(streams[j]!)];
        return product(a, b) / Math.sqrt(product(a, a) * product(b, b));
      };
      const tokens = golden.ids.map((_, t) => t);
      for (let i = 0; i + 1 < key.length; i++) {
        const wanted = tokens.reduce((sum, t) => sum + 1 - cosine(i, i + 1, t), 0) / tokens.length;
        expect(influence[i], `${name} ${i}`).toBeCloseTo(wanted, 4);
        const last = Math.acos(cosine(0, i + 1, tokens.length - 1)) / Math.PI;
        expect(distance[0]![i + 1]).toBeCloseTo(last, 4);
        expect(distance[i + 1]![0]).toBe(distance[0]![i + 1]);
      }
      close();
    }
  });

  it('counts the last tokens of whole windows only, where there are any', async () => {
    const depth = await depthInNode(GOLDEN_FOLDER, 'llama');
    const { runner, close } = await depth.open(wholeStack(2));
    const ids = Array.from({ length: 20 }, (_, i) => (i * 7 + 3) % 90);
    const one = await measureLayers(runner, cutTexts([ids.slice(0, 12)], 12), 12);
    const both = await measureLayers(runner, cutTexts([ids], 12), 12);
    expect(both.distance).toEqual(one.distance);
    expect(both.influence).not.toEqual(one.influence);
    const short = await measureLayers(runner, cutTexts([ids.slice(0, 12)], 256), 256);
    expect(short.distance).toEqual(one.distance);
    close();
  });
});
