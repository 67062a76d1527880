/** Chat templates: Jinja, rendered by `@huggingface/jinja`, which is loaded when the first one is used. */
import { AmalgamError } from '../errors';
import { boundedInterpreter, boundedRange } from '../formats/bounded-jinja';
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
  const jinja = await import('@huggingface/jinja');
  let at = 0;
  try {
    const program = jinja.parse(jinja.tokenize(template, { lstrip_blocks: true, trim_blocks: true }));
    return conversations.map((messages, i) => {
      at = i;
      const environment = new jinja.Environment();
      const names = {
        ...GLOBALS,
        ...tokens,
        messages: messages.map((message) => ({ ...message })),
        add_generation_prompt: answer,
      };
      for (const [name, value] of Object.entries(names)) environment.set(name, value);
      const characters = messages.reduce((sum, { content }) => sum + content.length, 0);
      return boundedInterpreter(jinja, environment, characters).run(program).value as string;
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

/** What transformers gives every chat template, and what Jinja calls by two names. */
const GLOBALS = {
  true: true,
  True: true,
  false: false,
  False: false,
  none: null,
  None: null,
  range: boundedRange,
  raise_exception(message: string) {
    throw new Error(message);
  },
  strftime_now: (format: string) => formatDate(new Date(), format),
};

/** A date as Python's `strftime` writes it, in English as templates expect. */
export function formatDate(date: Date, format: string): string {
  const two = (value: number) => String(value).padStart(2, '0');
  const month = (style: 'short' | 'long') => new Intl.DateTimeFormat('en', { month: style }).format(date);
  const parts = new Map([
    ['%Y', String(date.getFullYear())],
    ['%m', two(date.getMonth() + 1)],
    ['%d', two(date.getDate())],
    ['%b', month('short')],
    ['%B', month('long')],
    ['%H', two(date.getHours())],
    ['%M', two(date.getMinutes())],
    ['%%', '%'],
  ]);
  return format.replace(/%[YmdbBHM%]/g, (part) => parts.get(part)!);
}
