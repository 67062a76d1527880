/** Reading options of the command line. */
import process from 'node:process';
import { parseArgs } from 'node:util';
import { AmalgamError } from '../errors';
import type { BackendChoice } from '../reports/backend';

const ENGINES: readonly string[] = ['auto', 'webgpu', 'cpu'] satisfies BackendChoice[];

/** @throws Usage */
export function engineOption(engine: unknown): BackendChoice {
  if (isEngine(engine)) return engine;
  throw usage(`--engine is ${String(engine)}; it is one of auto, webgpu and cpu.`);
}

/** A number of at least `least`. @throws Usage */
export function numberOption(
  name: string,
  text: unknown,
  otherwise: number,
  least: number,
  whole: boolean,
): number {
  if (text === undefined) return otherwise;
  const value = typeof text === 'string' && text.trim() !== '' ? Number(text) : Number.NaN;
  if (value >= least && (!whole || Number.isSafeInteger(value))) return value;
  throw usage(`--${name} is ${String(text)}; it is ${whole ? 'a whole number' : 'a number'} from ${least}.`);
}

/** `--quiet`, which every verb takes: no progress. */
export function isQuiet(): boolean {
  return process.argv.includes('--quiet');
}

/** Options of a verb as `parseArgs` takes them. */
export type Options = Record<string, { type: 'string' | 'boolean'; multiple?: boolean }>;

/** The one thing a verb is about, and its options. @throws Usage */
export function parseOne(verb: string, what: string, args: string[], options: Options) {
  const { subjects, values } = parseArguments(verb, args, options);
  const [subject, ...more] = subjects;
  if (subject === undefined) throw usage(`${verb} needs a ${what}.`);
  if (more.length > 0) throw usage(`${verb} takes one ${what}; ${more.join(' ')} is too much.`);
  return { subject, options: values };
}

/** The two things a verb is about, and its options. @throws Usage */
export function parseTwo(verb: string, what: string, args: string[], options: Options) {
  const { subjects, values } = parseArguments(verb, args, options);
  const [first, second, ...more] = subjects;
  if (first === undefined || second === undefined) throw usage(`${verb} needs ${what}.`);
  if (more.length > 0) throw usage(`${verb} takes ${what}; ${more.join(' ')} is too much.`);
  return { subjects: [first, second] as const, options: values };
}

/** The things a verb is about, one or more, and its options. @throws Usage */
export function parseSome(verb: string, what: string, args: string[], options: Options) {
  const { subjects, values } = parseArguments(verb, args, options);
  if (subjects.length === 0) throw usage(`${verb} needs a ${what}.`);
  return { subjects, options: values };
}

function parseArguments(verb: string, args: string[], options: Options) {
  try {
    const all: Options = { ...options, quiet: { type: 'boolean' } };
    const { values, positionals } = parseArgs({ args, options: all, allowPositionals: true, strict: true });
    return { subjects: positionals, values: values as Record<string, unknown> };
  } catch (thrown) {
    throw usage(`${verb}: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
  }
}

/** Where models that are no folders come from, and where they are kept. @throws Usage for a hub that is no http address */
export function whereOptions({ hub, cache }: Record<string, unknown>): { hub?: string; cache?: string } {
  const kept = typeof cache === 'string' ? { cache } : {};
  if (typeof hub !== 'string') return kept;
  if (!URL.canParse(hub) || !/^https?:$/.test(new URL(hub).protocol)) {
    throw usage(`--hub is ${hub}; it is an address such as https://huggingface.co.`);
  }
  return { hub, ...kept };
}

function isEngine(name: unknown): name is BackendChoice {
  return typeof name === 'string' && ENGINES.includes(name);
}

export function usage(message: string): AmalgamError {
  return new AmalgamError('Usage', message, 'Run it with --help to see how it is used.');
}

/** One of a few words; the first where none is given. @throws Usage */
export function choiceOption<const T extends string>(
  name: string,
  given: unknown,
  words: readonly [T, ...T[]],
): T {
  if (given === undefined) return words[0];
  const found = words.find((word) => word === given);
  if (found !== undefined) return found;
  throw usage(`--${name} is ${String(given)}; it is one of ${words.join(', ')}.`);
}
