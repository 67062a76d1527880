/** A task that is named on the command line. */
import { basename } from 'node:path';
import type { OptionValues } from '../reports/option';
import type { TaskSource } from '../reports/tasks';
import type { itemOptions } from '../tasks/options';
import { usage } from './arguments';
import { readTextFile } from './input-files';

/** A name, or a file of rows. @throws AmalgamError that of a file that cannot be read */
export async function taskSource(name: string, workingFolder: string): Promise<TaskSource> {
  if (!/[/.]/.test(name)) return { name };
  return { file: { name: basename(name), text: await readTextFile(name, workingFolder) } };
}

/** Which items of tasks are scored, and how. @throws Usage */
export function itemsOf({ limit, sampleSeed, fewshot }: OptionValues<typeof itemOptions>): {
  limit: number | null;
  fewshot: number | null;
  sampleSeed?: number;
} {
  if (sampleSeed !== undefined && limit === undefined) throw usage('--sample-seed belongs to --limit.');
  return {
    limit: limit ?? null,
    fewshot: fewshot ?? null,
    ...(sampleSeed === undefined ? {} : { sampleSeed }),
  };
}
