/** Models that are not run: what their configs count is held against what is stored, over every place that opens one. */
import { expect, test } from 'vitest';
import { memoryFolder, type Shapes, safetensors } from '../../inputs/memory-models.test.support';
import { places, whole } from './sound-inputs.test.support';

const matrix = (rows: number, columns: number): Shapes[string] => ['F32', [rows, columns]];

const folder = (files: Parameters<typeof memoryFolder>[1]) =>
  memoryFolder('m', { ...files, 'tokenizer.json': '{"model":{"vocab":{}}}' });

/** Shapes of a T5 with two layers on each side. */
function pairShapes(): Shapes {
  const shapes: Shapes = { 'shared.weight': matrix(12, 8) };
  for (const side of ['encoder', 'decoder']) {
    for (const layer of [0, 1]) {
      const block = `${side}.block.${layer}.layer`;
      for (const part of 'qkvo') shapes[`${block}.0.SelfAttention.${part}.weight`] = matrix(8, 8);
      if (layer === 0) shapes[`${block}.0.SelfAttention.relative_attention_bias.weight`] = matrix(4, 2);
      shapes[`${block}.1.DenseReluDense.wi.weight`] = matrix(20, 8);
      shapes[`${block}.1.DenseReluDense.wo.weight`] = matrix(8, 20);
    }
    shapes[`${side}.final_layer_norm.weight`] = ['F32', [8]];
  }
  return shapes;
}
const pairConfig = {
  model_type: 't5',
  architectures: ['T5ForConditionalGeneration'],
  is_encoder_decoder: true,
  ...{ d_model: 8, d_ff: 20, num_layers: 2, num_decoder_layers: 2, num_heads: 2, vocab_size: 12 },
};
function pair(config: object = {}, without?: RegExp, more: Shapes = {}) {
  const shapes = Object.entries({ ...pairShapes(), ...more }).filter(([name]) => !without?.test(name));
  return folder({
    'config.json': { ...pairConfig, ...config },
    'model.safetensors': safetensors(Object.fromEntries(shapes)),
  });
}

const electra = (config: object, more: Shapes = {}) =>
  folder({
    'config.json': {
      model_type: 'electra',
      architectures: ['ElectraForSequenceClassification'],
      ...{ hidden_size: 8, embedding_size: 4, intermediate_size: 20, num_hidden_layers: 2, vocab_size: 12 },
      ...config,
    },
    'model.safetensors': safetensors({
      'electra.embeddings.word_embeddings.weight': matrix(12, 4),
      ...Object.fromEntries(
        [0, 1].map((i) => [`electra.encoder.layer.${i}.intermediate.dense.weight`, matrix(20, 8)]),
      ),
      ...more,
    }),
  });

test.each([
  [
    'more layers on both sides',
    pair({ num_layers: 3, num_decoder_layers: 3 }),
    /lacks|TensorMissing encoder.block.2,decoder.block.2/,
  ],
  [
    'more layers of the decoder',
    pair({ num_decoder_layers: 4 }),
    /TensorMissing decoder.block.2 to decoder.block.3$/,
  ],
  [
    'the decoder as deep as the encoder',
    pair({ num_decoder_layers: undefined }, /^decoder.block.1/),
    /TensorMissing decoder.block.1$/,
  ],
  ['a layer lost in the middle', pair({}, /^encoder.block.0/), /TensorMissing encoder.block.0$/],
  ['no decoder at all', pair({}, /^decoder/), /TensorMissing decoder$/],
  ['fewer layers', pair({ num_layers: 1, num_decoder_layers: 2 }), /TensorsUnused encoder.block.1/],
  ['d_ff', pair({ d_ff: 32 }), /ShapeMismatch no layer has d_ff 32$/],
  ['vocab_size', pair({ vocab_size: 24 }), /ShapeMismatch shared.weight: \[12,8\] instead of \[24,8\]$/],
  ['d_model', pair({ d_model: 16 }), /ShapeMismatch shared.weight: \[12,8\] instead of \[12,16\]$/],
  ['untied, and no head', pair({ tie_word_embeddings: false }), /HeadMissing lm_head.weight$/],
  [
    'labels of an encoder',
    electra({}, { 'classifier.out_proj.weight': matrix(3, 8) }),
    /ShapeMismatch classifier/,
  ],
  ['layers of an encoder', electra({ num_hidden_layers: 4 }), /TensorMissing electra.encoder.layer.2 to/],
  [
    'sizes of an encoder',
    electra({ intermediate_size: 64 }),
    /ShapeMismatch no layer has intermediate_size 64/,
  ],
  ['no layers by the config of a Llama', whole('m', { config: { num_hidden_layers: 0 } }), /ConfigInvalid/],
])('%s', async (_, model, inPlan) => {
  expect(await places.copy!(model)).toMatch(inPlan);
  expect(await places.compare!(model)).toMatch(/do not belong together|PlanHasErrors/);
});

test('nothing is found where all is well', async () => {
  const sound = [
    pair(),
    pair({ tie_word_embeddings: false }, undefined, { 'lm_head.weight': matrix(12, 8) }),
    pair({ architectures: ['T5EncoderModel'] }, /^decoder/),
    pair({ decoder_vocab_size: 14, vocab_size: 24 }),
    electra({}, { 'classifier.out_proj.weight': matrix(2, 8) }),
    electra({ id2label: { 0: 'a', 1: 'b', 2: 'c' } }, { 'classifier.out_proj.weight': matrix(3, 8) }),
    folder({
      'config.json': { model_type: 'mystery', hidden_size: 4, intermediate_size: 99, vocab_size: 12 },
      'model.safetensors': safetensors({
        'x.embed_tokens.weight': matrix(16, 8),
        'x.layers.0.w': matrix(4, 4),
      }),
    }),
  ];
  for (const model of sound) expect(await places.copy!(model)).toBe('');
});
