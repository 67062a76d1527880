/** Vocabularies of other sizes in families that name their ends otherwise than Llama: every tensor with a row a token follows. */
import { expect, test } from 'vitest';
import { cellOf, HIDDEN, idsOf, mergeIn, type TokenFolder, tokenFolder } from './vocabulary.test.support';

interface Ends {
  config: Record<string, unknown>;
  embedding: string;
  others: string[];
}

const FAMILIES: Record<string, Ends> = {
  mamba: { config: {}, embedding: 'backbone.embeddings.weight', others: [] },
  rwkv: {
    config: { tie_word_embeddings: false },
    embedding: 'rwkv.embeddings.weight',
    others: ['head.weight'],
  },
  bert: {
    config: {},
    embedding: 'bert.embeddings.word_embeddings.weight',
    others: ['cls.predictions.bias', 'cls.predictions.decoder.bias'],
  },
  roberta: {
    config: {},
    embedding: 'roberta.embeddings.word_embeddings.weight',
    others: ['lm_head.bias', 'lm_head.decoder.bias'],
  },
  // a tied one leaves its head out
  distilbert: {
    config: { tie_word_embeddings: false },
    embedding: 'distilbert.embeddings.word_embeddings.weight',
    others: ['vocab_projector.bias', 'vocab_projector.weight'],
  },
  modernbert: { config: {}, embedding: 'model.embeddings.tok_embeddings.weight', others: ['decoder.bias'] },
  whisper: { config: {}, embedding: 'model.decoder.embed_tokens.weight', others: ['proj_out.weight'] },
  bart: { config: {}, embedding: 'model.shared.weight', others: ['final_logits_bias'] },
  t5: {
    config: {},
    embedding: 'shared.weight',
    others: ['encoder.embed_tokens.weight', 'decoder.embed_tokens.weight'],
  },
  gemma4_text: {
    config: {},
    embedding: 'model.embed_tokens.weight',
    others: ['model.embed_tokens_per_layer.weight'],
  },
};

test.each(Object.entries(FAMILIES))(
  '%s: rows follow their tokens',
  async (model_type, { config, embedding, others }) => {
    const specOf = (tokens: string[]): TokenFolder => ({
      tokens,
      embedding,
      perToken: Object.fromEntries(others.map((name) => [name, undefined])),
      config: { model_type, tie_word_embeddings: true, ...config },
    });
    const specs = { base: specOf(['a', 'b', 'c', 'd']), tuned: specOf(['c', 'a', 'b', 'd', 'e']) };
    const folders = Object.entries(specs).map(([path, spec]) => tokenFolder(path, spec));
    const models = [
      { model: 'base', parameters: { weight: 1 } },
      { model: 'tuned', parameters: { weight: 1 } },
    ];
    const { values, texts, plan } = await mergeIn(
      { mergeMethod: 'linear', models, parameters: {}, amalgam: {}, tokenizerSource: 'union' },
      folders,
    );
    const tokens = ['a', 'b', 'c', 'd', 'e'];
    for (const name of [embedding, ...others]) {
      const width = name.endsWith('bias') ? 1 : HIDDEN;
      const wanted = tokens.flatMap((token) =>
        Array.from({ length: width }, (_, c) => {
          const owners = Object.entries(specs).filter(([, spec]) => idsOf(spec).has(token));
          return owners.reduce((sum, [path]) => sum + cellOf(path, name, token, c), 0) / owners.length;
        }),
      );
      expect([...values.get(name)!], name).toEqual(wanted);
    }
    const flat = plan.tensors.find(({ name }) => name === 'final_logits_bias');
    if (flat) expect(flat.shape).toEqual([1, 5]);
    expect(JSON.parse(texts.get('config.json')!)).toMatchObject({ vocab_size: 5 });
  },
);
