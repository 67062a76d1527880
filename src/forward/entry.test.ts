/** Passes that begin in the middle, and the stream behind the final norm. */
import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { resolveArchitecture } from '../models/resolution';
import { loadGolden, values } from './golden.test.fixture';
import type { Taps } from './pass';
import { openRunner } from './runner';
import { readRows, sourceOf, TIGHT } from './runner.test.cases';

const read = async (path: string) => new Uint8Array(await readFile(path));

async function open(name: string, options = {}) {
  const golden = await loadGolden(name, read);
  const architecture = resolveArchitecture(golden.config);
  return { golden, runner: openRunner(createCpuBackend(), architecture, sourceOf(golden.weights), options) };
}

describe('a pass that begins in the middle', () => {
  it.each([
    ['llama', {}],
    ['gemma2', TIGHT],
    ['gpt2', TIGHT],
    ['opt_postnorm_proj', {}],
  ])('%s gives the same bits as the whole one', async (name, options) => {
    const { golden, runner } = await open(name, options);
    const { ids } = golden;
    const sequences = [
      { ids, from: 0 },
      { ids: ids.slice(0, 7), from: 0 },
    ];
    const streams: Float32Array<ArrayBuffer>[][] = [];
    const tap: Taps = {
      async residual(layer, rows) {
        streams[layer] ??= [];
        streams[layer].push((await readRows(rows)) as Float32Array<ArrayBuffer>);
      },
    };
    const whole = await runner.pass({ sequences, output: 'logits', taps: tap });
    for (const layer of runner.architecture.blocks.keys()) {
      const enter = { layer, streams: streams[layer]! };
      const pass = runner.startPass({ sequences, output: 'logits', enter });
      let steps = 1;
      while (await pass.step()) steps++;
      expect(steps).toBe(pass.steps);
      const { logits } = await pass.result();
      pass.close();
      expect(logits).toEqual(whole.logits);
    }
    runner.close();
  });

  it('refuses the stream of other sequences', async () => {
    const { golden, runner } = await open('llama');
    await expect(
      runner.pass({
        sequences: [{ ids: golden.ids }],
        output: 'none',
        enter: { layer: 1, streams: [new Float32Array(64)] },
      }),
    ).rejects.toMatchObject({ code: 'Internal' });
  });
});

describe('the stream behind the final norm', () => {
  it.each(['llama', 'opt_postnorm_proj'])('%s', async (name) => {
    const { golden, runner } = await open(name);
    const { final, hidden, blocks } = runner.architecture;
    const seen: Record<string, Float32Array> = {};
    await runner.pass({
      sequences: [{ ids: golden.ids }],
      output: 'none',
      taps: {
        async residual(layer, rows) {
          if (layer === blocks.length) seen.stream = await readRows(rows);
        },
        async normed(rows) {
          seen.normed = await readRows(rows);
        },
      },
    });
    const { stream, normed } = seen;
    const weight = final.norm && values(golden.weights.get(String(final.norm.weight))!);
    for (let r = 0; r < golden.ids.length; r++) {
      const row = stream!.subarray(r * hidden, (r + 1) * hidden);
      const square = row.reduce((sum, x) => sum + x * x, 0) / hidden;
      for (const [i, x] of row.entries()) {
        const wanted = weight ? (x / Math.sqrt(square + final.norm!.epsilon)) * weight[i]! : x;
        expect(normed![r * hidden + i]).toBeCloseTo(wanted, 5);
      }
    }
    runner.close();
  });
});
