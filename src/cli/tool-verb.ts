/** The verb of a tool: it takes the tool's options, and its usage is written from them. */
import { basename } from 'node:path';
import type { BackendChoice } from '../reports/backend';
import type { DestinationSpec } from '../reports/job';
import type { Options, OptionValues } from '../reports/option';
import type { ProgressOf, ToolCall } from '../tools';
import type { WorkerCalls } from '../worker/calls';
import { type Arguments, defineVerb, flagUsage, outOption, runOptions, usage, type Verb } from './arguments';
import { openNamed } from './job';
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
  /** Positional arguments, each as the usage names it: models, unless `named` says which are meant. */
  subjects: readonly string[];
  /** The last of them can be several. */
  several?: true;
  /** Description for `--help`, in sentences. */
  about: string;
  options: S;
  /** Whether it writes a folder; absent: always. */
  writes?(options: OptionValues<S>): boolean;
  /** @throws Usage for options that exclude each other */
  check?(typed: Typed<S> & { subjects: readonly string[] }): void;
  read(options: OptionValues<S>, workingFolder: string, subjects: readonly string[]): Promise<F>;
  /** The models that what was read names. */
  named?(read: F): readonly string[];
  run(
    calls: WorkerCalls,
    asked: Asked<S, F>,
    onProgress: (progress: ProgressOf<ToolCall>) => void,
  ): Promise<R>;
  /** Text for the terminal. */
  print(report: R, folder: string): string;
}

/** The verb of a tool: its report is told on the terminal, and written where the command says. */
export function toolVerb<const S extends Options, F, R extends object>(tool: ToolVerb<S, F, R>): Verb {
  const { name, subjects, about } = tool;
  const own = Object.fromEntries(
    Object.entries(tool.options).filter(([, { only }]) => only !== 'studio'),
  ) as Options;
  const { needed: _, ...out } = outOption.out;
  const typedBy = ({ options, given }: Arguments<Options>) => ({
    ...{ options: options as unknown as OptionValues<S>, given },
    where: options as unknown as OptionValues<typeof runOptions> & { out?: string },
  });
  return defineVerb<Options>({
    ...{ name, subjects, about },
    options: { out: tool.writes ? out : outOption.out, ...own, ...runOptions },
    ...(tool.several && { several: true }),
    check(command) {
      const { where, ...typed } = typedBy(command);
      tool.check?.({ ...typed, subjects: command.subjects });
      if (tool.writes?.(typed.options) && !where.out) {
        throw usage(`${name} needs ${flagUsage('out', outOption.out)}.`);
      }
    },
    async run(command, place) {
      const { options, given, where } = typedBy(command);
      const writeReport = await reportWriter(where.report, place.workingFolder);
      const { subjects, options: all } = command;
      const read = await tool.read(options, place.workingFolder, subjects);
      const opened =
        where.out === undefined ? undefined : await openOutput(where.out, place, all.resume === true);
      const beside = tool.named && subjects[0];
      const { refs, worker, calls } = await openNamed(tool.named?.(read) ?? subjects, place, where, beside);
      const destination = opened && worker.writeTo(opened.output, basename(opened.folder));
      const asked = {
        ...{ models: [...refs], engine: where.engine, options, given, read },
        ...(destination && { destination }),
      };
      const report = await withProgress<R>((print) => tool.run(calls, asked, print));
      if (opened) requireCommitted(opened.output);
      await writeReport(report);
      await place.write(`${tool.print(report, opened?.folder ?? '')}\n`);
      return 0;
    },
  });
}
