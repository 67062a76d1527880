import type { Family } from '../family';
import * as wirings from '../wirings/encoders';

/** BERT (transformers modeling_bert.py). */
export const bert: Family = {
  id: 'bert',
  modelTypes: { bert: { tiedByDefault: true, wiring: wirings.bert } },
  prefix: 'bert.',
  embedding: 'bert.embeddings.word_embeddings.weight',
  head: 'cls.predictions.decoder.weight',
  stack: 'bert.encoder.layer.',
  linearStorage: 'out_in',
};

const shared = { tiedByDefault: true, wiring: wirings.roberta };

/** RoBERTa, XLM-RoBERTa and CamemBERT (transformers modeling_roberta.py and those made of it). */
export const roberta: Family = {
  id: 'roberta',
  modelTypes: { roberta: shared, 'xlm-roberta': shared, camembert: shared },
  prefix: 'roberta.',
  embedding: 'roberta.embeddings.word_embeddings.weight',
  head: 'lm_head.decoder.weight',
  stack: 'roberta.encoder.layer.',
  linearStorage: 'out_in',
};

/** DistilBERT (transformers modeling_distilbert.py). */
export const distilbert: Family = {
  id: 'distilbert',
  modelTypes: { distilbert: { tiedByDefault: true, wiring: wirings.distilbert } },
  prefix: 'distilbert.',
  embedding: 'distilbert.embeddings.word_embeddings.weight',
  head: 'vocab_projector.weight',
  stack: 'distilbert.transformer.layer.',
  linearStorage: 'out_in',
};

/** ModernBERT (transformers modeling_modernbert.py). */
export const modernbert: Family = {
  id: 'modernbert',
  modelTypes: { modernbert: { tiedByDefault: true, wiring: wirings.modernbert } },
  prefix: 'model.',
  embedding: 'model.embeddings.tok_embeddings.weight',
  head: 'decoder.weight',
  stack: 'model.layers.',
  linearStorage: 'out_in',
};
