/** The runner against the goldens, on either engine: stream after every block, logits, losses, Gram matrices. */
import { afterAll, describe, expect, it } from 'vitest';
import type { Backend } from '../backend/backend';
import type { WeightDtype } from '../formats/dtype';
import { resolveArchitecture } from '../models/resolution';
import {
  deviation,
  type FileTensor,
  type Golden,
  loadGolden,
  type ReadFile,
  values,
} from './golden.test.fixture';
import type { TappedRows } from './pass';
import { openRunner, type Runner, type RunnerOptions } from './runner';
import type { LowRankUpdate, WeightSource } from './weight-source';

/** Everything small, nothing stays: two pieces a sequence, several tiles a weight, layers that come and go. */
export const TIGHT: RunnerOptions = { tileBytes: 4096, activationBytes: 0, streamBytes: 0 };
/** Everything stays. */
export const ROOMY: RunnerOptions = { residentBytes: 2 ** 30 };

export function sourceOf(
  tensors: ReadonlyMap<string, FileTensor>,
  updates?: ReadonlyMap<string, LowRankUpdate>,
): WeightSource {
  return {
    tensors: new Map(
      [...tensors].map(([name, t]) => [name, { dtype: t.dtype as WeightDtype, shape: t.shape }]),
    ),
    read: async (name, begin, end) => tensors.get(name)!.bytes.slice(begin, end),
    ...(updates && { updates }),
  };
}

/** The rows a tap sees, as [rows · width]. */
export async function readRows({ buffer, rows, width, stride, queue }: TappedRows): Promise<Float32Array> {
  const [bytes] = await queue.read([{ buffer, byteLength: rows * stride * 4 }]);
  const all = new Float32Array(bytes!.buffer);
  const out = new Float32Array(rows * width);
  for (let r = 0; r < rows; r++) out.set(all.subarray(r * stride, r * stride + width), r * width);
  return out;
}

/** @param spelling of the config, where a fixture has both: the current one, or `config.legacy.json` */
export function describeGoldens(
  title: string,
  names: readonly string[],
  read: ReadFile,
  openBackend: () => Promise<Backend>,
  options: RunnerOptions,
  spelling: 'current' | 'legacy' = 'current',
): void {
  describe(title, () => {
    let engine: Promise<Backend> | undefined;
    afterAll(async () => (await engine)?.close());

    it.each(names)('%s', async (name) => {
      engine ??= openBackend();
      const golden = await loadGolden(name, read);
      const legacy = spelling === 'legacy' ? golden.legacyConfig : undefined;
      const architecture = resolveArchitecture(legacy ?? golden.config);
      const runner = openRunner(await engine, architecture, sourceOf(golden.weights), options);
      await compare(runner, golden);
      runner.close();
    });
  });
}

async function compare(runner: Runner, golden: Golden): Promise<void> {
  const { tolerances, gram_alias } = golden.info;
  const wanted = (key: string) => values(golden.golden.get(key)!);
  const { ids } = golden;
  const streams = runner.architecture.blocks.map(() => new Float32Array(0));
  streams.push(new Float32Array(0));
  const grams = new Map<string, Float64Array>();
  const { logits } = await runner.pass({
    sequences: [{ ids, from: 0 }],
    output: 'logits',
    taps: {
      async residual(layer, rows) {
        streams[layer] = Float32Array.of(...streams[layer]!, ...(await readRows(rows)));
      },
      async site(_, __, weights, rows) {
        const x = await readRows(rows);
        for (const weight of weights) addGram(grams, gram_alias[weight]!, x, rows.width);
      },
    },
  });

  const close = (
    got: ArrayLike<number>,
    key: string,
    limits: { rel_rms: number; max_abs_over_rms: number },
  ) => {
    const reference = wanted(key);
    expect(got.length, key).toBe(reference.length);
    const { relRms, maxOverRms } = deviation(got, reference);
    expect(relRms, key).toBeLessThanOrEqual(limits.rel_rms);
    expect(maxOverRms, key).toBeLessThanOrEqual(limits.max_abs_over_rms);
  };
  for (const [i, stream] of streams.entries()) close(stream, `resid.${i}`, tolerances.resid);
  close(logits[0]!, 'logits', tolerances.logits);

  for (const [key, gram] of grams) {
    // layers that share an input were each added to the same matrix
    const shared = Object.values(gram_alias).filter((k) => k === key).length;
    const reference = wanted(key);
    const width = Math.sqrt(reference.length);
    const diagonal = Math.max(...Array.from({ length: width }, (_, i) => reference[i * width + i]!));
    const worst = reference.reduce((m, v, i) => Math.max(m, Math.abs(gram[i]! / shared - v)), 0);
    expect(worst / diagonal, key).toBeLessThanOrEqual(tolerances.gram.max_abs_over_max_diag);
  }
  expect(grams.size).toBe(new Set(Object.values(gram_alias)).size);

  const { losses } = await runner.pass({ sequences: [{ ids, from: 1 }], output: 'loss' });
  const nll = wanted('nll');
  expect(losses[0]!.length).toBe(nll.length);
  expect(nll.reduce((m, v, i) => Math.max(m, Math.abs(v - losses[0]![i]!)), 0)).toBeLessThanOrEqual(
    tolerances.nll_max_abs,
  );
  const mean = losses[0]!.reduce((a, b) => a + b, 0) / nll.length;
  expect(Math.abs(mean - golden.info.mean_nll)).toBeLessThanOrEqual(tolerances.mean_nll_abs);
  expect(Math.abs(Math.exp(mean) / golden.info.perplexity - 1)).toBeLessThanOrEqual(
    tolerances.perplexity_rel,
  );
}

function addGram(grams: Map<string, Float64Array>, key: string, x: Float32Array, width: number): void {
  const gram = grams.get(key) ?? new Float64Array(width * width);
  grams.set(key, gram);
  for (let row = 0; row < x.length; row += width) {
    for (let i = 0; i < width; i++) {
      const v = x[row + i]!;
      for (let j = 0; j < width; j++) gram[i * width + j]! += v * x[row + j]!;
    }
  }
}
