/** The forward pass on the graphics device: goldens of transformers, the f64 oracle, families of architectures. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Backend } from '../backend/backend';
import { createGpuBackend } from '../backend/gpu/gpu-backend';
import { sharedGpu } from '../backend/kernels/kernels.test.support';
import { resolveArchitecture } from '../models/resolution';
import { checkFamily, FAMILY_FOLDER, FAMILY_NAMES } from './families.test.cases';
import { deviation, GOLDEN_NAMES, goldenWeights, loadGolden } from './golden.test.fixture';
import { runOracle } from './oracle';
import { LLAMA_CONFIG, LONG, withRope, YARN } from './rope.test.fixture';
import { openRunner } from './runner';
import { describeGoldens, ROOMY, sourceOf, TIGHT } from './runner.test.cases';
import { architecture, stopCases, zeros } from './stop.test.cases';
import { sumsCases } from './sums.test.cases';

const read = async (path: string) => new Uint8Array(readFileSync(path));

describeGoldens('webgpu engine, legacy config', GOLDEN_NAMES, read, sharedGpu, ROOMY, 'legacy');
describeGoldens(
  'webgpu engine, little room',
  ['gpt2', 'gemma3', 'opt_postnorm_proj'],
  read,
  sharedGpu,
  TIGHT,
);

describeGoldens(
  'webgpu engine, kernels of real GPUs',
  ['llama', 'gpt_neox'],
  read,
  () => sharedGpu('real'),
  {},
);

test.each([
  ['yarn', YARN],
  ['longrope', LONG],
] as const)('%s on the graphics device is the f64 oracle, short and long together', async (_, rope) => {
  const { weights, ids } = await loadGolden('llama', read);
  const config = new TextDecoder().decode(await read(LLAMA_CONFIG));
  const architecture = withRope(config, rope, { max_position_embeddings: 256 });
  const runner = openRunner(await sharedGpu(), architecture, sourceOf(weights));
  const sequences = [10, 40, 16, 17].map((length) => ({ ids: ids.slice(0, length), from: 0 }));
  const { logits } = await runner.pass({ sequences, output: 'logits' });
  for (const [i, sequence] of sequences.entries()) {
    const wanted = runOracle(architecture, goldenWeights(architecture, weights), sequence.ids).logits;
    const { relRms } = deviation(
      logits[i]!,
      wanted.flatMap((row) => [...row]),
    );
    expect(relRms).toBeLessThan(5e-6);
  }
  runner.close();
});

test('NaN in a weight is told on the graphics device too', async () => {
  const { config, weights, ids } = await loadGolden('llama', read);
  const key = 'model.layers.1.self_attn.q_proj.weight';
  const bytes = weights.get(key)!.bytes.slice();
  new Float32Array(bytes.buffer)[7] = Number.NaN;
  // its own, as work that is given up is left in it
  const engine = await createGpuBackend();
  for (const own of [engine, Object.create(engine, { software: { value: false } }) as Backend]) {
    const source = sourceOf(new Map([...weights, [key, { ...weights.get(key)!, bytes }]]));
    const runner = openRunner(own, resolveArchitecture(config), source);
    const run = runner.pass({ sequences: [{ ids, from: 1 }], output: 'loss' });
    await expect(run).rejects.toMatchObject({
      code: 'NonFinite',
      message: expect.stringContaining('layer 1'),
    });
    runner.close();
  }
  engine.close();
});

sumsCases(sharedGpu, read);

stopCases(sharedGpu, [1e9]);

test('weights at eight bits that do not stay are read once, though a pass waits for the device often', async () => {
  const source = zeros();
  const reads: string[] = [];
  const read: typeof source.read = async (name, begin, end) => {
    reads.push(`${name} from ${begin}`);
    // as a file answers: while the pass waits
    await new Promise((resolve) => setTimeout(resolve));
    return source.read(name, begin, end);
  };
  const runner = openRunner(await sharedGpu(), architecture(), { ...source, read }, { weights: '8-bit' });
  await runner.pass({ sequences: [{ ids: Array.from({ length: 24 }, (_, i) => i) }], output: 'none' });
  runner.close();
  expect(reads.length).toBeGreaterThan(25);
  expect(reads.length).toBe(new Set(reads).size);
});

test.each(FAMILY_NAMES)(
  '%s on the graphics device: whole, in little room, and from a cache',
  async (name) => {
    await checkFamily(`${FAMILY_FOLDER}/${name}`, read, await sharedGpu());
  },
);
