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
