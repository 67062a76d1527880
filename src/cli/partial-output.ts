import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import process from 'node:process';
import { AmalgamError } from '../errors';

/** In an output folder that is not finished: the journal of its run, and the number of the process that writes it. */
export const JOURNAL = '.amalgam-run.jsonl';
export const OWNER = '.amalgam-run.pid';

/** The folder that an interrupted run left beside `target`, the newest when there are several; undefined when there is none. */
export async function findPartial(target: string): Promise<string | undefined> {
  const prefix = `.${basename(target)}.amalgam-`;
  const siblings = await readdir(dirname(target)).catch((): string[] => []);
  const found: { folder: string; at: number }[] = [];
  for (const name of siblings) {
    if (!name.startsWith(prefix) || !/^[0-9a-f]{8}$/.test(name.slice(prefix.length))) continue;
    const folder = join(dirname(target), name);
    const journal = await stat(join(folder, JOURNAL)).catch(() => undefined);
    if (journal?.isFile()) found.push({ folder, at: journal.mtimeMs });
  }
  return found.sort((a, b) => b.at - a.at)[0]?.folder;
}

/** Notes that this process writes the folder. @throws Busy when another one does that is still alive */
export async function claimPartial(folder: string): Promise<void> {
  const owner = Number(await readFile(join(folder, OWNER), 'utf8').catch(() => ''));
  if (owner > 0 && owner !== process.pid && isAlive(owner)) {
    throw new AmalgamError(
      'Busy',
      `The process ${owner} is still writing ${basename(folder)}.`,
      'Wait until it is finished, or end it.',
    );
  }
  await writeFile(join(folder, OWNER), String(process.pid));
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === 'EPERM';
  }
}
