/** Chat templates: Jinja, rendered by `@huggingface/jinja`, which is loaded when the first one is used. */
import { AmalgamError } from '../errors';
import type { Message } from '../formats/conversations';

/**
 * Conversations as the model reads them.
 *
 * @param template Jinja text (`chat_template` of tokenizer_config.json, or chat_template.jinja)
 * @param tokens special tokens by name, e.g. `bos_token`
 * @param answer whether a text ends where the assistant begins, to be continued; else with the last message
 * @throws AmalgamError `TokenizerInvalid` when the template does not render one of them
 */
export async function renderChats(
  template: string,
  conversations: readonly (readonly Message[])[],
  tokens: Readonly<Record<string, string>>,
  answer: boolean,
): Promise<string[]> {
  const { Template } = await import('@huggingface/jinja');
  let at = 0;
  try {
    const compiled = new Template(template);
    return conversations.map((messages, i) => {
      at = i;
      return compiled.render({
        ...tokens,
        messages: messages.map((message) => ({ ...message })),
        add_generation_prompt: answer,
      });
    });
  } catch (cause) {
    const which = conversations.length > 1 ? ` conversation ${at + 1}` : '';
    throw new AmalgamError(
      'TokenizerInvalid',
      `The chat template does not render${which}: ${cause instanceof Error ? cause.message : String(cause)}`,
      conversations.length > 1
        ? 'Leave that conversation out, or give the model another template.'
        : 'Write the prompt out as plain text instead.',
      { cause },
    );
  }
}
