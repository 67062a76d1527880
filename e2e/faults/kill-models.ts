/** A small family for the kill test: large enough that downloads take several pieces and the output several shards. */
import { DTYPE_BITS } from '../../src/formats/dtype';
import { buildSafetensorsHeader } from '../../src/formats/safetensors-write';
import type { FakeModel } from '../fake-hub/repository';

const HIDDEN = 384;
const FFN = 1024;
const VOCABULARY = 2048;
const LAYERS = 6;

/** base, a and b: a LLaMA shape of 11 M parameters in BF16, 23 MB each; the same at every call. */
export function killModels(): FakeModel[] {
  return ['base', 'a', 'b'].map((name, seed) => ({
    id: `kill/${name}`,
    files: {
      'config.json': JSON.stringify({
        model_type: 'tiles',
        architectures: ['LlamaForCausalLM'],
        hidden_size: HIDDEN,
        intermediate_size: FFN,
        num_hidden_layers: LAYERS,
        num_attention_heads: 8,
        vocab_size: VOCABULARY,
        tie_word_embeddings: true,
        torch_dtype: 'bfloat16',
      }),
      'tokenizer.json': '{"model":{"vocab":{}}}',
      'model.safetensors': weights(seed + 1),
    },
  }));
}

/**
 * Shards of 9, 9 and 5 MB, so that kills fall between, at the edges of, and inside them, and into files that have a
 * thread of their own and one that has not.
 */
export const KILL_RECIPE = {
  mergeMethod: 'ties',
  baseModel: 'kill/base',
  models: ['a', 'b'].map((name) => ({ model: `kill/${name}`, parameters: { weight: 0.7, density: 0.5 } })),
  parameters: {},
  amalgam: { shardBytes: 9_000_000 },
};

/** The same as one file: without an index, its name alone marks it as whole. */
export const ONE_SHARD_RECIPE = { ...KILL_RECIPE, amalgam: { shardBytes: 1_000_000_000 } };

function weights(seed: number): Uint8Array<ArrayBuffer> {
  const shapes: [string, number[]][] = [['model.embed_tokens.weight', [VOCABULARY, HIDDEN]]];
  for (let i = 0; i < LAYERS; i++) {
    const layer = `model.layers.${i}`;
    shapes.push(
      [`${layer}.input_layernorm.weight`, [HIDDEN]],
      ...['q', 'k', 'v', 'o'].map((p): [string, number[]] => [
        `${layer}.self_attn.${p}_proj.weight`,
        [HIDDEN, HIDDEN],
      ]),
      [`${layer}.mlp.gate_proj.weight`, [FFN, HIDDEN]],
      [`${layer}.mlp.up_proj.weight`, [FFN, HIDDEN]],
      [`${layer}.mlp.down_proj.weight`, [HIDDEN, FFN]],
    );
  }
  shapes.push(['model.norm.weight', [HIDDEN]]);
  const tensors = shapes.map(([name, shape]) => ({
    name,
    dtype: 'BF16' as const,
    shape,
    byteLength: (shape.reduce((a, b) => a * b, 1) * DTYPE_BITS.BF16) / 8,
  }));
  const header = buildSafetensorsHeader(tensors, { format: 'pt' });
  const elements = tensors.reduce((n, { byteLength }) => n + byteLength / 2, 0);
  const file = new Uint8Array(header.byteLength + 2 * elements);
  file.set(header);
  const words = new Uint16Array(elements);
  let state = Math.imul(seed, 0x9e3779b1) >>> 0;
  for (let i = 0; i < elements; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    // sign, an exponent around 2⁻⁶ and a random mantissa: ordinary weights
    words[i] = ((state >>> 16) & 0x8000) | ((118 + ((state >>> 24) & 3)) << 7) | ((state >>> 9) & 0x7f);
  }
  file.set(new Uint8Array(words.buffer), header.byteLength);
  return file;
}
