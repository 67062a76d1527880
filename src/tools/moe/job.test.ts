/** Mixtures of tiny dense models: what is written, against the dense models in f64 and against llama.cpp. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { hasLlama, llama, logProbabilities } from '../../../e2e/llama-cpp';
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import { parseModelConfig } from '../../formats/model-config';
import { type FileTensor, values } from '../../forward/golden.test.fixture';
import { runOracle } from '../../forward/oracle';
import { openRunner } from '../../forward/runner';
import { ROOMY, sourceOf } from '../../forward/runner.test.cases';
import { resolveArchitecture } from '../../models/resolution';
import { scratchFolder } from '../../scratch-folder.test.support';
import { fakeStorage } from '../../store/opfs.test.fake';
import { listOutputs } from '../../write/finished-outputs';
import {
  type Dense,
  denseModels,
  GATES,
  hidden,
  IDS,
  LLAMA,
  largest,
  write,
  written,
} from './mixture.test.support';

const scratch = scratchFolder();
beforeEach(() => vi.stubGlobal('navigator', fakeStorage().navigator));

async function logitsOf(json: Record<string, unknown>, tensors: ReadonlyMap<string, FileTensor>) {
  const architecture = resolveArchitecture(parseModelConfig(JSON.stringify(json), 'config.json'));
  const runner = openRunner(createCpuBackend(), architecture, sourceOf(tensors), ROOMY);
  const { logits } = await runner.pass({ sequences: [{ ids: IDS, from: 0 }], output: 'logits' });
  runner.close();
  return logits[0]!;
}

/** The dense base in f64 with a mixture in place of its MLPs, by the routers that were written: two experts of three a token. */
function mixtureLogits(
  dense: Dense,
  tensors: ReadonlyMap<string, FileTensor>,
  router: string,
  shared?: { of: number; gate?: string },
) {
  const [base] = dense as [Dense[0]];
  const score = (row: Float64Array, name: string, expert: number) => {
    const gate = values(tensors.get(name)!);
    return row.reduce((sum, x, i) => sum + x * gate[expert * row.length + i]!, 0);
  };
  const { logits } = runOracle(base.architecture, base.weights, IDS, {}, (layer, rows, mlp) => {
    const outputs = ORDER.map((of) => mlp(dense[of]!.weights));
    const beside = shared && mlp(dense[shared.of]!.weights);
    return rows.map((row, p) => {
      const name = router.replace('*', String(layer));
      const shares = outputs.map((_, e) => Math.exp(score(row, name, e)));
      shares[shares.indexOf(Math.min(...shares))] = 0;
      const total = shares.reduce((a, b) => a + b, 0);
      const gate = shared?.gate?.replace('*', String(layer));
      const open = gate ? 1 / (1 + Math.exp(-score(row, gate, 0))) : 1;
      return row.map((_, i) => {
        const routed = outputs.reduce((sum, own, e) => sum + (shares[e]! / total) * own[p]![i]!, 0);
        return routed + (beside ? open * beside[p]![i]! : 0);
      });
    });
  });
  return logits.flatMap((row) => [...row]);
}

/** Of the experts below, among the dense models. */
const ORDER = [1, 2, 0];
describe('a mixture says what its experts do by the shares of its routers', () => {
  it.each([
    ['llama', 'mixtral', GATES.mixtral, '', LLAMA, undefined],
    ['mistral', 'mixtral', GATES.mixtral, '', { sliding_window: 4 }, undefined],
    // the defaults of one class, which are not those of the other
    [
      'mistral',
      'mixtral',
      GATES.mixtral,
      '',
      { sliding_window: undefined, rms_norm_eps: undefined },
      undefined,
    ],
    ['qwen3', 'qwen3_moe', GATES.other, '', {}, undefined],
    ['qwen3', 'qwen3_moe', GATES.other, 'architecture: qwen\n', { tie_word_embeddings: true }, undefined],
    [
      ...['qwen2', 'qwen2_moe', GATES.other],
      'shared_experts: [{source_model: b, positive_prompts: [jump]}]\n',
      ...[{}, { of: 2, gate: 'model.layers.*.mlp.shared_expert_gate.weight' }],
    ],
    [
      ...['llama', 'deepseek', GATES.other],
      'architecture: deepseek\nshared_experts: [{source_model: a}]\n',
      ...[LLAMA, { of: 1 }],
    ],
  ] as [string, string, string, string, object, Parameters<typeof mixtureLogits>[3]][])(
    '%s → %s',
    async (type, made, router, more, config, shared) => {
      const dense = denseModels(type, { ...config });
      const { json, tensors, report } = await written(dense, hidden(more));
      expect(json.model_type).toBe(made);
      expect(tensors.has('lm_head.weight')).toBe(!json.tie_word_embeddings);
      expect(report.figures).toMatchObject({ experts: 3, expertsPerToken: 2 });
      const stored = [...tensors.values()].reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b), 0);
      expect(report.figures.parameters.all).toBe(stored);
      const expected = mixtureLogits(dense, tensors, router, shared);
      expect(largest(await logitsOf(json, tensors), expected)).toBeLessThan(1e-4);
    },
  );
});

const GGUF = { gguf: 'F32', ggufOnly: false, shardBytes: 1e9 } as const;

describe.runIf(hasLlama)('llama.cpp says the same of the GGUF file', () => {
  it.each([
    ['llama', LLAMA],
    ['qwen3', {}],
  ])('of %s models', async (type, config) => {
    const { files, json, tensors } = await written(denseModels(type, config), hidden(), { form: GGUF });
    const path = join(scratch, `${type}.gguf`);
    writeFileSync(path, [...files].find(([name]) => name.endsWith('.gguf'))![1]);
    const own = logProbabilities(await logitsOf(json, tensors), 64);
    const model = llama().open(path);
    try {
      expect(largest(logProbabilities(model.logits(IDS), 64), own)).toBeLessThan(1e-3);
    } finally {
      model.close();
    }
  });

  it('and of shares that it would not normalize there is none', async () => {
    const shared = 'shared_experts: [{source_model: b, positive_prompts: [jump]}]\n';
    await expect(written(denseModels('qwen2'), hidden(shared), { form: GGUF })).rejects.toThrow(/shares/);
  });
});

describe('weights of experts', () => {
  it('are scaled where they leave the MLP, and noise is by the seed', async () => {
    const dense = denseModels('llama', LLAMA);
    const recipe =
      'base_model: base\ngate_mode: random\nexperts:\n  - {source_model: a, residual_scale: 0.5}\n  - {source_model: b, noise_scale: 0.25, residual_scale: 2}\n';
    const { tensors } = await written(dense, recipe);
    const expert = (e: number, name: string) =>
      values(tensors.get(`model.layers.1.block_sparse_moe.experts.${e}.${name}.weight`)!);
    const own = (of: number, name: string) => dense[of]!.weights(`model.layers.1.mlp.${name}_proj.weight`);
    expect(expert(0, 'w1')).toEqual(own(1, 'gate'));
    expect(expert(0, 'w3')).toEqual(own(1, 'up'));
    expect(expert(0, 'w2')).toEqual(own(1, 'down').map((x) => x / 2));
    for (const [name, from, factor] of [
      ['w1', 'gate', 1],
      ['w3', 'up', 1],
      ['w2', 'down', 2],
    ] as const) {
      const noise = expert(1, name).map((x, i) => x / factor - own(2, from)[i]!);
      const deviation = Math.sqrt(noise.reduce((sum, x) => sum + x * x, 0) / noise.length);
      expect(Math.abs(deviation / 0.25 - 1)).toBeLessThan(0.1);
      expect(Math.abs(noise.reduce((sum, x) => sum + x, 0) / noise.length)).toBeLessThan(0.02);
    }
    expect((await written(dense, recipe)).tensors).toEqual(tensors);
  });

  it('have the dtype of the recipe', async () => {
    const { json, tensors } = await written(denseModels('qwen3'), hidden('dtype: bfloat16\n'));
    expect(json.torch_dtype).toBe('bfloat16');
    expect(new Set([...tensors.values()].map(({ dtype }) => dtype))).toEqual(new Set(['BF16']));
  });
});

describe('a mixture that cannot be is refused with the reason', () => {
  it.each([
    [
      'llama',
      hidden('shared_experts: [{source_model: a}, {source_model: b}]\n'),
      /Mixtral: it has no shared expert.*DeepSeek MoE: it takes one/,
    ],
    ['llama', hidden('architecture: qwen3\n'), /Models of type llama make no Qwen3 MoE/],
    ['llama', hidden('architecture: gpt\n'), /No mixture has the architecture gpt/],
    ['qwen2', hidden(), /exactly one shared expert/],
    ['qwen3', hidden('shared_experts: [{source_model: a}]\n'), /Qwen3 MoE: it has no shared expert/],
    ['phi3', hidden(), /Models of type phi3 make no mixture/],
  ])('%s %#', async (type, recipe, words) => {
    await expect(written(denseModels(type, type === 'llama' ? LLAMA : {}), recipe)).rejects.toThrow(words);
  });

  it('where attention has what the form cannot say', async () => {
    const biased = denseModels('llama', { ...LLAMA, attention_bias: true });
    await expect(written(biased, hidden())).rejects.toThrow(
      /cannot be Mixtral: its layer 0 attends otherwise/,
    );
    const wide = denseModels('llama', { ...LLAMA, head_dim: 16 });
    await expect(written(wide, hidden('architecture: deepseek\n'))).rejects.toThrow(/cannot be DeepSeek/);
    const mlp = denseModels('llama', { ...LLAMA, mlp_bias: true });
    await expect(written(mlp, hidden())).rejects.toThrow(/its MLPs have biases/);
  });

  it('where the models are of other sizes', async () => {
    const [base, a] = denseModels('qwen3') as [Dense[0], Dense[0]];
    const [, , b] = denseModels('qwen3', { intermediate_size: 64 });
    await expect(written([base, a, b!], hidden())).rejects.toThrow(/b has 2 layers of width 32, MLPs of 64/);
  });
});

it('an interrupted one goes on to the same bytes, and one that is not to be resumed leaves nothing', async () => {
  const dense = denseModels('qwen3');
  const name = 'interrupted';
  const request = { destination: { kind: 'downloads', name }, resume: true } as const;
  await expect(write(dense, hidden(), request, new AbortController())).rejects.toThrow(/Canceled|canceled/);
  const resumed = await written(dense, hidden(), request);
  const { tensors } = await written(dense, hidden());
  expect(resumed.tensors).toEqual(tensors);

  const other = { destination: { kind: 'downloads', name: 'left' } } as const;
  await expect(write(dense, hidden(), other, new AbortController())).rejects.toThrow(/Canceled|canceled/);
  expect((await listOutputs()).map((output) => output.name)).not.toContain('left');
});
