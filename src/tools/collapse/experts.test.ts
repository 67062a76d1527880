/** Fewer experts of tiny mixtures: what is measured and what is left, against the mixture in f64. */
import { describe, expect, it } from 'vitest';
import { depthInNode } from '../../../e2e/collapse-in-node';
import { parseModelConfig } from '../../formats/model-config';
import { buildSafetensorsHeader } from '../../formats/safetensors-write';
import { type FileTensor, readTensors, values } from '../../forward/golden.test.fixture';
import { runOracle, type Weights } from '../../forward/oracle';
import { ROOMY } from '../../forward/runner.test.cases';
import { noise, tinyConfig } from '../../gguf/tiny-models.test.support';
import { memoryFolder } from '../../inputs/memory-models.test.support';
import { resolveArchitecture } from '../../models/resolution';
import { expertStack, measureExperts } from './experts';
import type { CollapseSettings } from './options';
import type { Stack } from './stack';

const IDS = [0, 5, 9, 20, 2, 13, 7, 7, 12, 50, 33, 61, 8, 8, 1, 40];
const settings = (more: Partial<CollapseSettings>) => ({ planner: 'experts', ...more }) as CollapseSettings;

async function mixture(type: string, more: Record<string, unknown> = {}) {
  const text = tinyConfig(type, { architectures: ['Mixture'], torch_dtype: 'float32', ...more });
  const weights = noise(text);
  const stored = [...weights].map(([name, { shape, bytes }]) => ({
    ...{ name, dtype: 'F32' as const, shape, byteLength: bytes.length, bytes },
  }));
  const model = memoryFolder('m', {
    'config.json': text,
    'model.safetensors': Uint8Array.from(
      Buffer.concat([buildSafetensorsHeader(stored, {}), ...stored.map(({ bytes }) => bytes)]),
    ),
  });
  const node = await depthInNode('', 'm', ROOMY, undefined, { m: model });
  return { text, weights, ...node };
}

const written = async ({ write }: Awaited<ReturnType<typeof mixture>>, stack: Stack) => {
  const { files } = await write(stack, 'out');
  const bytes = async (path: string) => {
    const source = files.find((file) => file.path === path)!.open();
    return source.read(0, source.byteLength);
  };
  return {
    config: JSON.parse(new TextDecoder().decode(await bytes('config.json'))) as Record<string, unknown>,
    tensors: readTensors(await bytes('model.safetensors')),
  };
};

/** The mixture in f64: Qwen 3 with five experts in place of each MLP, two of which a token takes of those that are there. */
function oracle(
  text: string,
  weights: ReadonlyMap<string, FileTensor>,
  isThere = (_: number, __: number) => true,
) {
  const { moe_intermediate_size, ...config } = JSON.parse(text);
  const dense = { ...config, model_type: 'qwen3', intermediate_size: moe_intermediate_size };
  const architecture = resolveArchitecture(parseModelConfig(JSON.stringify(dense), 'config.json'));
  const own: Weights = (name) => values(weights.get(name)!);
  const saliency = architecture.blocks.map(() => [0, 0, 0, 0, 0]);
  const tokens = architecture.blocks.map(() => [0, 0, 0, 0, 0]);
  const scored: number[][][] = architecture.blocks.map(() => []);
  const { logits } = runOracle(architecture, own, IDS, {}, (layer, rows, mlp) => {
    const outputs = saliency[layer]!.map((_, e) =>
      mlp((name) => own(name.replace('mlp.', `mlp.experts.${e}.`))),
    );
    const gate = own(`model.layers.${layer}.mlp.gate.weight`);
    return rows.map((row, p) => {
      const scores = outputs.map((_, e) => row.reduce((sum, x, i) => sum + x * gate[e * row.length + i]!, 0));
      scored[layer]!.push(scores);
      const chosen = [...scores.keys()]
        .filter((e) => isThere(layer, e))
        .sort((a, b) => scores[b]! - scores[a]!)
        .slice(0, 2);
      const total = chosen.reduce((sum, e) => sum + Math.exp(scores[e]!), 0);
      const shares = chosen.map((e) => Math.exp(scores[e]!) / total);
      for (const [k, e] of chosen.entries()) {
        saliency[layer]![e]! += shares[k]! * Math.hypot(...outputs[e]![p]!);
        tokens[layer]![e]!++;
      }
      return row.map((_, i) => chosen.reduce((sum, e, k) => sum + shares[k]! * outputs[e]![p]![i]!, 0));
    });
  });
  return {
    logits: logits.flatMap((row) => [...row]),
    saliency: saliency.map((of, layer) => of.map((sum, e) => sum / Math.max(1, tokens[layer]![e]!))),
    tokens,
    /** Cosine of the scores of two experts over all tokens. */
    likeness(layer: number, a: number, b: number) {
      const sum = (i: number, j: number) => scored[layer]!.reduce((all, row) => all + row[i]! * row[j]!, 0);
      return sum(a, b) / Math.sqrt(sum(a, a) * sum(b, b));
    },
  };
}

const largest = (a: ArrayLike<number>, b: ArrayLike<number>) =>
  Array.from(a).reduce((most, value, i) => Math.max(most, Math.abs(value - b[i]!)), 0);

const measured = async ({ open }: Awaited<ReturnType<typeof mixture>>, stack: Stack) => {
  const { runner, close } = await open(stack);
  const measures = await measureExperts(runner, [{ ids: IDS }]);
  const { logits } = await runner.pass({ sequences: [{ ids: IDS, from: 0 }], output: 'logits' });
  close();
  return { measures, logits: logits[0]!, architecture: runner.architecture };
};

const whole: Stack = [0, 1].map((layer) => ({ origin: layer, terms: [{ layer, coefficient: 1 }] }));

describe('experts of least router weight times output', () => {
  it('are found, dropped, and the rest says what it says without them', async () => {
    const model = await mixture('qwen3_moe');
    const { measures, architecture } = await measured(model, whole);
    const expected = oracle(model.text, model.weights);
    for (const [layer, measure] of measures.entries()) {
      expect(largest(measure!.saliency, expected.saliency[layer]!)).toBeLessThan(1e-5);
      expect([...measure!.tokens]).toEqual(expected.tokens[layer]);
    }
    const stack = expertStack(settings({ remove: 2 }), architecture, measures);
    const kept = expected.saliency.map((of) =>
      [...of.keys()]
        .sort((a, b) => of[b]! - of[a]!)
        .slice(0, 3)
        .sort(),
    );
    expect(stack.map(({ experts }) => experts!.map(({ terms }) => terms[0]!.expert))).toEqual(kept);

    const left = oracle(model.text, model.weights, (layer, e) => kept[layer]!.includes(e));
    expect(largest((await measured(model, stack)).logits, left.logits)).toBeLessThan(1e-4);
    const { config, tensors } = await written(model, stack);
    expect(config).toMatchObject({ num_experts: 3, num_experts_per_tok: 2 });
    for (const [layer, own] of kept.entries()) {
      const at = `model.layers.${layer}.mlp`;
      for (const [to, from] of own.entries()) {
        for (const name of ['gate_proj', 'up_proj', 'down_proj']) {
          const stored = model.weights.get(`${at}.experts.${from}.${name}.weight`)!;
          expect(tensors.get(`${at}.experts.${to}.${name}.weight`)).toEqual(stored);
        }
      }
      expect(tensors.get(`${at}.gate.weight`)!.shape).toEqual([3, 32]);
      expect(tensors.has(`${at}.experts.3.up_proj.weight`)).toBe(false);
    }
  });

  it('are averaged into the one that is taken most alike, by the tokens that take them', async () => {
    const model = await mixture('qwen3_moe');
    const { measures, architecture } = await measured(model, whole);
    const stack = expertStack(settings({ ratio: 0.6, variant: 'mean' }), architecture, measures);
    const { tokens, likeness } = oracle(model.text, model.weights);
    const { tensors } = await written(model, stack);
    for (const [layer, { experts }] of stack.entries()) {
      const kept = experts!.map(({ terms }) => terms[0]!.expert);
      const nearest = (e: number) =>
        kept.toSorted((a, b) => likeness(layer, e, b) - likeness(layer, e, a))[0];
      for (const [to, { terms }] of experts!.entries()) {
        const joined = [0, 1, 2, 3, 4].filter(
          (e) => e === kept[to] || (!kept.includes(e) && tokens[layer]![e]! > 0 && nearest(e) === kept[to]),
        );
        expect(terms.map(({ expert }) => expert).sort()).toEqual(joined);
        const total = joined.reduce((sum, e) => sum + tokens[layer]![e]!, 0);
        const name = (e: number) => `model.layers.${layer}.mlp.experts.${e}.down_proj.weight`;
        const stored = joined.map((e) => values(model.weights.get(name(e))!));
        const mean = stored[0]!.map((_, i) =>
          joined.reduce((sum, e, k) => sum + (tokens[layer]![e]! / total) * stored[k]![i]!, 0),
        );
        expect(largest(values(tensors.get(name(to))!), mean)).toBeLessThan(1e-6);
      }
    }
  });

  it.each(['granitemoe', 'gpt_oss'])('%s: all experts in one tensor', async (type) => {
    const model = await mixture(type);
    const layers = resolveArchitecture(parseModelConfig(model.text, 'config.json')).blocks.length;
    const all = Array.from({ length: layers }, (_, layer) => ({
      origin: layer,
      terms: [{ layer, coefficient: 1 }],
    }));
    const { measures, architecture } = await measured(model, all);
    const stack = expertStack(settings({ remove: 1 }), architecture, measures);
    const { config, tensors } = await written(model, stack);
    expect(config.num_local_experts).toBe(4);
    let cut = 0;
    for (const [name, tensor] of tensors) {
      const before = model.weights.get(name)!;
      if (before.shape[0] !== 5) continue;
      const kept = stack[Number(/layers\.(\d)/.exec(name)![1])]!.experts!.map(
        ({ terms }) => terms[0]!.expert,
      );
      const size = before.bytes.length / 5;
      const rows = kept.map((e) => before.bytes.subarray(e * size, (e + 1) * size));
      expect(Buffer.compare(tensor.bytes, Buffer.concat(rows)), name).toBe(0);
      cut++;
    }
    expect(cut).toBe((type === 'gpt_oss' ? 6 : 3) * layers);
    expect((await measured(model, stack)).architecture.blocks).toHaveLength(layers);
    const mean = expertStack(settings({ remove: 3, variant: 'mean' }), architecture, measures);
    await expect(model.open(mean)).rejects.toThrow(/all experts in one tensor/);
  });

  it('stay as many in each group; layers without experts stay as they are', async () => {
    const model = await mixture('glm4_moe', {
      ...{ n_routed_experts: 6, n_group: 2, topk_group: 1, n_shared_experts: 1, first_k_dense_replace: 1 },
      ...{ moe_intermediate_size: 16, num_key_value_heads: 2, norm_topk_prob: true },
    });
    const { measures, architecture } = await measured(model, whole);
    const stack = expertStack(settings({ remove: 2 }), architecture, measures);
    expect(stack[0]).toEqual(whole[0]);
    const kept = stack[1]!.experts!.map(({ terms }) => terms[0]!.expert);
    expect(kept.map((expert) => expert < 3)).toEqual([true, true, false, false]);
    const { config, tensors } = await written(model, stack);
    expect(config.n_routed_experts).toBe(4);
    const correction = 'model.layers.1.mlp.gate.e_score_correction_bias';
    const before = values(model.weights.get(correction)!);
    expect([...values(tensors.get(correction)!)]).toEqual(kept.map((expert) => before[expert]));
    expect((await measured(model, stack)).logits.every(Number.isFinite)).toBe(true);
    expect(() => expertStack(settings({ remove: 1 }), architecture, measures)).toThrow(/in 2 groups/);
  });

  it.each([
    ['qwen3', { remove: 1 }, /no experts/],
    ['qwen3_moe', { remove: 4 }, /takes 2 experts, and 1 would be left/],
    ['qwen3_moe', { remove: 5 }, /Cannot remove 5 experts of 5/],
  ])('%s: %j is refused', async (type, more, words) => {
    const model = await mixture(type);
    const { measures, architecture } = await measured(model, whole);
    expect(() => expertStack(settings(more), architecture, measures)).toThrow(words);
  });
});
