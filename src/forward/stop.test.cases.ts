/** Whoever stops a pass waits for a piece of work at most, and the next pass is as good as any. */
import { expect, test } from 'vitest';
import type { Backend } from '../backend/backend';
import { GROUP_ROWS } from '../backend/kernels/attention';
import { parseModelConfig } from '../formats/model-config';
import { resolveArchitecture } from '../models/resolution';
import { openRunner } from './runner';
import type { WeightSource } from './weight-source';

const CONFIG = {
  ...{ architectures: ['LlamaForCausalLM'], model_type: 'llama', hidden_act: 'silu', rms_norm_eps: 1e-5 },
  ...{ hidden_size: 512, intermediate_size: 1408, num_hidden_layers: 3, vocab_size: 512 },
  ...{ num_attention_heads: 8, num_key_value_heads: 4, max_position_embeddings: 2048 },
  ...{ rope_theta: 10000, tie_word_embeddings: true, torch_dtype: 'bfloat16' },
};
const ROWS = 128;

export const architecture = () =>
  resolveArchitecture(parseModelConfig(JSON.stringify(CONFIG), 'config.json'));

export function zeros(): WeightSource {
  const [hidden, inner] = [CONFIG.hidden_size, CONFIG.intermediate_size];
  const maps = {
    ...{ 'self_attn.q_proj': [hidden, hidden], 'self_attn.k_proj': [hidden / 2, hidden] },
    ...{ 'self_attn.v_proj': [hidden / 2, hidden], 'self_attn.o_proj': [hidden, hidden] },
    ...{ 'mlp.gate_proj': [inner, hidden], 'mlp.up_proj': [inner, hidden], 'mlp.down_proj': [hidden, inner] },
    ...{ input_layernorm: [hidden], post_attention_layernorm: [hidden] },
  };
  const ofLayers = Array.from({ length: CONFIG.num_hidden_layers }, (_, layer) =>
    Object.entries(maps).map(([name, shape]) => [`model.layers.${layer}.${name}.weight`, shape] as const),
  );
  const outside = [
    ['model.embed_tokens.weight', [CONFIG.vocab_size, hidden]],
    ['model.norm.weight', [hidden]],
  ] as const;
  const shapes = [...outside, ...ofLayers.flat()];
  return {
    tensors: new Map(shapes.map(([name, shape]) => [name, { dtype: 'BF16' as const, shape }])),
    read: async (_, begin, end) => new Uint8Array(end - begin),
  };
}

/** Multiply-adds of a dispatch. */
function workOf(kernel: string, params: Record<string, number>): number {
  const {
    rows = 0,
    outputs = 0,
    inputs = 0,
    inputs4 = 0,
    groups = 0,
    heads = 0,
    dim4 = 0,
    value4 = 0,
  } = params;
  if (kernel.startsWith('attention')) return groups * GROUP_ROWS * heads * ROWS * 4 * (dim4 + value4);
  return kernel === 'pack-panels' ? inputs * outputs : 4 * rows * outputs * inputs4;
}

/** @param rates multiply-adds a second of the device, as its engine says */
export function stopCases(open: () => Promise<Backend>, rates: readonly number[]): void {
  test.each(rates)(
    'at %d multiply-adds a second a pass that is stopped ends soon, and the next is whole',
    async (rate) => {
      const engine = await open();
      const stop = new AbortController();
      const seconds = { ...engine.seconds, compute: 0 };
      let [piece, late] = [0, 0];
      let pieces: number[] = [];
      const run: Backend['run'] = (kernel, dispatch) => {
        const work = workOf(kernel.id, dispatch.params);
        piece += work;
        if (stop.signal.aborted) late += work;
        engine.run(kernel, dispatch);
      };
      const read: Backend['read'] = async (ranges) => {
        const bytes = await engine.read(ranges);
        seconds.compute += piece / rate;
        pieces.push(piece / rate);
        piece = 0;
        return bytes;
      };
      const own: Partial<Backend> = { run, read, seconds };
      // all else is the engine's own, with its state
      const watched = new Proxy(engine, {
        get(target, key) {
          const member = own[key as keyof Backend] ?? target[key as keyof Backend];
          return typeof member === 'function' ? member.bind(target) : member;
        },
      });
      const runner = openRunner(watched, architecture(), zeros(), { residentBytes: 2 ** 30 });
      const ids = Array.from({ length: ROWS }, (_, i) => i);
      const request = { sequences: [{ ids, from: 1 }], output: 'loss' } as const;
      await runner.pass(request);
      const whole = pieces.length;
      expect(whole).toBeGreaterThan(5);
      // to the device's own time come the way there and back
      expect(Math.max(...pieces)).toBeLessThan(0.07);
      pieces = [];
      // from outside: it is heard where the pass lets others come
      setTimeout(() => stop.abort(), 0);
      await expect(runner.pass({ ...request, signal: stop.signal })).rejects.toMatchObject({
        code: 'Canceled',
      });
      expect(late).toBe(0);
      expect(pieces.length).toBeLessThan(whole / 2);
      const { losses } = await runner.pass(request);
      expect([...losses[0]!]).toEqual(Array(ROWS - 1).fill(expect.closeTo(Math.log(CONFIG.vocab_size), 5)));
      runner.close();
    },
  );
}
