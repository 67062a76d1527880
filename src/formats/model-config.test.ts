import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { editConfig, parseModelConfig } from './model-config';

function parse(config: object | string) {
  return parseModelConfig(
    typeof config === 'string' ? config : JSON.stringify(config, null, 2),
    'm/config.json',
  );
}

test('the sample', () => {
  const config = parse(readFileSync('public/samples/base/config.json', 'utf8'));
  expect(config).toMatchObject({
    modelType: 'llama',
    architectures: ['LlamaForCausalLM'],
    layers: 6,
    hiddenSize: 128,
    intermediateSize: 352,
    attentionHeads: 4,
    keyValueHeads: 2,
    headDim: 32,
    vocabSize: 1024,
    dtype: 'bfloat16',
    ropeTheta: 10000,
    tieWordEmbeddings: true,
  });
});

describe('spellings', () => {
  test('old and new', () => {
    expect(
      parse({ rope_theta: 5e5, torch_dtype: 'torch.float16', tie_word_embeddings: false }),
    ).toMatchObject({
      ropeTheta: 5e5,
      dtype: 'float16',
      tieWordEmbeddings: false,
    });
    expect(
      parse({ rope_parameters: { rope_theta: 5e5, rope_type: 'default' }, dtype: 'float16' }),
    ).toMatchObject({
      ropeTheta: 5e5,
      dtype: 'float16',
    });
  });

  test('GPT-2, OPT and GPT-NeoX names', () => {
    expect(parse({ rotary_emb_base: 40000 }).ropeTheta).toBe(40000);
    expect(parse({ n_layer: 12, n_embd: 768, n_head: 12, n_inner: null, vocab_size: 50257 })).toMatchObject({
      layers: 12,
      hiddenSize: 768,
      attentionHeads: 12,
      vocabSize: 50257,
    });
    expect(parse({ ffn_dim: 88 }).intermediateSize).toBe(88);
  });

  test('a text_config is looked into after the top', () => {
    const config = parse({
      model_type: 'gemma3',
      text_config: { num_hidden_layers: 34, vocab_size: 262208, tie_word_embeddings: false },
      tie_word_embeddings: true,
    });
    expect(config).toMatchObject({
      modelType: 'gemma3',
      layers: 34,
      vocabSize: 262208,
      tieWordEmbeddings: true,
    });
  });

  test('what is absent or null stays absent, but the head is tied', () => {
    const config = parse({ num_hidden_layers: null, num_key_value_heads: [1, 2] });
    expect(config.layers).toBeUndefined();
    expect(config.keyValueHeads).toBeUndefined();
    expect(config.ropeTheta).toBeUndefined();
    expect(config.quantization).toBeUndefined();
    expect(config.tieWordEmbeddings).toBe(true);
  });

  test('quantized weights are named', () => {
    expect(parse({ quantization_config: { quant_method: 'gptq', bits: 4 } }).quantization).toBe('gptq');
    expect(parse({ quantization_config: { bits: 4 } }).quantization).toBe('an unnamed method');
  });

  test('numbers only Python writes', () => {
    expect(parse('{"time_step_limit": [0.0, Infinity], "num_hidden_layers": 2}').layers).toBe(2);
  });
});

test.each([
  ['{', 'JsonInvalid'],
  ['<html>', 'JsonInvalid'],
  ['[]', 'ConfigInvalid'],
  ['{"num_hidden_layers": "12"}', 'ConfigInvalid'],
  ['{"num_hidden_layers": 1.5}', 'ConfigInvalid'],
  ['{"num_hidden_layers": -1}', 'ConfigInvalid'],
  ['{"num_hidden_layers": 1000000000}', 'ConfigInvalid'],
  ['{"text_config": {"n_layer": 4097}}', 'ConfigInvalid'],
  ['{"architectures": "x"}', 'ConfigInvalid'],
  ['{"tie_word_embeddings": 1}', 'ConfigInvalid'],
  ['{"rope_theta": "x"}', 'ConfigInvalid'],
  ['{"text_config": []}', 'ConfigInvalid'],
  ['{"a": 1, "a": 2}', 'DuplicateKey'],
])('%s is refused, naming the file', (text, code) => {
  expect(() => parse(text)).toThrow(
    expect.objectContaining({ code, message: expect.stringContaining('m/config.json') as string }),
  );
});

describe('editConfig', () => {
  const text = `{
  "_name": "x",
  "rms_norm_eps": 1e-05,
  "rope_theta": 10000.0,
  "torch_dtype": "float16",
  "dtype": "float16",
  "num_hidden_layers": 3,
  "layer_types": ["a", "b", "c"],
  "vocab_size": 100,
  "max": 9007199254740993
}
`;

  test('changes the named fields in all their spellings and not one character more', () => {
    const edited = editConfig(parse(text), {
      dtype: 'bfloat16',
      tieWordEmbeddings: false,
      vocabSize: 128,
      layerOrder: [0, 2, 1, 1],
    });
    expect(edited).toBe(`{
  "_name": "x",
  "rms_norm_eps": 1e-05,
  "rope_theta": 10000.0,
  "torch_dtype": "bfloat16",
  "dtype": "bfloat16",
  "num_hidden_layers": 4,
  "layer_types": ["a","c","b","b"],
  "vocab_size": 128,
  "max": 9007199254740993,
  "tie_word_embeddings": false
}
`);
    expect(parse(edited)).toMatchObject({
      layers: 4,
      vocabSize: 128,
      dtype: 'bfloat16',
      tieWordEmbeddings: false,
    });
  });

  test('without changes, and with changes to what is already so, the text stays', () => {
    expect(editConfig(parse(text), {})).toBe(text);
    expect(editConfig(parse(text), { vocabSize: 100, dtype: 'float16' })).toBe(text);
  });

  test('nested configs are edited in place', () => {
    const nested = `{"text_config": {"vocab_size": 8, "eps": 1e-6}, "dtype": "float32"}`;
    expect(editConfig(parse(nested), { vocabSize: 9, dtype: 'float16', tieWordEmbeddings: false })).toBe(
      `{"text_config": {"vocab_size": 9, "eps": 1e-6}, "dtype": "float16",\n"tie_word_embeddings": false}`,
    );
  });

  test('GPT-2 spellings are kept', () => {
    expect(editConfig(parse('{"n_layer": 2}'), { layerOrder: [0, 1, 1] })).toBe('{"n_layer": 3}');
  });
});
