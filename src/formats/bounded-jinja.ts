/**
 * Jinja programs of somebody else, run by `@huggingface/jinja` with a bound on what they make. A template that doubles a
 * list or keeps long texts would fill the memory within its deadline, and a browser ends the whole tab for that.
 */
import type { Environment, Interpreter } from '@huggingface/jinja';

type Jinja = typeof import('@huggingface/jinja');

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
 * An interpreter that stops when the program made too much.
 * @param characters length of the texts that the program is given
 */
export function boundedInterpreter(jinja: Jinja, environment: Environment, characters: number): Interpreter {
  const interpreter = new jinja.Interpreter(environment);
  const limit = MADE_LIMIT + MADE_PER_CHARACTER * characters;
  const evaluate = interpreter.evaluate.bind(interpreter);
  let made = 0;
  interpreter.evaluate = (statement, scope) => {
    const result = evaluate(statement, scope);
    if (statement && !READERS.has(statement.type)) made += sizeOf(result.value);
    if (made > limit) throw new Error(`it makes more than ${limit} characters and list elements`);
    return result;
  };
  return interpreter;
}

/** The `range` of templates. @throws Error when it is too long */
export function boundedRange(first: number, end?: number, step = 1): number[] {
  const [from, to] = end === undefined ? [0, first] : [first, end];
  const length = Math.max(0, Math.ceil((to - from) / step));
  if (!(length <= RANGE_LIMIT)) throw new Error(`a range of ${length} numbers`);
  return Array.from({ length }, (_, i) => from + i * step);
}

function sizeOf(value: unknown): number {
  if (typeof value === 'string' || Array.isArray(value)) return value.length;
  return value instanceof Map ? value.size : 0;
}
