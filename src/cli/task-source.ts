/** The files of a task that is named on the command line. */
import { realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, relative, resolve } from 'node:path';
import { AmalgamError } from '../errors';
import { displayName } from '../formats/names';
import type { OptionValues } from '../reports/option';
import type { TaskSource } from '../reports/tasks';
import type { itemOptions } from '../tasks/options';
import { usage } from './arguments';
import { readTextFile } from './input-files';

/**
 * A name, or the files that a path stands for: a task in YAML brings the rows beside it that it names. A task may come from
 * somebody else, so its rows lie in its own folder, links followed.
 * @throws AmalgamError `TaskInvalid`, or that of a file that cannot be read
 */
export async function taskSource(name: string, workingFolder: string): Promise<TaskSource> {
  if (!/\.(ya?ml|jsonl|ndjson|json)$/i.test(name)) return { name };
  const text = await readTextFile(name, workingFolder);
  const files = [{ name: basename(name), text }];
  const [, rows] = /data_files:\s*["']?([^\s"'}]+\.jsonl?)/.exec(text) ?? [];
  if (/\.ya?ml$/i.test(name) && rows !== undefined) {
    const folder = resolve(workingFolder, dirname(name));
    const beside = resolve(folder, rows);
    if (await leadsOut(folder, beside)) {
      throw new AmalgamError(
        'TaskInvalid',
        `The task ${displayName(name)} cannot be used: its rows “${displayName(rows)}” are not in its folder.`,
        'Put them beside the task, and name them so.',
      );
    }
    files.push({ name: basename(rows), text: await readTextFile(beside, workingFolder) });
  }
  return { files };
}

/** Whether a file lies outside of a folder, by its own path or by a link; of a file that is not there, by its path. */
async function leadsOut(folder: string, file: string): Promise<boolean> {
  const real = await realpath(file).catch(() => undefined);
  const paths = [[folder, file], ...(real === undefined ? [] : [[await realpath(folder), real]])];
  return paths.some(([from, to]) => {
    const path = relative(from!, to!);
    return path.startsWith('..') || isAbsolute(path);
  });
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
