import { expect, it } from 'vitest';
import type { Checkpoint } from './checkpoint';
import { memoryFolder, type Shapes, safetensors } from './memory-models.test.support';
import { modelTensors } from './model-tensors';
import { openModel } from './opened-model';
import { collectProblems } from './problems';

/** Names as transformers saves them, and the ends that are expected. */
const w = (...names: string[]): Shapes =>
  Object.fromEntries(names.map((name) => [name, ['F32', [8, 4]] as ['F32', number[]]]));

it.each([
  [
    'bert',
    w(
      'bert.embeddings.word_embeddings.weight',
      'bert.embeddings.position_embeddings.weight',
      'bert.embeddings.token_type_embeddings.weight',
      'cls.predictions.transform.dense.weight',
    ),
    'embeddings.word_embeddings.weight',
    'cls.predictions.decoder.weight',
  ],
  [
    'whisper',
    w(
      'model.decoder.embed_tokens.weight',
      'model.decoder.embed_positions.weight',
      'model.encoder.embed_positions.weight',
    ),
    'decoder.embed_tokens.weight',
    'lm_head.weight',
  ],
  [
    'bart',
    w('model.shared.weight', 'model.decoder.embed_positions.weight', 'model.encoder.embed_positions.weight'),
    'shared.weight',
    'lm_head.weight',
  ],
  [
    'modernbert',
    w('model.embeddings.tok_embeddings.weight', 'head.dense.weight'),
    'embeddings.tok_embeddings.weight',
    'decoder.weight',
  ],
  ['rwkv', w('rwkv.embeddings.weight', 'head.weight'), 'rwkv.embeddings.weight', 'head.weight'],
  ['mamba', w('backbone.embeddings.weight'), 'embeddings.weight', 'lm_head.weight'],
  [
    'gemma4',
    w(
      'model.language_model.embed_tokens.weight',
      'model.language_model.embed_tokens_per_layer.weight',
      'model.vision_tower.patch.weight',
    ),
    'embed_tokens.weight',
    'lm_head.weight',
  ],
] as const)(
  '%s: the tensor with a row a token, and the head',
  async (model_type, shapes, embedding, head) => {
    const folder = memoryFolder('m', {
      'config.json': { model_type },
      'model.safetensors': safetensors(shapes),
    });
    const problems = collectProblems();
    const model = modelTensors('m', (await openModel(folder)) as Checkpoint, undefined, problems);
    expect([model.embedding, model.head]).toEqual([embedding, head]);
  },
);
