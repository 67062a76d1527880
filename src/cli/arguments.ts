/** Reading arguments of the command line by the options of a tool, and saying what they are. */
import process from 'node:process';
import { parseArgs } from 'node:util';
import { AmalgamError } from '../errors';
import type { BackendChoice } from '../reports/backend';
import {
  type ChoiceOption,
  isInRange,
  type NumberOption,
  type Option,
  type Options,
  type OptionValues,
  rangeWords,
} from '../reports/option';

const ENGINES: readonly string[] = ['auto', 'webgpu', 'cpu'] satisfies BackendChoice[];

/** Hub and cache that models not found as folders come from. */
export const placeOptions = {
  hub: { kind: 'text', argument: 'URL', help: 'Address of another hub.' },
  cache: { kind: 'text', argument: 'DIR', help: 'A folder that keeps downloads and masks.' },
} as const satisfies Options;

export const engineOptions = {
  engine: {
    kind: 'text',
    argument: ENGINES.join('|'),
    help: 'webgpu computes on the GPU, by the package webgpu; cpu and auto on the processor.',
  },
  ...placeOptions,
} as const satisfies Options;

const reportOption = {
  report: { kind: 'text', argument: 'FILE.json', help: 'A file that takes the report.' },
} as const satisfies Options;

/** Of a verb that reads models and reports on them, and computes nothing. */
const reportOptions = { ...reportOption, ...placeOptions } as const satisfies Options;

export const runOptions = { ...reportOption, ...engineOptions } as const satisfies Options;

export const outOption = {
  out: { kind: 'text', argument: 'DIR', help: 'Where the result is written.' },
} as const satisfies Options;

/** `--quiet`, which every verb takes: no progress. */
export function isQuiet(): boolean {
  return process.argv.includes('--quiet');
}

/** Parsed command line: the subjects of a verb, and its options. */
interface Arguments<S extends Options> {
  subjects: string[];
  options: OptionValues<S>;
  /** Flags that were typed. */
  given: ReadonlySet<string>;
}

/** The one thing a verb is about, and its options. @throws Usage */
export function parseOne<const S extends Options>(verb: string, what: string, args: string[], spec: S) {
  const { subjects, ...rest } = parseCounted(verb, 1, [`a ${what}`, `one ${what}`], args, spec);
  return { subject: subjects[0]!, ...rest };
}

/** So many things a verb is about, and its options; `what` it needs and takes, in words. @throws Usage */
export function parseCounted<const S extends Options>(
  verb: string,
  count: number,
  [needed, taken = needed]: readonly [string, string?],
  args: string[],
  spec: S,
): Arguments<S> {
  const parsed = parseArguments(verb, args, spec);
  const more = parsed.subjects.slice(count);
  if (parsed.subjects.length < count) throw usage(`${verb} needs ${needed}.`);
  if (more.length > 0) throw usage(`${verb} takes ${taken}; ${more.join(' ')} is too much.`);
  return parsed;
}

/** The things a verb is about, one or more, and its options. @throws Usage */
export function parseSome<const S extends Options>(verb: string, what: string, args: string[], spec: S) {
  const parsed = parseArguments(verb, args, spec);
  if (parsed.subjects.length === 0) throw usage(`${verb} needs a ${what}.`);
  return parsed;
}

/** All that stands on the command line. @throws Usage */
function parseArguments<S extends Options>(verb: string, args: string[], spec: S): Arguments<S> {
  const flags = Object.entries(spec).map(([name, option]) => [flagOf(name, option), option] as const);
  const options = Object.fromEntries(
    flags.map(([flag, { kind }]) => [
      flag,
      { type: kind === 'boolean' ? ('boolean' as const) : ('string' as const), multiple: kind === 'list' },
    ]),
  );
  const parsed = refusingOddOnes(verb, () =>
    parseArgs({
      ...{ args, options: { ...options, quiet: { type: 'boolean' } } },
      ...{ allowPositionals: true, strict: true },
    }),
  );
  const values: Readonly<Record<string, unknown>> = parsed.values;
  const found = Object.entries(spec).flatMap(([name, option]) => {
    const flag = flagOf(name, option);
    const value = optionValue(flag, option, values[flag]);
    return value === undefined ? [] : [[name, value] as const];
  });
  return {
    subjects: parsed.positionals,
    options: Object.fromEntries(found) as OptionValues<S>,
    given: new Set(Object.keys(values)),
  };
}

function refusingOddOnes<T>(verb: string, parse: () => T): T {
  try {
    return parse();
  } catch (thrown) {
    throw usage(`${verb}: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
  }
}

function optionValue(flag: string, option: Option, given: unknown) {
  switch (option.kind) {
    case 'boolean':
      return (given === true) !== option.default;
    case 'list': {
      const parts = Array.isArray(given) ? given.map(String) : [];
      return option.whole ? parts : parts.flatMap((part) => part.split(',')).filter((part) => part !== '');
    }
    case 'text':
      return given;
    case 'choice':
      return given === undefined ? option.default : choiceOf(flag, option, String(given));
    default:
      return given === undefined ? option.default : numberOf(flag, option, String(given));
  }
}

/** @throws Usage unless the text is a number in range */
function numberOf(flag: string, option: NumberOption, text: string): number {
  const value = option.unit === 'bytes' ? bytesOf(text) : text.trim() === '' ? Number.NaN : Number(text);
  if (isInRange(option, value)) return value;
  throw usage(`--${flag} is ${text}; it is ${rangeWords(option)}.`);
}

const UNITS: Readonly<Record<string, number>> = { kb: 1e3, mb: 1e6, gb: 1e9 };

/** `20MB` → 20 000 000; NaN unless the text is a size. */
function bytesOf(text: string): number {
  const [, digits, unit = ''] = /^([\d.]+) ?([kmg]b)?$/i.exec(text) ?? [];
  return digits === undefined ? Number.NaN : Math.floor(Number(digits) * (UNITS[unit.toLowerCase()] ?? 1));
}

function choiceOf(flag: string, { values, typed = values }: ChoiceOption, text: string): string {
  const found = values[typed.indexOf(text)];
  if (found !== undefined) return found;
  throw usage(`--${flag} is ${text}; it is one of ${typed.join(', ')}.`);
}

/** `maxRank` → `max-rank`, unless the option has a flag of its own. */
export function flagOf(name: string, { flag }: Option): string {
  return flag ?? name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** Flags of options, as they are typed. */
export function flagsOf(spec: Options): string[] {
  return Object.entries(spec).map(([name, option]) => `--${flagOf(name, option)}`);
}

/** Widest head of a line of options that has its help beside it. */
const HEAD = 26;

/** Help line for each option; a long option has its help on the next line. */
export function optionLines(spec: Options): string[] {
  return Object.entries(spec).flatMap(([name, option]) => {
    const head = flagUsage(name, option);
    const help = `${option.help}${option.kind === 'choice' && option.default !== undefined ? ` Default ${typedDefault(option)}.` : ''}`;
    return head.length > HEAD
      ? [`      ${head}`, `      ${' '.repeat(HEAD)}  ${help}`]
      : [`      ${head.padEnd(HEAD)}  ${help}`];
  });
}

const typedDefault = ({ values, typed = values, default: value }: ChoiceOption) =>
  typed[values.indexOf(value!)];

/** `--threshold 1e-6`: an option as the usage has it, with its default or what stands for its value. */
export function flagUsage(name: string, option: Option): string {
  return [`--${flagOf(name, option)}`, valueUsage(option)].filter((part) => part !== '').join(' ');
}

function valueUsage(option: Option): string {
  if (option.argument !== undefined) return option.argument;
  if (option.kind === 'choice') return (option.typed ?? option.values).join('|');
  if (option.kind !== 'number' && option.kind !== 'integer') return '';
  const { default: value = 0 } = option;
  return value > 0 && value < 1e-3 ? value.toExponential() : String(value);
}

/** `[--threshold 1e-6] [--top 20]`: all of these options, or the ones that are named. */
export function usageOf<S extends Options>(spec: S, ...names: (keyof S & string)[]): string {
  const keys = names.length > 0 ? names : Object.keys(spec);
  return keys
    .map((name) => `[${flagUsage(name, spec[name]!)}]${spec[name]!.kind === 'list' ? '…' : ''}`)
    .join(' ');
}

/** `--rank R | --energy SHARE`: options that exclude each other. */
export function oneOf(spec: Options): string {
  return Object.entries(spec)
    .map(([name, option]) => flagUsage(name, option))
    .join(' | ');
}

export function isHubAddress(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return /^https?:$/.test(protocol) && username === '' && password === ''; // fetch takes no address with a password
}

/** Hub, cache and file of the report. @throws Usage unless the hub is an http address */
export function placeOf({
  report,
  hub,
  cache,
}: OptionValues<typeof reportOptions>): OptionValues<typeof reportOptions> {
  if (hub !== undefined && !isHubAddress(hub)) {
    throw usage(`--hub is ${hub}; it is an address such as https://huggingface.co.`);
  }
  return {
    ...(report === undefined ? {} : { report }),
    ...(hub === undefined ? {} : { hub }),
    ...(cache === undefined ? {} : { cache }),
  };
}

/** Backend, hub, cache and report file of a verb that computes. @throws Usage */
export function runOf(
  options: OptionValues<typeof runOptions>,
): { engine: BackendChoice } & OptionValues<typeof reportOptions> {
  const { engine = 'auto' } = options;
  if (!isEngine(engine)) throw usage(`--engine is ${engine}; it is one of auto, webgpu and cpu.`);
  return { engine, ...placeOf(options) };
}

/** @throws Usage where there is none */
export function outOf(verb: string, { out }: { out?: string }, what = 'DIR, the folder to write'): string {
  if (out !== undefined && out !== '') return out;
  throw usage(`${verb} needs --out ${what}.`);
}

function isEngine(name: string): name is BackendChoice {
  return ENGINES.includes(name);
}

export function usage(message: string): AmalgamError {
  return new AmalgamError('Usage', message, 'Run it with --help to see how it is used.');
}

// A verb of the command, and the place it runs in.

/** Cleanup at the end of a verb, last first, however it ends. */
export type Undo = (() => Promise<void>)[];

/** Where a verb runs and where it prints. */
export interface Place {
  /** Paths on the command line are meant from here. */
  workingFolder: string;
  undo: Undo;
  say(line: string): void;
  write(text: string): Promise<void>;
}

/** One file in `verbs/` and its row in `verbs/index.ts`. */
export interface Verb<C extends object = object> {
  name: string;
  /** Every form of it with a description, as `--help` prints it. */
  usage: string;
  /** All that it takes, in the order that `--help` of the verb lists. */
  options: Options;
  /** Reads its arguments. @throws Usage saying which is wrong */
  parse(args: string[]): C;
  /** Does it. @returns the exit code */
  run(command: C, place: Place): Promise<number>;
}
