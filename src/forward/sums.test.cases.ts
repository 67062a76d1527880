/** Weights as sums: a model of them is the model of the weights that they add up to, also after scales and vectors changed. */
import { expect, test } from 'vitest';
import type { Backend } from '../backend/backend';
import { decodeToF32, encodeFromF32 } from '../formats/half';
import { claimTensors } from '../models/claim';
import { resolveArchitecture } from '../models/resolution';
import { loadGolden, type ReadFile } from './golden.test.fixture';
import { adaptableWeights } from './model';
import { openRunner, type Runner } from './runner';
import { ROOMY, sourceOf, TIGHT } from './runner.test.cases';
import type { WeightSource } from './weight-source';

/** Stored transposed, with biases; gated; tied; norms with biases; a head of its own. */
const NAMES = ['gpt2', 'llama', 'llama_rope3_tied', 'qwen2', 'phi3', 'stablelm'] as const;

/** W = R + ½·B, B being W in BF16. @param set which scale B has, and what vectors are multiplied by */
function sumsOf(plain: WeightSource, names: ReadonlySet<string>, set: { scale: number; vectors: number }) {
  const read: string[] = [];
  const parts = (name: string) => [`${name}, rest`, `${name}, rounded`] as const;
  const scaled = () =>
    new Map(
      [...names].map((name) => {
        const [rest, rounded] = parts(name);
        const first = { name: rest, dtype: 'F32' as const, scale: 1 };
        return [name, [first, { name: rounded, dtype: 'BF16' as const, scale: set.scale }]] as const;
      }),
    );
  const source: WeightSource = {
    tensors: plain.tensors,
    get sums() {
      return scaled();
    },
    async read(asked, begin, end) {
      read.push(asked);
      const [name, part] = asked.split(', ') as [string, string | undefined];
      const { shape, dtype } = plain.tensors.get(name)!;
      const values = new Float32Array(shape.reduce((a, b) => a * b, 1));
      decodeToF32(await plain.read(name, 0, 4 * values.length), dtype, values);
      const halves = new Uint8Array(2 * values.length);
      encodeFromF32(values, 'BF16', halves);
      if (part === 'rounded') return halves.slice(begin, end);
      const rounded = new Float32Array(values.length);
      decodeToF32(halves, 'BF16', rounded);
      const factor = shape.length === 1 ? set.vectors : 1;
      const out = values.map((value, i) => (part === 'rest' ? value - rounded[i]! / 2 : factor * value));
      return new Uint8Array(out.buffer).slice(begin, end);
    },
  };
  return { source, read };
}

export function sumsCases(open: () => Promise<Backend>, readFile: ReadFile): void {
  test.each(NAMES.flatMap((name) => ['roomy', 'tight'].map((room) => [name, room] as const)))(
    '%s, %s: scales and vectors that change reach the next pass',
    async (name, room) => {
      const { config, weights, ids } = await loadGolden(name, readFile);
      const architecture = resolveArchitecture(config);
      const plain = sourceOf(weights);
      expect(new Set([...plain.tensors.values()].map(({ dtype }) => dtype))).toEqual(new Set(['F32']));
      const claimed = claimTensors(architecture, plain.tensors);
      const summed = new Set([
        ...adaptableWeights(architecture, claimed),
        claimed.get(architecture.final.head)!,
      ]);
      const engine = await open();
      const logitsOf = async (runner: Runner) => {
        const sequences = [{ ids: ids.slice(0, 12), from: 0 }];
        return (await runner.pass({ sequences, output: 'logits' })).logits[0]!;
      };
      const runner = openRunner(engine, architecture, plain, ROOMY);
      const expected = await logitsOf(runner);
      runner.close();

      const set = { scale: -0.25, vectors: 1.5 };
      const { source, read } = sumsOf(plain, summed, set);
      const live = openRunner(engine, architecture, source, room === 'roomy' ? ROOMY : TIGHT);
      const difference = async () => {
        const logits = await logitsOf(live);
        return Math.max(...logits.map((value, i) => Math.abs(value - expected[i]!)));
      };
      expect(await difference()).toBeGreaterThan(0.1);
      Object.assign(set, { scale: 0.5, vectors: 1 });
      read.length = 0;
      const vectors = [...plain.tensors].filter(([, { shape }]) => shape.length === 1);
      await live.renew({ updates: summed, weights: new Set(vectors.map(([vector]) => vector)) });
      expect(await difference()).toBeLessThan(2e-4);
      if (room === 'roomy') expect(read.filter((one) => one.includes(', '))).toEqual([]);
      live.close();
    },
  );
}
