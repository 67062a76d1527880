import type { ModelConfig } from '../formats/model-config';

/** One name for tensors that the same model has under several, by the version of transformers that saved it or adapts it. */

/**
 * Spellings → the one they are compared by, in turn. In memory a multimodal model of transformers ≥ 4.52 has
 * `model.language_model.layers…`, its checkpoints `language_model.model.layers…` or `model.layers…`; an encoder may be saved
 * with or without the name of its class in front; Mixtral's checkpoints keep the names of its first release. What all that a
 * pattern matches has in it is looked for first, for few names have it.
 */
const SPELLINGS: readonly (readonly [part: string, pattern: RegExp, to: string])[] = [
  ['.', /^(?:(?:model|language_model|transformer|backbone)\.)+/, ''],
  [
    '.',
    /^(?:bert|roberta|distilbert|electra|albert|deberta|mpnet|esm|camembert|longformer|funnel|nomic_bert)\./,
    '',
  ],
  // BERT's norms as TensorFlow named them
  ['LayerNorm', /(\bLayerNorm)\.gamma$/, '$1.weight'],
  ['LayerNorm', /(\bLayerNorm)\.beta$/, '$1.bias'],
  ['.block_sparse_moe.', /\.block_sparse_moe\./, '.mlp.'],
  ['.w1.', /(\.experts\.\d+)\.w1\./, '$1.gate_proj.'],
  ['.w2.', /(\.experts\.\d+)\.w2\./, '$1.down_proj.'],
  ['.w3.', /(\.experts\.\d+)\.w3\./, '$1.up_proj.'],
];

/** The name, or beginning of one up to a dot, by which tensors of different spellings are compared. */
export function commonName(name: string): string {
  return SPELLINGS.reduce(
    (text, [part, pattern, to]) => (text.includes(part) ? text.replace(pattern, to) : text),
    name,
  );
}

/** Multimodal models: how their checkpoints name what transformers ≥ 4.52 holds in memory under one `model.`. */
const WRAPPED: readonly (readonly [pattern: RegExp, to: string])[] = [
  [/^language_model\.model\./, 'model.language_model.'],
  [/^language_model\.lm_head\./, 'lm_head.'],
  [/^(?=(?:vision_tower|vision_model|multi_modal_projector|mlp1)\.)/, 'model.'],
];
const IN_MEMORY: Readonly<Record<string, readonly (readonly [pattern: RegExp, to: string])[]>> = {
  ...Object.fromEntries(
    [
      ...[
        'llava',
        'llava_next',
        'llava_next_video',
        'llava_onevision',
        'video_llava',
        'vipllava',
        'mistral3',
      ],
      ...['paligemma', 'gemma3', 'aya_vision', 'internvl', 'got_ocr2'],
    ].map((type) => [type, WRAPPED]),
  ),
  ...Object.fromEntries(
    ['qwen2_vl', 'qwen2_5_vl'].map((type) => [
      type,
      [
        [/^visual\./, 'model.visual.'],
        [/^model\.(?!language_model\.|visual\.)/, 'model.language_model.'],
      ],
    ]),
  ),
  mixtral: [[/\.block_sparse_moe\./, '.mlp.']],
};

/** The name of a stored tensor in the model that transformers ≥ 4.52 loads, which adapters go by. */
export function memoryName(name: string, modelType: string | undefined): string {
  const spellings = IN_MEMORY[modelType ?? ''] ?? [];
  return spellings.reduce((text, [pattern, to]) => text.replace(pattern, to), name);
}

// The text tower of a multimodal model, and text models that are the same network.

/** Text towers that transformers calls by a name of their own → the text model that they were made from. */
const TEXT_MODELS: Readonly<Record<string, string>> = {
  qwen2_vl_text: 'qwen2',
  qwen2_5_vl_text: 'qwen2',
  qwen3_vl_text: 'qwen3',
  qwen3_vl_moe_text: 'qwen3_moe',
  // wrappers whose `text_config` has the wrapper's own type
  qwen2_vl: 'qwen2',
  qwen2_5_vl: 'qwen2',
};

/** The text model that a text tower was made from, by the type it has in `text_config`. */
export function textModel(type: string): string {
  return TEXT_MODELS[type] ?? type;
}

/** Tensors of a text model, by the names that they are compared by. */
const TEXT = /^(?:layers\.|embed_tokens|norm\.|lm_head\.)/;

/** Whether a tensor belongs to the text tower, by the name it is compared by. */
export function isOfText(key: string): boolean {
  return TEXT.test(key);
}

/** Whether a model is the text tower alone of a multimodal one, by their configs. */
export function isTextTower(text: ModelConfig | undefined, whole: ModelConfig | undefined): boolean {
  const inner = whole?.raw.get('text_config');
  const type = inner instanceof Map ? inner.get('model_type') : undefined;
  if (typeof type !== 'string' || text?.modelType === undefined || text.raw.has('text_config')) return false;
  const types = [type, type.replace(/_text$/, ''), textModel(type)];
  return types.includes(text.modelType) && text.modelType !== whole?.modelType;
}
