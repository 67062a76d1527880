/** On real activations, those of the sample family's workshop model on its own text. */
import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { maskRowWords } from '../backend/kernels/select';
import { encodeText, openSample, readText } from '../evaluate/sample.test.fixture';
import { readTensors, values } from '../forward/golden.test.fixture';
import { compensate } from './compensation';
import { type Gram, openGram } from './gram';
import { download, upload } from './mathematics.test.support';
import { dampedOracle, leastSquaresOracle, lossOracle } from './oracle.test.support';
import { columnScores, keepMask } from './trimmed-change';

const LAYER = 2;
const [WINDOW, WINDOWS] = [128, 16];
/** Rows that are solved exactly: every so many of a tensor. */
const ROW_STEP = 16;

describe('compensation on the sample family', () => {
  const engine = createCpuBackend();
  const read = (model: string) =>
    readTensors(new Uint8Array(readFileSync(`public/samples/${model}/model.safetensors`)));
  const [base, tuned] = [read('base'), read('workshop')];
  const grams = new Map<string, Gram>();
  beforeAll(async () => {
    const runner = openSample('workshop', {}, engine);
    const ids = encodeText(readText('texts/workshop.calibration.txt'));
    const pass = runner.startPass({
      sequences: Array.from({ length: WINDOWS }, (_, w) => ({
        ids: ids.slice(w * WINDOW, (w + 1) * WINDOW),
      })),
      output: 'none',
      taps: {
        site(layer, _, weights, rows) {
          if (layer !== LAYER) return;
          const gram = grams.get(weights[0]!) ?? openGram(engine, rows.width, { kind: 'full' });
          grams.set(weights[0]!, gram);
          gram.add(rows);
        },
      },
    });
    // the embedding, and the layers up to the one that is looked at
    for (let step = 0; step <= LAYER + 1; step++) await pass.step();
    await pass.result();
    pass.close();
    runner.close();
  });

  it('sees every input of the layer', () => {
    expect([...grams].map(([name, gram]) => [name.split('.').at(-2), gram.width, gram.tokens])).toEqual([
      ['q_proj', 128, WINDOW * WINDOWS],
      ['o_proj', 128, WINDOW * WINDOWS],
      ['gate_proj', 128, WINDOW * WINDOWS],
      ['down_proj', 352, WINDOW * WINDOWS],
    ]);
  });

  it.each([0.05, 0.2, 0.5])(
    'density %f: output error within 0.5 percent of the least, well below the mask alone',
    async (density) => {
      const total = { error: 0, least: 0, masked: 0 };
      for (const [name, gram] of grams) {
        const width = gram.width;
        const before = values(base.get(name)!);
        const tau = Float32Array.from(values(tuned.get(name)!), (v, e) => v - before[e]!);
        const rows = tau.length / width;
        const buffer = upload(engine, tau);
        const { scale } = await columnScores(engine, gram, 'wanda');
        const mask = await keepMask(engine, buffer, rows, width, scale, density, 'tensor');
        const out = await compensate(engine, buffer, mask, rows, width, gram);
        const compensated = await download(engine, out, tau.length);
        const bits = new Uint32Array((await download(engine, mask, rows * maskRowWords(width))).buffer);
        const { damped } = dampedOracle(await gram.read(), width, gram.tokens);
        const sums = { error: 0, least: 0, masked: 0, all: 0 };
        for (let r = 0; r < rows; r += ROW_STEP) {
          const own = tau.subarray(r * width, (r + 1) * width);
          const isKept = (c: number) => ((bits[r * maskRowWords(width) + (c >> 5)]! >> (c & 31)) & 1) === 1;
          const kept = [...own.keys()].filter(isKept);
          const exact = leastSquaresOracle(own, kept, damped, width);
          sums.error += lossOracle(compensated.subarray(r * width, (r + 1) * width), own, damped, width);
          sums.least += lossOracle(exact, own, damped, width);
          sums.masked += lossOracle(
            own.map((v, c) => (isKept(c) ? v : 0)),
            own,
            damped,
            width,
          );
          sums.all += lossOracle(new Float64Array(width), own, damped, width);
        }
        // relative output error, a mean over tensors as in the study
        for (const key of ['error', 'least', 'masked'] as const)
          total[key] += Math.sqrt(sums[key] / sums.all);
      }
      expect(total.error / total.least).toBeLessThan(1.005);
      expect(total.error).toBeLessThan(0.97 * total.masked);
    },
  );
});
