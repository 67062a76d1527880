/** The verb of a tool: it takes the tool's options, and its usage is written from them. */
import type { BackendChoice } from '../reports/backend';
import type { DestinationSpec } from '../reports/job';
import type { Option, Options, OptionValues } from '../reports/option';
import type { ProgressOf, ToolCall } from '../tools';
import type { WorkerCalls } from '../worker/calls';
import {
  flagOf,
  flagUsage,
  outOf,
  outOption,
  parseCounted,
  runOf,
  runOptions,
  usage,
  usageOf,
  type Verb,
} from './arguments';
import { openNamed, type Where } from './job';
import { openOutput, requireCommitted } from './output-folder';
import { withProgress } from './print';
import { reportWriter } from './report-file';

/** Options and flags as typed. */
interface Typed<S extends Options> {
  options: OptionValues<S>;
  /** Flags that were typed. */
  given: ReadonlySet<string>;
}

interface Asked<S extends Options, F> extends Typed<S> {
  models: string[];
  engine: BackendChoice;
  /** Content of the files that the options name. */
  read: F;
  /** Where files go; absent where the verb writes none. */
  destination?: DestinationSpec;
}

interface ToolVerb<S extends Options, F, R extends object> {
  name: string;
  /** Positional arguments, each as the usage names it. */
  subjects: readonly string[];
  /** Description for `--help`, in sentences. */
  about: string;
  options: S;
  /** Whether it writes a folder; absent: always. */
  writes?(options: OptionValues<S>): boolean;
  /** @throws Usage for options that exclude each other */
  check?(typed: Typed<S>): void;
  read(options: OptionValues<S>, workingFolder: string): Promise<F>;
  run(
    calls: WorkerCalls,
    asked: Asked<S, F>,
    onProgress: (progress: ProgressOf<ToolCall>) => void,
  ): Promise<R>;
  /** Text for the terminal. */
  print(report: R, folder: string): string;
}

interface ToolCommand<S extends Options> extends Where, Typed<S> {
  subjects: string[];
  engine: BackendChoice;
  out?: string;
  report?: string;
}

export function toolVerb<const S extends Options, F, R extends object>(
  tool: ToolVerb<S, F, R>,
): Verb<ToolCommand<S>> {
  const { name, subjects, about, check } = tool;
  const own = Object.fromEntries(
    Object.entries(tool.options).filter(([, { only }]) => only !== 'studio'),
  ) as Options;
  const spec = { ...outOption, ...own, ...runOptions };
  const writes = (options: OptionValues<S>) => tool.writes?.(options) ?? true;
  return {
    name,
    usage: `${wrapped([`${name} ${subjects.map((what) => `<${what}>`).join(' ')}`, tool.writes ? '[--out DIR]' : '--out DIR', ...usageParts(own), usageOf(runOptions)], '  ', ' '.repeat(11))}
${wrapped(about.split(' '), '      ', '      ')}
`,
    options: spec,

    parse(args) {
      // `<base> and <finetuned>`
      const words = subjects.map((what) => `<${what}>`).join(' and ');
      const parsed = parseCounted(name, subjects.length, [words], args, spec);
      const { subjects: models, options: values, given } = parsed;
      const options = values as unknown as OptionValues<S>;
      const { out, ...run } = values as OptionValues<typeof outOption & typeof runOptions>;
      checkGroups(name, own, values as Readonly<Record<string, unknown>>);
      check?.({ options, given });
      return {
        ...{ subjects: models, options, given, ...runOf(run) },
        ...(writes(options) ? { out: outOf(name, out === undefined ? {} : { out }) } : {}),
      };
    },

    async run({ subjects: named, options, given, engine, out, report: reportFile, ...where }, place) {
      const writeReport = await reportWriter(reportFile, place.workingFolder);
      const read = await tool.read(options, place.workingFolder);
      const opened = out === undefined ? undefined : await openOutput(out, place);
      const { refs, worker, calls } = await openNamed(named, place, { ...where, engine });
      const destination = opened && worker.writeTo(opened.output);
      const asked = { models: refs, engine, options, given, read, ...(destination && { destination }) };
      const report = await withProgress<R>((print) => tool.run(calls, asked, print));
      if (opened) requireCommitted(opened.output);
      await writeReport(report);
      await place.write(`${tool.print(report, opened?.folder ?? '')}\n`);
      return 0;
    },
  };
}

/** @throws Usage for options that exclude each other, and for one that is needed */
function checkGroups(verb: string, spec: Options, values: Readonly<Record<string, unknown>>): void {
  for (const members of groupsOf(spec)) {
    const flags = members.map(([name, option]) => `--${flagOf(name, option)}`);
    const words = flags.length > 1 ? `${flags.slice(0, -1).join(', ')} and ${flags.at(-1)}` : flags[0];
    const count = members.filter(([name]) => values[name] !== undefined).length;
    const isNeeded = members.some(([, { needed }]) => needed);
    if (count === 1 || (count === 0 && !isNeeded)) continue;
    if (members.length === 1) {
      if (count === 0) throw usage(`${verb} needs ${words}.`);
      continue;
    }
    throw usage(`${verb} ${isNeeded ? 'needs exactly' : 'takes at most'} one of ${words}.`);
  }
}

/** Groups of options that exclude each other; an option without such a group is a group of one. */
function groupsOf(spec: Options): [string, Option][][] {
  const groups = new Map<string, [string, Option][]>();
  for (const [name, option] of Object.entries(spec)) {
    const key = option.either ?? `--${name}`;
    groups.set(key, [...(groups.get(key) ?? []), [name, option]]);
  }
  return [...groups.values()];
}

/** `[--rank R | --energy SHARE]`, `[--threshold 1e-6]` */
function usageParts(spec: Options): string[] {
  return groupsOf(spec).map((members) => {
    const words = members.map(([name, option]) => flagUsage(name, option)).join(' | ');
    if (!members.some(([, { needed }]) => needed)) {
      return `[${words}]${members[0]![1].kind === 'list' ? '…' : ''}`;
    }
    return members.length > 1 ? `(${words})` : words;
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
