/** Chat templates: Jinja, rendered by `@huggingface/jinja`, which is loaded when the first one is used. */

import type { Environment, Interpreter } from '@huggingface/jinja';
import { AmalgamError } from '../errors';
import type { Message } from '../formats/conversations';
import { counted } from '../formats/quantity';

/** A conversation as a model reads it, or why its template refuses it. */
export type Rendered = { text: string } | { refused: string };

/**
 * Conversations as the model reads them.
 *
 * @param template Jinja text (`chat_template` of tokenizer_config.json, or chat_template.jinja)
 * @param tokens special tokens by name, e.g. `bos_token`
 * @param answer whether a text ends where the assistant begins, to be continued; else with the last message
 * @throws AmalgamError `TokenizerInvalid` for what is no template
 */
export async function renderChats(
  template: string,
  conversations: readonly (readonly Message[])[],
  tokens: Readonly<Record<string, string>>,
  answer: boolean,
): Promise<Rendered[]> {
  const jinja = await import('@huggingface/jinja');
  const program = parsed();
  return conversations.map((messages): Rendered => {
    const environment = new jinja.Environment();
    const names = {
      ...GLOBALS,
      ...tokens,
      messages: messages.map((message) => ({ ...message })),
      add_generation_prompt: answer,
    };
    const characters = messages.reduce((sum, { content }) => sum + content.length, 0);
    try {
      for (const [name, value] of Object.entries(names)) environment.set(name, value);
      return { text: boundedInterpreter(jinja, environment, characters).run(program).value as string };
    } catch (thrown) {
      return { refused: thrown instanceof Error ? thrown.message : String(thrown) };
    }
  });

  function parsed() {
    try {
      return jinja.parse(jinja.tokenize(template, { lstrip_blocks: true, trim_blocks: true }));
    } catch (cause) {
      // the library reads on behind the end
      if (cause instanceof TypeError) throw notRendered('it ends inside of a statement.');
      throw notRendered(cause instanceof Error ? cause.message : String(cause));
    }
  }
}

/** The error for a template that makes no text. */
export function notRendered(why: string): AmalgamError {
  return new AmalgamError(
    'TokenizerInvalid',
    `The chat template does not render: ${why}`,
    'Give the model another template, or write the text out as plain text instead.',
  );
}

/**
 * Characters of texts and elements of lists that a rendering may make, those that are gone again counted too: an element
 * takes about a hundred bytes, so the worst is near 2 GB. Real templates make some ten thousand.
 */
const MADE_LIMIT = 2 ** 24;
/** And for each character that it is given: a template copies a message some ten times before it is in the text. */
const MADE_PER_CHARACTER = 64;
/** Numbers of a `range`. */
const RANGE_LIMIT = 100_000;

/** Nodes whose value was there before: they make nothing. */
const READERS = new Set(['Identifier', 'StringLiteral', 'Ternary', 'SelectExpression']);

/**
 * An interpreter that stops when the program made too much. Its thread has no memory limit of its own in a browser: a
 * template that doubles a list would end the whole tab before its time is over.
 * @param characters length of the texts that the program is given
 */
function boundedInterpreter(
  jinja: typeof import('@huggingface/jinja'),
  environment: Environment,
  characters: number,
): Interpreter {
  const interpreter = new jinja.Interpreter(environment);
  const limit = MADE_LIMIT + MADE_PER_CHARACTER * characters;
  const evaluate = interpreter.evaluate.bind(interpreter);
  let made = 0;
  // upstream throws at a break, and the turn is lost that it ends; here what follows in the loop has no text
  const loops: Loop[] = [];
  interpreter.evaluate = (statement, scope) => {
    // the else of a loop is a part of the loop around it
    if (statement && statement === loops.at(-1)?.otherwise) loops.pop();
    const loop = loops.at(-1);
    if (loop?.left === 'Continue' && statement === loop.first) delete loop.left;
    if (loop && (statement?.type === 'Break' || statement?.type === 'Continue')) {
      loop.left = statement.type;
      loop.isCut = true;
    }
    if (loop?.left) return evaluate(undefined, scope);
    const depth = loops.length;
    if (statement?.type === 'For') {
      const { body, defaultBlock } = statement as unknown as { body: unknown[]; defaultBlock: unknown[] };
      loops.push({ first: body[0], last: body.at(-1), otherwise: defaultBlock[0] });
    }
    const result = evaluate(statement, scope);
    if (loop && !loop.left && statement === loop.last) loop.hasEnded = true;
    const own = loops[depth];
    if (own?.otherwise && own.isCut && !own.hasEnded) {
      throw new Error('it leaves every turn of a loop that has an else, which Jinja then renders too');
    }
    loops.length = depth;
    if (statement && !READERS.has(statement.type)) made += sizeOf(result.value);
    if (made > limit) throw new Error(`it makes more than ${counted(limit, 'character')} and list elements`);
    return result;
  };
  return interpreter;
}

/** A loop that is rendered. */
interface Loop {
  /** First and last statement of its body, and the first of its else. */
  first: unknown;
  last: unknown;
  otherwise: unknown;
  /** How the turn it is in was left. */
  left?: 'Break' | 'Continue';
  /** A turn was left, and one was not. */
  isCut?: boolean;
  hasEnded?: boolean;
}

function sizeOf(value: unknown): number {
  if (typeof value === 'string' || Array.isArray(value)) return value.length;
  return value instanceof Map ? value.size : 0;
}

/** The `range` of templates. @throws Error when it is too long */
function boundedRange(first: number, end?: number, step = 1): number[] {
  const [from, to] = end === undefined ? [0, first] : [first, end];
  const length = Math.max(0, Math.ceil((to - from) / step));
  if (!(length <= RANGE_LIMIT)) throw new Error(`a range of ${counted(length, 'number')}`);
  return Array.from({ length }, (_, i) => from + i * step);
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
