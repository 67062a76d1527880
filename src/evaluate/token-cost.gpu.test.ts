/** What a token costs on a graphics device, and that the device draws what the host would. */
import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Backend } from '../backend/backend';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { NOTHING_DRAWN } from '../backend/kernels/activation';
import { floats } from '../backend/kernels/forward-kernels.test.fixture';
import { sharedGpu } from '../backend/kernels/kernels.test.support';
import { loadGolden } from '../forward/golden.test.fixture';
import { openRunner, type Runner } from '../forward/runner';
import { ROOMY, sourceOf } from '../forward/runner.test.cases';
import type { LowRankUpdate } from '../forward/weight-source';
import type { Architecture } from '../models/architecture';
import { leavesOf } from '../models/claim';
import { resolveArchitecture } from '../models/resolution';
import { type GeneratedToken, generate } from './generation';
import { ofWritten, openLive } from './live-weights.test.fixture';

const read = async (path: string) => new Uint8Array(readFileSync(path));

afterEach(() => vi.restoreAllMocks());

/** Updates of every linear layer of the blocks, of ranks that differ, but for the keys of the first. */
function updatesOf(architecture: Architecture): Map<string, LowRankUpdate> {
  const linears = leavesOf(architecture.blocks).linears.filter((_, i) => i !== 1);
  return new Map(
    linears.map(({ weight, inputs, outputs }, i) => {
      const rank = 3 + (i % 4);
      const factors = {
        left: floats(outputs * rank, 2 * i, 0.1),
        right: floats(rank * inputs, 2 * i + 1, 0.1),
      };
      return [weight, { rank, scale: 0.5 + (i % 3), load: async () => factors }];
    }),
  );
}

async function open(name: string, guise: 'software' | 'real', engine?: Backend, updated = false) {
  const golden = await loadGolden(name, read);
  const gpu = engine ?? (await sharedGpu(guise));
  const architecture = resolveArchitecture(golden.config);
  const source = sourceOf(golden.weights, updated ? updatesOf(architecture) : undefined);
  const runner = openRunner(gpu, architecture, source, ROOMY);
  return { gpu, runner, prompt: golden.ids.slice(0, 8) };
}

/** Bytes of a dispatch's proof, and of what is read of a token: its id and its probability in one word. */
const PROOF = 8;
const TOKEN = 4;
const SAMPLINGS = [
  { temperature: 0, topP: 1, seed: 0 },
  { temperature: 1, topP: 1, seed: 5 },
  { temperature: 0.7, topP: 0.9, seed: 5 },
];

/** Where the layers of a token begin and end among its kernels. */
const layersIn = (ids: readonly string[]) =>
  [ids.indexOf('count-non-finite'), ids.lastIndexOf('count-non-finite')] as const;

it.each([
  // software adapters do the two norms apart
  ...SAMPLINGS.map((sampling) => ['llama', 'software', 'plain', sampling, 9] as const),
  ['qwen2', 'software', 'plain', SAMPLINGS[2]!, 9] as const,
  ['qwen2', 'real', 'plain', SAMPLINGS[1]!, 7] as const,
  ['qwen2', 'real', 'adapted', SAMPLINGS[0]!, 11] as const,
])(
  'a token of %s, kernels of %s devices, %s, %o: %i dispatches a layer, one submit, one short readback',
  async (name, guise, weights, sampling, ofLayers) => {
    const { gpu, runner, prompt } = await open(name, guise, undefined, weights === 'adapted');
    const { temperature } = sampling;
    const submits = vi.spyOn(GPUQueue.prototype, 'submit');
    const dispatches = vi.spyOn(GPUComputePassEncoder.prototype, 'dispatchWorkgroups');
    const maps = vi.spyOn(GPUBuffer.prototype, 'mapAsync');
    const runs = vi.spyOn(gpu, 'run');
    const spies = [submits, dispatches, maps, runs];
    const costs: object[] = [];
    const outside: string[] = [];
    await generate(runner, [prompt], {
      maxTokens: 5,
      sampling,
      onToken({ index }) {
        const ids = runs.mock.calls.map(([kernel]) => kernel.id);
        const [first, last] = layersIn(ids);
        if (index > 0) {
          costs.push({
            ofLayers: (last - first) / runner.architecture.blocks.length,
            submits: submits.mock.calls.length,
            readbacks: maps.mock.calls.map(([, , bytes]) => bytes! - PROOF * dispatches.mock.calls.length),
          });
          outside.push(...ids.slice(0, first), ...ids.slice(last + 1));
        }
        for (const spy of spies) spy.mockClear();
      },
    });
    runner.close();
    expect(costs).toEqual(Array(4).fill({ ofLayers, submits: 1, readbacks: [TOKEN] }));
    // the embedding, the head with its norm, the sums of the logits – of a temperature too –, and the draw
    const sums = temperature === 0 || temperature === 1 ? 1 : 2;
    expect(outside.length / 4).toBe((guise === 'real' ? 3 : 4) + sums);
  },
);

const LORAS = ['base+kitchen', 'base+harbour'];
const DORA = 'base+lengths';
const WHOLE = ['workshop', 'attic'];

it.each([
  ['a LoRA', LORAS.slice(1), 11],
  ['two LoRAs', LORAS, 11],
  ['a DoRA', [DORA], 7],
  ['a whole contributor', WHOLE.slice(1), 7],
  ['two whole contributors', WHOLE, 7],
  ['two LoRAs, a DoRA and two whole contributors', [...LORAS, DORA, ...WHOLE], 11],
])(
  'a token of a live merge with %s, %j: %i dispatches a layer after a slider moved too',
  async (_, models, most) => {
    const gpu = await sharedGpu('real');
    const at = (weight: number) => ({
      ...{ id: 'task_arithmetic', models, weights: models.map((_, i) => weight / (1 + i)) },
    });
    const live = await openLive(at(0.7), gpu, 2 ** 30);
    const tokensOf = async (runner: Runner, onToken: () => void = () => {}) => {
      const tokens: GeneratedToken[] = [];
      await generate(runner, [[3, 141, 59, 26, 53]], {
        maxTokens: 6,
        sampling: SAMPLINGS[0]!,
        onToken: (token) => tokens.push(token) && onToken(),
      });
      return tokens;
    };
    const before = await tokensOf(live.runner);
    const { weights } = await live.turn(at(0.3));
    expect([...weights].filter((name) => !/norm|embed_tokens/.test(name))).toEqual([]);
    const runs = vi.spyOn(gpu, 'run');
    const ofLayers: number[] = [];
    const after = await tokensOf(live.runner, () => {
      const [first, last] = layersIn(runs.mock.calls.map(([kernel]) => kernel.id));
      ofLayers.push((last - first) / live.runner.architecture.blocks.length);
      runs.mockClear();
    });
    live.close();
    expect(ofLayers.slice(1)).toEqual(Array(5).fill(most));
    expect(after).not.toEqual(before);
    const wanted = await ofWritten(at(0.3), tokensOf);
    expect(after.map(({ id }) => id)).toEqual(wanted.map(({ id }) => id));
    for (const [i, { probability }] of after.entries())
      expect(Math.abs(Math.log(probability / wanted[i]!.probability))).toBeLessThan(2e-3);
  },
);

describe('tokens drawn on the device', () => {
  const written = async (runner: Runner, prompts: number[][], sampling: (typeof SAMPLINGS)[number]) => {
    const tokens: GeneratedToken[] = [];
    await generate(runner, prompts, { maxTokens: 12, sampling, onToken: (token) => tokens.push(token) });
    return tokens;
  };

  it.each(SAMPLINGS)('are those the host draws: %o', async (sampling) => {
    const { gpu, runner, prompt } = await open('llama', 'software');
    const prompts = [prompt, prompt.slice(0, 3), [...prompt].reverse()];
    const drawn = vi.spyOn(gpu, 'run');
    const own = await written(runner, prompts, sampling);
    expect(drawn.mock.calls.some(([kernel]) => kernel.id === 'draw-token')).toBe(true);
    drawn.mockClear();
    const wanted = await written({ ...runner, mostDraws: 0 }, prompts, sampling);
    expect(drawn.mock.calls.some(([kernel]) => kernel.id === 'draw-token')).toBe(false);
    expect(own.map(({ id }) => id)).toEqual(wanted.map(({ id }) => id));
    for (const [i, { probability }] of own.entries())
      expect(probability / wanted[i]!.probability).toBeCloseTo(1, 3);
    runner.close();
  });

  it('are the host’s where the device cannot tell', async () => {
    const { gpu, runner, prompt } = await open('llama', 'software');
    const prompts = [prompt, prompt.slice(0, 3)];
    const wanted = await written({ ...runner, mostDraws: 0 }, prompts, SAMPLINGS[2]!);
    const { read: readBytes } = gpu;
    let untold = 0;
    vi.spyOn(gpu, 'read').mockImplementation(async (ranges) => {
      const bytes = await readBytes.call(gpu, ranges);
      // of every second sequence
      if (ranges[0]?.buffer.label.startsWith('drawn'))
        untold += new Uint32Array(bytes[0]!.buffer).fill(NOTHING_DRAWN, 0, 1).length;
      return bytes;
    });
    expect(await written(runner, prompts, SAMPLINGS[2]!)).toEqual(
      wanted.map((token) => ({ ...token, probability: expect.closeTo(token.probability, 3) })),
    );
    expect(untold).toBeGreaterThan(0);
    runner.close();
  });

  it.each(['software', 'real'] as const)(
    'are those of the processor under an adapter, on a device that is %s',
    async (guise) => {
      const cpu = await open('qwen2', guise, createCpuBackend(), true);
      const { runner, prompt } = await open('qwen2', guise, undefined, true);
      const wanted = await written(cpu.runner, [prompt], SAMPLINGS[0]!);
      expect(await written(runner, [prompt], SAMPLINGS[0]!)).toEqual(
        wanted.map((token) => ({ ...token, probability: expect.closeTo(token.probability, 3) })),
      );
      // an update that is read anew
      const { blocks } = runner.architecture;
      const { weight } = leavesOf(blocks).linears[0]!;
      await runner.renew({ updates: new Set([weight]), weights: new Set() });
      expect((await written(runner, [prompt], SAMPLINGS[0]!)).map(({ id }) => id)).toEqual(
        wanted.map(({ id }) => id),
      );
      const plain = await open('qwen2', guise);
      expect(await written(plain.runner, [prompt], SAMPLINGS[0]!)).not.toEqual(wanted);
      for (const one of [cpu, plain, { runner }]) one.runner.close();
    },
  );
});
