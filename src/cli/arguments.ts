/** Reading arguments of the command line by the options of a tool, and saying what they are. */
import process from 'node:process';
import { parseArgs } from 'node:util';
import { AmalgamError } from '../errors';
import { displayName, orMeant } from '../formats/names';
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

/** Hub and cache that models not found as folders come from. */
export const placeOptions = {
  hub: { kind: 'text', argument: 'URL', help: 'Address of another hub.' },
  cache: { kind: 'text', argument: 'DIR', help: 'A folder that keeps downloads and masks.' },
} as const satisfies Options;

export const engineOptions = {
  engine: {
    kind: 'choice',
    values: ['auto', 'webgpu', 'cpu'] satisfies BackendChoice[],
    help: 'webgpu computes on the GPU, by the package webgpu; cpu and auto on the processor.',
    default: 'auto',
  },
  ...placeOptions,
} as const satisfies Options;

export const runOptions = {
  report: { kind: 'text', argument: 'FILE.json', help: 'A file that takes the report.' },
  ...engineOptions,
} as const satisfies Options;

export const strictOption = {
  strict: {
    kind: 'boolean',
    help: 'A key or parameter without effect is a mistake, not a warning.',
    default: false,
  },
} as const satisfies Options;

export const outOption = {
  out: { kind: 'text', argument: 'DIR', help: 'The folder to write.', needed: true },
} as const satisfies Options;

/** `--quiet`, which every verb takes: no progress. */
export function isQuiet(): boolean {
  return process.argv.includes('--quiet');
}

/** Parsed command line: the subjects of a verb, and its options. */
export interface Arguments<S extends Options> {
  subjects: string[];
  options: OptionValues<S>;
  /** Flags that were typed. */
  given: ReadonlySet<string>;
}

/** All that stands on the command line. @throws Usage */
function parseArguments<S extends Options>(verb: string, args: string[], spec: S): Arguments<S> {
  const flags = Object.entries(spec).map(([name, option]) => [flagOf(name, option), option] as const);
  const options = Object.fromEntries(
    [...flags, ['quiet', { kind: 'boolean' }] as const].map(([flag, { kind }]) => [
      flag,
      { type: kind === 'boolean' ? ('boolean' as const) : ('string' as const), multiple: kind !== 'boolean' },
    ]),
  );
  const parsed = refusingOddOnes(verb, options, () =>
    parseArgs({ args: joined(args, options), options, allowPositionals: true, strict: true }),
  );
  const values: Readonly<Record<string, unknown>> = parsed.values;
  const found = Object.entries(spec).flatMap(([name, option]) => {
    const flag = flagOf(name, option);
    const value = optionValue(
      flag,
      option,
      option.kind === 'list' ? values[flag] : onlyOne(flag, values[flag]),
    );
    return value === undefined ? [] : [[name, value] as const];
  });
  return {
    subjects: parsed.positionals,
    options: Object.fromEntries(found) as OptionValues<S>,
    given: new Set(Object.keys(values)),
  };
}

/** The arguments with a negative number put to its flag (`--t -5` → `--t=-5`), which alone reads as another flag. */
function joined(args: readonly string[], options: Readonly<Record<string, { type: string }>>): string[] {
  return args.reduce<string[]>((all, arg) => {
    const before = all.at(-1);
    const isValue = before?.startsWith('--') && options[before.slice(2)]?.type === 'string';
    if (isValue && /^-[\d.]/.test(arg)) all[all.length - 1] = `${before}=${arg}`;
    else all.push(arg);
    return all;
  }, []);
}

/** @throws Usage where the flag was given several times: all but one would have no effect */
function onlyOne(flag: string, given: unknown): unknown {
  if (!Array.isArray(given)) return given;
  if (given.length > 1) throw usage(`--${flag} is given ${given.length} times, and takes one value.`);
  return given[0];
}

/** Parses; what Node's parser refuses is said in the command's own words. @throws Usage */
function refusingOddOnes<T>(
  verb: string,
  known: Readonly<Record<string, { type: string }>>,
  parse: () => T,
): T {
  try {
    return parse();
  } catch (thrown) {
    const [, flag = '', name = ''] = /'(-+([^' ]*))/.exec(String(thrown)) ?? [];
    const option = known[name];
    if (option) throw usage(`${flag} ${option.type === 'boolean' ? 'takes no' : 'needs a'} value.`);
    throw usage(`${verb} has no option ${displayName(flag)}${orMeant(name, Object.keys(known), '--')}`);
  }
}

/** The value of an option as it was typed, or its default. @throws Usage */
export function optionValue(flag: string, option: Option, given: unknown) {
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
  const { unit } = option;
  const value = unit
    ? measureOf(text, option.kind, UNITS[unit])
    : text.trim() === ''
      ? Number.NaN
      : Number(text);
  if (isInRange(option, value)) return value;
  throw usage(
    `--${flag} is ${text}; it is ${rangeWords(option)}${unit ? `, or such as ${SUCH_AS[unit]}` : ''}.`,
  );
}

const SUCH_AS = { bytes: '20MB', seconds: '2m or 90s' };
const UNITS = { bytes: { kb: 1e3, mb: 1e6, gb: 1e9 }, seconds: { s: 1, m: 60, min: 60, h: 3600 } };

/** `20MB` → 20 000 000; NaN unless the text is a number, with one of these units or without. */
function measureOf(
  text: string,
  kind: NumberOption['kind'],
  units: Readonly<Record<string, number>>,
): number {
  const [, digits, unit] = /^([\d.]+) ?([a-z]*)$/i.exec(text) ?? [];
  const times = unit === '' ? 1 : (units[unit?.toLowerCase() ?? ''] ?? Number.NaN);
  const value = Number(digits) * times;
  return kind === 'integer' ? Math.floor(value) : value;
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

export function isHubAddress(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return /^https?:$/.test(protocol) && username === '' && password === ''; // fetch takes no address with a password
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
export interface Verb<S extends Options = Options> {
  name: string;
  /** Its form with a description, as `--help` prints it. */
  usage: string;
  /** Description in sentences. */
  about: string;
  /** Positional arguments, each as the usage names it. */
  subjects: readonly string[];
  /** All that it takes, in the order that `--help` of the verb lists. */
  options: S;
  /** Reads its arguments. @throws Usage saying which is wrong */
  parse(args: string[]): Arguments<S>;
  /** Does it. @returns the exit code */
  run(command: Arguments<S>, place: Place): Promise<number>;
}

interface VerbForm<S extends Options>
  extends Pick<Verb<S>, 'name' | 'about' | 'subjects' | 'options' | 'run'> {
  /** The last of them can be several. */
  several?: true;
  /** Options that mean something with another one only, by the name of that. */
  belongs?: { readonly [K in keyof S]?: readonly (keyof S)[] };
  /** @throws Usage for what does not go together otherwise */
  check?(command: Arguments<S>): void;
}

/** A verb whose usage is written from its options. */
export function defineVerb<const S extends Options>(form: VerbForm<S>): Verb<S> {
  const { name, options, several = false } = form;
  const belongs = (form.belongs ?? {}) as Belonging;
  const words = form.subjects.map((what) => `<${what}>`);
  const head = `${[name, ...words].join(' ')}${several ? ' …' : ''}`;
  return {
    ...{ name, about: form.about, subjects: form.subjects },
    usage: `${wrapped([head, ...usageParts(options, belongs)], '  ', ' '.repeat(11))}
${wrapped(form.about.split(' '), '      ', '      ')}
`,
    options,
    parse(args) {
      const command = parseArguments(name, args, options);
      const { subjects, given } = command;
      if (subjects.length < words.length) throw usage(`${name} needs ${words.join(' and ')}.`);
      const more = several ? [] : subjects.slice(words.length);
      if (more.length > 0)
        throw usage(`${name} takes ${words.join(' and ')}; ${more.join(' ')} is too much.`);
      const values = command.options as Readonly<Record<string, unknown>>;
      const { hub } = values;
      if (typeof hub === 'string' && !isHubAddress(hub)) {
        throw usage(`--hub is ${hub}; it is an address such as https://huggingface.co.`);
      }
      checkGroups(name, options, values);
      for (const [owner, members] of Object.entries(belongs)) {
        const odd = members.map((member) => flagOf(member, options[member]!)).find((flag) => given.has(flag));
        if (odd === undefined || given.has(flagOf(owner, options[owner]!))) continue;
        throw usage(`--${odd} belongs to ${flagUsage(owner, options[owner]!)}.`);
      }
      form.check?.(command);
      return command;
    },
    run: (command, place) => form.run(command, place),
  };
}

type Belonging = Readonly<Record<string, readonly string[]>>;

/** @throws Usage for options that exclude each other, and for one that is needed */
function checkGroups(verb: string, spec: Options, values: Readonly<Record<string, unknown>>): void {
  const isGiven = (value: unknown) =>
    value !== undefined && value !== '' && value !== false && !(Array.isArray(value) && value.length === 0);
  for (const members of groupsOf(Object.entries(spec))) {
    const isNeeded = members.some(([, { needed }]) => needed);
    if (members.length === 1 && !isNeeded) continue;
    const flags = members.map(([name, option]) => `--${flagOf(name, option)}`);
    const count = members.filter(([name]) => isGiven(values[name])).length;
    if (count === 1 || (count === 0 && !isNeeded)) continue;
    if (members.length === 1) throw usage(`${verb} needs ${flagUsage(...members[0]!)}.`);
    const words = `${flags.slice(0, -1).join(', ')} and ${flags.at(-1)}`;
    throw usage(`${verb} ${isNeeded ? 'needs exactly' : 'takes at most'} one of ${words}.`);
  }
}

/** Groups of options that exclude each other; an option without such a group is a group of one. */
function groupsOf(options: readonly [string, Option][]): [string, Option][][] {
  const groups = new Map<string, [string, Option][]>();
  for (const [name, option] of options) {
    const key = option.either ?? `--${name}`;
    groups.set(key, [...(groups.get(key) ?? []), [name, option]]);
  }
  return [...groups.values()];
}

/** `[--rank R | --energy SHARE]`, `[--threshold 1e-6]`, `[--push owner/name [--private]]` */
function usageParts(spec: Options, belongs: Belonging): string[] {
  const inner = new Set(Object.values(belongs).flat());
  const bracketed = (words: string, { kind }: Option) => `[${words}]${kind === 'list' ? '…' : ''}`;
  const whole = (name: string): string => {
    const more = (belongs[name] ?? []).map((member) => bracketed(whole(member), spec[member]!));
    return [flagUsage(name, spec[name]!), ...more].join(' ');
  };
  return groupsOf(Object.entries(spec).filter(([name]) => !inner.has(name))).flatMap((members) => {
    const parts = members.map(([name]) => whole(name));
    if (!members.some(([, { needed }]) => needed)) return bracketed(parts.join(' | '), members[0]![1]);
    if (parts.length === 1) return parts;
    // long ones go over lines
    return parts.map((part, i) => `${i === 0 ? '(' : '| '}${part}${i === parts.length - 1 ? ')' : ''}`);
  });
}

const WIDTH = 120;

/** Lines of at most {@link WIDTH} characters, where words are that short. */
function wrapped(words: readonly string[], first: string, rest: string): string {
  const lines = [first];
  for (const word of words) {
    const line = lines.at(-1)!;
    const isBegun = line.trim() !== '';
    if (isBegun && line.length + word.length >= WIDTH) lines.push(`${rest}${word}`);
    else lines[lines.length - 1] = isBegun ? `${line} ${word}` : `${line}${word}`;
  }
  return lines.join('\n');
}
