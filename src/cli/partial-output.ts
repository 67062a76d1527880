import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import process from 'node:process';
import { AmalgamError } from '../errors';
import { livingOwner, ownNote } from '../host/node/owner';

/** In an output folder that is not finished: the journal of its run, and which process writes it. */
export const JOURNAL = '.amalgam-run.jsonl';
export const OWNER = '.amalgam-run.pid';

/**
 * The folder that an interrupted run left, the newest when there are several; undefined when there is none.
 * @param stems what its path begins with, up to eight hexadecimal digits
 */
export async function findPartial(stems: readonly string[]): Promise<string | undefined> {
  const found: { folder: string; at: number }[] = [];
  for (const stem of stems) {
    const siblings = await readdir(dirname(stem)).catch((): string[] => []);
    for (const name of siblings) {
      const prefix = basename(stem);
      if (!name.startsWith(prefix) || !/^[0-9a-f]{8}$/.test(name.slice(prefix.length))) continue;
      const folder = join(dirname(stem), name);
      const journal = await stat(join(folder, JOURNAL)).catch(() => undefined);
      if (journal?.isFile()) found.push({ folder, at: journal.mtimeMs });
    }
  }
  return found.sort((a, b) => b.at - a.at)[0]?.folder;
}

/**
 * Notes that this process writes the folder.
 * @throws Busy when another one does that is still alive
 */
export async function claimPartial(folder: string): Promise<void> {
  const file = join(folder, OWNER);
  const owner = await livingOwner(await readFile(file, 'utf8').catch(() => ''));
  if (owner !== undefined && owner !== process.pid) {
    throw new AmalgamError(
      'Busy',
      `The process ${owner}, another Amalgam, is still writing ${basename(folder)}.`,
      'Wait until it is finished, or end it.',
    );
  }
  await rm(file, { force: true });
  const note = await ownNote();
  if (note !== '') await writeFile(file, note, { flag: 'wx' });
}
