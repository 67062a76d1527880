/** Tokens drawn on the graphics device are those that the processor draws from the same logits, or none. */
import { expect, it } from 'vitest';
import { createCpuBackend } from '../cpu/cpu-backend';
import type { Kernel } from '../kernel';
import { probabilityOf, randomOf, sample } from '../sampler';
import { drawnWords, drawToken, LOG_SUM_SEGMENT, NOTHING_DRAWN } from './activation';
import { after, floats } from './forward-kernels.test.fixture';
import { sharedGpu } from './kernels.test.support';

const ROWS = 32;

const gpu = await sharedGpu();
const cpu = createCpuBackend();

/** (max, Σ e^(factor · (x − max))) of every segment, in f64 rounded once. */
function sumsOf(logits: Float32Array, vocab: number, factor: number): Float32Array<ArrayBuffer> {
  const sums: number[] = [];
  for (let row = 0; row < logits.length; row += vocab) {
    for (let c = 0; c < vocab; c += LOG_SUM_SEGMENT) {
      const part = logits.subarray(row + c, row + Math.min(vocab, c + LOG_SUM_SEGMENT));
      const top = part.reduce((a, b) => Math.max(a, b));
      sums.push(
        top,
        part.reduce((sum, x) => sum + Math.exp(factor * (x - top)), 0),
      );
    }
  }
  return Float32Array.from(sums);
}

function contentsOf(logits: Float32Array<ArrayBuffer>, vocab: number, temperature: number, seed: number) {
  const rows = logits.length / vocab;
  return {
    logits,
    sums: sumsOf(logits, vocab, 1),
    warm: sumsOf(logits, vocab, temperature === 0 ? 1 : 1 / temperature),
    random: Uint32Array.from({ length: 2 * rows }, (_, i) => randomOf(seed, i >> 1, 0)[i % 2]!),
    counts: new Uint32Array(4),
    drawn: new Uint32Array(rows),
  };
}

const words = async (engine: typeof gpu, contents: ReturnType<typeof contentsOf>, params: object) => {
  const kernel = drawToken as unknown as Kernel;
  const bytes = await after(engine, kernel, contents, params as Record<string, number>, 'drawn');
  return new Uint32Array(bytes.buffer);
};

// spreads of the logits: of 30 one token takes nearly all, of 12 some are likely, of 3 all are
it.each([
  [0, 1, 3],
  [0, 0.5, 30],
  [0.3, 0.95, 30],
  [0.3, 0.9, 12],
  [0.7, 1, 30],
  [0.7, 0.9, 12],
  [1, 1, 12],
  [1, 0.05, 12],
  [1, 0.95, 30],
  [1, 0.95, 12],
  [1, 0.95, 3],
  [1.5, 1, 3],
  [1.5, 0.5, 12],
])('temperature %f, top-p %f, logits within ±%f', async (temperature, topP, spread) => {
  const vocab = 2 * LOG_SUM_SEGMENT + 77;
  const logits = floats(ROWS * vocab, 40 + spread, spread);
  // equal ones: the largest twice, and many in the middle
  for (let row = 0; row < ROWS; row += 3) {
    const own = logits.subarray(row * vocab, (row + 1) * vocab);
    own[vocab - 1 - row] = own.reduce((a, b) => Math.max(a, b));
    own.fill(0, 100 + row, 300);
  }
  const contents = contentsOf(logits, vocab, temperature, 3);
  const segments = Math.ceil(vocab / LOG_SUM_SEGMENT);
  const inverse = temperature === 0 ? 0 : 1 / temperature;
  const form = drawnWords(vocab);
  const params = { rows: ROWS, vocab, segments, layers: 4, ...form.params, inverse, top_p: topP };
  const [own, counterpart] = [await words(gpu, contents, params), await words(cpu, contents, params)];
  let none = 0;
  for (let row = 0; row < ROWS; row++) {
    const begins = Array.from({ length: segments }, (_, s) => s * LOG_SUM_SEGMENT);
    const values = contents.sums.subarray(2 * row * segments, 2 * (row + 1) * segments);
    const scores = { logits: logits.subarray(row * vocab, (row + 1) * vocab), sums: { begins, values } };
    const id = sample(scores, { temperature, topP }, randomOf(3, row, 0));
    const wanted = { id, nats: expect.closeTo(-Math.log(probabilityOf(scores, id)), 4) };
    const told = (word: number) => {
      const token = form.token(word);
      return { id: token.id, nats: -Math.log(token.probability) };
    };
    expect(told(counterpart[row]!)).toEqual(wanted);
    if (own[row] === NOTHING_DRAWN) none++;
    else expect(told(own[row]!), `row ${row}`).toEqual(wanted);
  }
  // more than 1024 tokens, or tokens of the width of what is uncertain, are for the host
  if (temperature === 0) expect(none).toBe(0);
  else if (spread === 3 && topP < 1) expect(none).toBe(ROWS);
  else expect(none).toBeLessThanOrEqual(ROWS / 16);
});

it.each([
  ['a count', [0, 0, 5, 7], 1],
  ['the logits', [0, 0, 0, 0], Number.NaN],
  ['an infinite logit', [0, 0, 0, 0], Number.POSITIVE_INFINITY],
])('nothing is drawn where something is not finite: %s', async (_, counts, value) => {
  const vocab = 100;
  const contents = contentsOf(floats(vocab, 9, 5), vocab, 1, 1);
  const params = {
    ...{ rows: 1, vocab, segments: 1, layers: 4, inverse: 1, top_p: 1 },
    ...drawnWords(vocab).params,
  };
  for (const engine of [gpu, cpu]) {
    expect([...(await words(engine, contents, params))]).not.toEqual([NOTHING_DRAWN]);
    const damaged = { ...contents, counts: Uint32Array.from(counts), sums: contents.sums.slice() };
    damaged.sums[1]! *= value;
    expect([...(await words(engine, damaged, params))]).toEqual([NOTHING_DRAWN]);
  }
});

it('ids and probabilities of the largest vocabularies share a word', () => {
  for (const vocab of [2, 32_000, 151_936, 262_144, 262_208]) {
    const { params, token } = drawnWords(vocab);
    for (const nats of [0, 0.5, 10, 23.9]) {
      const word = ((Math.round(nats * params.steps) << params.id_bits) | (vocab - 1)) >>> 0;
      expect(token(word).id).toBe(vocab - 1);
      expect(Math.abs(-Math.log(token(word).probability) - nats)).toBeLessThan(0.0015);
    }
    expect(params.id_bits).toBeLessThan(20);
  }
});
