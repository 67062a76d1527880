/** Chat templates: Jinja, rendered by `@huggingface/jinja`, which is loaded when the first one is used. */
import { AmalgamError } from '../errors';

export interface ChatMessage {
  role: 'system' | 'user' | 'assistant';
  content: string;
}

/**
 * The prompt text of a conversation, ending where the assistant begins.
 *
 * @param template Jinja text (`chat_template` of tokenizer_config.json, or chat_template.jinja)
 * @param tokens special tokens by name, e.g. `bos_token`
 * @throws AmalgamError `TokenizerInvalid` when the template does not render
 */
export async function renderChat(
  template: string,
  messages: readonly ChatMessage[],
  tokens: Readonly<Record<string, string>>,
): Promise<string> {
  const { Template } = await import('@huggingface/jinja');
  try {
    return new Template(template).render({
      ...tokens,
      messages: messages.map((message) => ({ ...message })),
      add_generation_prompt: true,
    });
  } catch (cause) {
    throw new AmalgamError(
      'TokenizerInvalid',
      `The chat template does not render: ${cause instanceof Error ? cause.message : String(cause)}`,
      'Write the prompt out as plain text instead.',
      { cause },
    );
  }
}

/** A template with the special tokens it may name. */
export interface ChatTemplate {
  template: string;
  tokens: Record<string, string>;
}

/**
 * The template and the special tokens in the texts of a repo, or undefined where it has none. Of several named
 * templates `default` is taken.
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
    : inConfig;
  const template = file ?? named;
  if (typeof template !== 'string') return undefined;
  const tokens: Record<string, string> = {};
  for (const name of ['bos_token', 'eos_token', 'unk_token', 'pad_token']) {
    const token = config[name];
    if (typeof token === 'string') tokens[name] = token;
    else if (typeof token === 'object' && token !== null && 'content' in token) {
      if (typeof token.content === 'string') tokens[name] = token.content;
    }
  }
  return { template, tokens };
}
