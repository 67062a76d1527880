/** Kinds of models that merge and get charts, and that cannot be run here, or not to write: the reason, for people who ask. */

const ENCODER = 'an encoder fills in masked words and predicts no next token, so that it writes no text';

const KINDS: readonly (readonly [types: RegExp, reason: string])[] = [
  [
    /^(?:t5|mt5|umt5|longt5|bart|mbart|pegasus\w*|marian|m2m_100|nllb\w*|led|plbart|blenderbot\w*|prophetnet|whisper|speech_to_text|moonshine|seamless\w*|encoder-decoder)$/,
    'an encoder–decoder writes in answer to what its encoder is given, and perplexity here is of text alone. Measure the output on pairs of its task, e.g. with transformers',
  ],
  [
    /^(?:.*bert\w*|electra|deberta(?:-v2)?|mpnet|xlm-?\w*|esm|longformer|funnel|layoutlm\w*|ernie|roformer|squeezebert|nystromformer|big_bird|data2vec-text|gte|new|eurobert)$/,
    `${ENCODER}, and of this type masked words are not scored here (of BERT, RoBERTa, DistilBERT and ModernBERT they are). Measure the output by its task, e.g. with sentence-transformers or a fill-mask pipeline`,
  ],
  [
    /^(?:\w*clip\w*|siglip\w*|vit\w*|dinov\w*|swin\w*|deit|beit|convnext\w*|wav2vec2\w*|hubert|wavlm\w*)$/,
    'it reads images or sound and writes no text. Measure the output by its task',
  ],
];

/**
 * Why models of a type cannot be run, as the end of a sentence; undefined where it is just not known.
 * @param masked its masked words are scored
 */
export function whyNotRun(modelType: string, masked = false): string | undefined {
  if (masked) return `${ENCODER}. What is measured here is its perplexity on masked words`;
  return KINDS.find(([types]) => types.test(modelType))?.[1];
}
