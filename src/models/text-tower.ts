/** The text tower of a multimodal model, and text models that are the same network. */
import type { ModelConfig } from '../formats/model-config';

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
