/**
 * The forward goldens through the studio's own forward pass, on either engine: every Gram matrix, and for the models that
 * come with them importance scores and masks (the goldens `forward`).
 */
import { afterAll, describe, expect, it } from 'vitest';
import type { Backend } from '../backend/backend';
import { maskRowWords } from '../backend/kernels/select';
import {
  type FileTensor,
  GOLDEN_FOLDER,
  type Golden,
  loadGolden,
  type ReadFile,
  readTensors,
  values,
} from '../forward/golden.test.fixture';
import { openRunner } from '../forward/runner';
import { sourceOf } from '../forward/runner.test.cases';
import { resolveArchitecture } from '../models/resolution';
import { type Gram, openGram } from './gram';
import { download, farthest, upload, worstRatio } from './mathematics.test.support';
import { columnScores, keepMask, type ScoreKind } from './trimmed-change';

interface GoldenLayer {
  shape: [number, number];
  input_axis: 0 | 1;
  dead_columns: number[];
  keep: Record<string, { k: number; kth_score: number; 'within_1e-4': number }>;
}

/** Names of the scores in the goldens. */
const SCORES: Record<string, ScoreKind> = { obd: 'wanda', obs: 'obs', sparsegpt: 'sparsegpt' };

export function describeGoldenGrams(
  title: string,
  names: readonly string[],
  read: ReadFile,
  openBackend: () => Promise<Backend>,
): void {
  describe(title, () => {
    let opened: Promise<Backend> | undefined;
    const engineOf = () => {
      opened ??= openBackend();
      return opened;
    };
    afterAll(async () => (await opened)?.close());

    it.each(names)('%s', async (name) => {
      const engine = await engineOf();
      const golden = await loadGolden(name, read);
      const grams = await calibrate(engine, golden);
      const { gram_alias, tolerances } = golden.info;
      expect(new Set(grams.keys())).toEqual(new Set(Object.values(gram_alias)));
      for (const [key, gram] of grams) {
        const wanted = values(golden.golden.get(key)!);
        expect(gram.tokens).toBe(golden.ids.length);
        expect(farthest(await gram.read(), wanted), key).toBeLessThanOrEqual(
          tolerances.gram.max_abs_over_max_diag,
        );
      }
      if (name === 'llama' || name === 'gpt2') {
        const importance = readTensors(await read(`${GOLDEN_FOLDER}/${name}/importance.safetensors`));
        const info = golden.info as unknown as { importance: { layers: Record<string, GoldenLayer> } };
        const layers = Object.entries(info.importance.layers);
        expect(layers).toHaveLength(2);
        for (const [weight, layer] of layers) {
          await compareImportance(engine, grams.get(gram_alias[weight]!)!, golden, importance, weight, layer);
        }
        await compareTies(engine, importance);
      }
      for (const gram of grams.values()) gram.close();
    });
  });
}

/** One pass over the golden's text with a Gram matrix at every input. */
async function calibrate(engine: Backend, golden: Golden): Promise<Map<string, Gram>> {
  const { gram_alias } = golden.info;
  const grams = new Map<string, Gram>();
  const runner = openRunner(engine, resolveArchitecture(golden.config), sourceOf(golden.weights));
  await runner.pass({
    sequences: [{ ids: golden.ids }],
    output: 'none',
    taps: {
      site(_, __, weights, rows) {
        const key = gram_alias[weights[0]!]!;
        const gram = grams.get(key) ?? openGram(engine, rows.width, { kind: 'full' });
        grams.set(key, gram);
        gram.add(rows);
      },
    },
  });
  runner.close();
  return grams;
}

async function compareImportance(
  engine: Backend,
  gram: Gram,
  golden: Golden,
  importance: ReadonlyMap<string, FileTensor>,
  weight: string,
  { shape, input_axis, dead_columns, keep }: GoldenLayer,
): Promise<void> {
  const stored = Float32Array.from(values(golden.weights.get(weight)!));
  const cols = shape[input_axis];
  const rows = stored.length / cols;
  /** Where row r, column c of the weight as [out, in] is stored. */
  const at = (r: number, c: number) => (input_axis === 1 ? r * cols + c : c * rows + r);
  const transposed = <T extends Float32Array | Float64Array | Uint8Array>(x: T): T =>
    x.map((_, e) => x[at(Math.floor(e / cols), e % cols)]!) as T;
  const w = transposed(stored);
  const tau = upload(engine, w);
  for (const [key, score] of Object.entries(SCORES)) {
    const { scale, factoring: result } = await columnScores(engine, gram, score);
    expect(result).toMatchObject({ dead: dead_columns.length, retries: 0, fellBackToDiagonal: false });
    const roots = await download(engine, scale, cols);
    const scores = Float64Array.from(w, (v, e) => (v * roots[e % cols]!) ** 2);
    const wanted = transposed(values(importance.get(`${weight}.score.${key}`)!));
    expect(worstRatio(scores, wanted), `${weight} ${key}`).toBeLessThan(3e-4);
    for (const density of [0.2, 0.5]) {
      const id = `${key}.d${density}`;
      const mask = await keepMask(engine, tau, rows, cols, scale, density, 'tensor');
      const words = new Uint32Array((await download(engine, mask, rows * maskRowWords(cols))).buffer);
      engine.free(mask);
      const kept = Uint8Array.from(w, (_, e) => {
        const [r, c] = [Math.floor(e / cols), e % cols];
        return (words[r * maskRowWords(cols) + (c >> 5)]! >> (c & 31)) & 1;
      });
      const expected = transposed(importance.get(`${weight}.keep.${id}`)!.bytes);
      expect(
        kept.reduce((a, b) => a + b, 0),
        id,
      ).toBe(keep[id]!.k);
      for (const [e, bit] of kept.entries()) {
        if (bit === expected[e]) continue;
        expect(Math.abs(wanted[e]! / keep[id]!.kth_score - 1), `${weight} ${id} ${e}`).toBeLessThan(1e-4);
      }
    }
    engine.free(scale);
  }
  engine.free(tau);
}

/** Small whole scores with many ties. */
async function compareTies(engine: Backend, importance: ReadonlyMap<string, FileTensor>): Promise<void> {
  const { shape, ...tensor } = importance.get('tie_case.score')!;
  const [rows, cols] = shape as [number, number];
  const tau = upload(engine, Float32Array.from(values({ shape, ...tensor })));
  const ones = upload(engine, new Float32Array(cols).fill(1));
  for (const density of [0.2, 0.5]) {
    const mask = await keepMask(engine, tau, rows, cols, ones, density, 'tensor');
    const words = new Uint32Array((await download(engine, mask, rows)).buffer);
    const kept = Uint8Array.from(
      { length: rows * cols },
      (_, e) => (words[Math.floor(e / cols)]! >> (e % cols)) & 1,
    );
    expect(kept).toEqual(importance.get(`tie_case.keep.d${density}`)!.bytes);
  }
}
