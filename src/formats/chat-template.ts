/** Chat templates as text: where a tokenizer has its own, and the ones a recipe may name. */

/** A template with the special tokens it may name. */
export interface ChatTemplate {
  template: string;
  tokens: Record<string, string>;
}

/**
 * The template and the special tokens in the texts of a repo, or undefined where it has none. Of several named
 * templates, a list or an object, `default` is taken.
 *
 * @param config parsed tokenizer_config.json
 * @param file text of chat_template.jinja, which wins
 */
export function chatTemplateOf(
  config: Readonly<Record<string, unknown>>,
  file?: string,
): ChatTemplate | undefined {
  const inConfig = config.chat_template;
  const named = Array.isArray(inConfig)
    ? (inConfig as { name?: unknown; template?: unknown }[]).find((t) => t?.name === 'default')?.template
    : typeof inConfig === 'object' && inConfig !== null
      ? (inConfig as { default?: unknown }).default
      : inConfig;
  const template = file ?? named;
  if (typeof template !== 'string') return undefined;
  return { template, tokens: specialTokens(config) };
}

/** Fields of a tokenizer_config.json that name a token. */
export const TOKEN_FIELDS = ['bos', 'eos', 'unk', 'sep', 'pad', 'cls', 'mask'].map((name) => `${name}_token`);

/** The tokens that a tokenizer_config.json gives a meaning, each written as a text or as `{content: …}`. */
export function specialTokens(config: Readonly<Record<string, unknown>>): Record<string, string> {
  const tokens: Record<string, string> = {};
  for (const name of ['bos_token', 'eos_token', 'unk_token', 'pad_token', 'sep_token']) {
    const token = config[name];
    const content = typeof token === 'object' && token !== null && 'content' in token ? token.content : token;
    if (typeof content === 'string') tokens[name] = content;
  }
  return tokens;
}

const SYSTEM_FIRST =
  "{% if messages[0]['role'] == 'system' %}{% set system = messages[0]['content'] | trim %}{% set turns = messages[1:] %}{% else %}{% set system = '' %}{% set turns = messages %}{% endif %}";

/**
 * The formats that `chat_template` in a recipe may name, as the models they are named after were trained on them
 * (model cards of Alpaca, ChatML/Qwen, EXAONE 3, Llama 3, Mistral 7B Instruct).
 */
export const BUILT_IN_TEMPLATES: Readonly<Record<string, string>> = {
  alpaca: `${SYSTEM_FIRST}{% if system %}{{ system + '\\n\\n' }}{% endif %}{% for message in turns %}{% if message['role'] == 'user' %}{{ '### Instruction:\\n' + message['content'] | trim + '\\n\\n' }}{% else %}{{ '### Response:\\n' + message['content'] | trim + eos_token + '\\n\\n' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '### Response:\\n' }}{% endif %}`,
  chatml:
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] | trim + '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
  exaone:
    "{% for message in messages %}{% if loop.first and message['role'] != 'system' %}{{ '[|system|][|endofturn|]\\n' }}{% endif %}{{ '[|' + message['role'] + '|]' + message['content'] | trim }}{% if message['role'] == 'user' %}{{ '\\n' }}{% else %}{{ '[|endofturn|]\\n' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '[|assistant|]' }}{% endif %}",
  llama3:
    "{{ bos_token }}{% for message in messages %}{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}",
  mistral: `${SYSTEM_FIRST}{{ bos_token }}{% for message in turns %}{% if message['role'] == 'user' %}{{ '[INST] ' + (system + '\\n\\n' if system and loop.first else '') + message['content'] | trim + ' [/INST]' }}{% else %}{{ ' ' + message['content'] | trim + eos_token }}{% endif %}{% endfor %}`,
};

/** Whether a recipe's `chat_template` can be Jinja (mergekit's `merge.py`: at least 20 characters and a brace). */
export function canBeJinja(text: string): boolean {
  return text.length >= 20 && text.includes('{');
}
