/** The last stream of tiny encoders of transformers, on either engine: under the head it gives their logits. */
import { expect } from 'vitest';
import type { Backend } from '../backend/backend';
import { type ReadFile, values } from '../forward/golden.test.fixture';
import { readRows } from '../forward/queue';
import { openRunner } from '../forward/runner';
import { ROOMY, sourceOf } from '../forward/runner.test.cases';
import { withoutHead } from '../models/score-head';
import { loadEncoder } from './masked.test.cases';

/** Maclaurin's series: exact enough for the arguments of these tiny models. */
function erf(x: number): number {
  let [term, sum] = [x, x];
  for (let n = 1; n < 200; n++) {
    term *= (-x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}
const gelu = (x: number) => (x / 2) * (1 + erf(x / Math.SQRT2));

/** Linear map, norm, bias and table of an encoder's head by its own names (transformers modeling_*.py), and the norm's ε. */
const HEADS: Readonly<Record<string, readonly [string, string, string, string, number]>> = {
  bert: [
    ...(['cls.predictions.transform.dense', 'cls.predictions.transform.LayerNorm'] as const),
    ...(['cls.predictions.bias', 'bert.embeddings.word_embeddings.weight', 1e-12] as const),
  ],
  roberta: [
    ...(['lm_head.dense', 'lm_head.layer_norm', 'lm_head.bias'] as const),
    ...(['roberta.embeddings.word_embeddings.weight', 1e-12] as const),
  ],
  distilbert: [
    ...(['vocab_transform', 'vocab_layer_norm', 'vocab_projector.bias'] as const),
    ...(['distilbert.embeddings.word_embeddings.weight', 1e-12] as const),
  ],
  modernbert: [
    ...(['head.dense', 'head.norm', 'decoder.bias'] as const),
    ...(['model.embeddings.tok_embeddings.weight', 1e-5] as const),
  ],
};

/** Of an encoder as transformers saves it, and as sentence-transformers does, without the head. */
export async function checkLastStream(name: string, read: ReadFile, engine: Backend): Promise<void> {
  const { architecture, weights, ids, wanted } = await loadEncoder(name, read);
  const [linear, norm, bias, table, epsilon] = HEADS[name]!;
  const head = [linear, norm].flatMap((module) => [`${module}.weight`, `${module}.bias`]);
  // as sentence-transformers writes a body: no head, no prefix
  const body = new Map(
    [...weights]
      .filter(([key]) => !head.includes(key) && key !== bias && !key.startsWith('decoder.'))
      .map(([key, tensor]) => [key.replace(/^(?:bert|roberta|distilbert|model)\./, ''), tensor] as const),
  );
  expect(body.size).toBeLessThan(weights.size);
  const { hidden, vocab } = architecture;
  const of = (key: string) => (weights.has(key) ? values(weights.get(key)!) : undefined);
  const [W, b, g, c] = [`${linear}.weight`, `${linear}.bias`, `${norm}.weight`, `${norm}.bias`].map(of);
  const [E, d] = [of(table)!, of(bias)!];
  const golden = wanted('logits');
  const most = golden.reduce((far, value) => Math.max(far, Math.abs(value)), 0);
  for (const stored of [body, weights]) {
    const runner = openRunner(engine, withoutHead(architecture), sourceOf(stored), ROOMY);
    let rows = new Float32Array(0);
    await runner.pass({
      ...{ sequences: [{ ids }], output: 'none' },
      taps: {
        async normed(tapped) {
          rows = await readRows(tapped);
        },
      },
    });
    runner.close();
    let far = 0;
    for (let t = 0; t < ids.length; t++) {
      const h = rows.subarray(t * hidden, (t + 1) * hidden);
      const x = Array.from({ length: hidden }, (_, i) =>
        gelu(h.reduce((sum, value, j) => sum + W![i * hidden + j]! * value, b?.[i] ?? 0)),
      );
      const mean = x.reduce((sum, value) => sum + value, 0) / hidden;
      const deviation = Math.sqrt(x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / hidden + epsilon);
      const y = x.map((value, i) => ((value - mean) / deviation) * g![i]! + (c?.[i] ?? 0));
      for (let v = 0; v < vocab; v++) {
        const logit = y.reduce((sum, value, j) => sum + E[v * hidden + j]! * value, d[v]!);
        far = Math.max(far, Math.abs(logit - golden[t * vocab + v]!));
      }
    }
    expect(far / most).toBeLessThan(5e-5);
  }
}
