import type { Architecture } from './architecture';
import { tensorsIn } from './claim';

/**
 * Heads of encoders that score a pair of texts by the stream of its first token (transformers: `…ForSequenceClassification` in
 * modeling_bert.py, modeling_roberta.py, modeling_distilbert.py, modeling_modernbert.py), by the names they are stored under.
 */
export interface ScoreHead {
  /** f(W·x + b), then a norm, one after the other. */
  layers: readonly {
    linear: string;
    activation: 'tanh' | 'relu' | 'gelu' | 'identity';
    norm?: string;
  }[];
  /** Whether the texts of a pair are told apart by their kind. */
  types?: true;
}

const roberta: ScoreHead = {
  layers: [
    { linear: 'classifier.dense', activation: 'tanh' },
    { linear: 'classifier.out_proj', activation: 'identity' },
  ],
};

/** By `model_type`. */
const HEADS: Readonly<Record<string, ScoreHead>> = {
  bert: {
    types: true,
    layers: [
      { linear: 'bert.pooler.dense', activation: 'tanh' },
      { linear: 'classifier', activation: 'identity' },
    ],
  },
  roberta,
  'xlm-roberta': roberta,
  camembert: roberta,
  distilbert: {
    layers: [
      { linear: 'pre_classifier', activation: 'relu' },
      { linear: 'classifier', activation: 'identity' },
    ],
  },
  modernbert: {
    layers: [
      { linear: 'head.dense', activation: 'gelu', norm: 'head.norm' },
      { linear: 'classifier', activation: 'identity' },
    ],
  },
};

/** Undefined for models whose head is not known. */
export function scoreHead(modelType: string): ScoreHead | undefined {
  return Object.hasOwn(HEADS, modelType) ? HEADS[modelType] : undefined;
}

/** Names of every tensor such a head may have. */
export function scoreTensors(modelType: string): string[] {
  const layers = scoreHead(modelType)?.layers ?? [];
  return layers
    .flatMap(({ linear, norm }) => (norm === undefined ? [linear] : [linear, norm]))
    .flatMap((name) => [`${name}.weight`, `${name}.bias`]);
}

/** The architecture of a model of which the last stream is wanted, whether it was saved with a head for words, for scores or without. */
export function withoutHead({ final, unused = [], ...body }: Architecture): Architecture {
  const { norm, head, tied, ...rest } = final;
  const own = tensorsIn(rest).map(({ name }) => name);
  return {
    ...body,
    final: { ...(norm && { norm }), head: body.embedding.token, tied: true, divisor: 1 },
    unused: [...unused, ...own, ...(tied ? [] : [head]), ...scoreTensors(body.modelType)],
  };
}
