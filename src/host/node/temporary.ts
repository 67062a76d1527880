/** Folders of one process in the system's temporary folder. */
import { lstat, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { AmalgamError } from '../../errors';
import { hold, livingOwner, ownNote } from './owner';

const OWNER = '.amalgam-owner';
/** A folder without a note is being made just now, or was left by a version that wrote none. */
const UNKNOWN_MS = 24 * 60 * 60 * 1000;

/**
 * Makes a folder in the system's temporary folder, else in `instead`, and removes those of the same kind that processes left
 * which were killed.
 * @param prefix of its name
 * @returns its path
 * @throws StorageFailed, StorageFull where it can be made nowhere
 */
export async function temporaryFolder(prefix: string, instead?: string): Promise<string> {
  try {
    return await makeIn(tmpdir(), prefix);
  } catch (thrown) {
    if (instead === undefined) throw unusable(thrown);
    try {
      await mkdir(instead, { recursive: true });
      return await makeIn(instead, prefix);
    } catch {
      throw unusable(thrown, instead);
    }
  }
}

async function makeIn(place: string, prefix: string): Promise<string> {
  for (const name of await readdir(place)) {
    const folder = join(place, name);
    if (name.startsWith(prefix) && (await isLeft(folder))) await rm(folder, { recursive: true, force: true });
  }
  const made = await mkdtemp(join(place, prefix));
  try {
    const owner = join(made, OWNER);
    await writeFile(owner, await ownNote());
    hold(owner);
    return made;
  } catch (thrown) {
    await rm(made, { recursive: true, force: true });
    throw thrown;
  }
}

function unusable(thrown: unknown, instead?: string): AmalgamError {
  const { code, message } = thrown as NodeJS.ErrnoException;
  const isFull = code === 'ENOSPC' || code === 'EDQUOT';
  return new AmalgamError(
    isFull ? 'StorageFull' : 'StorageFailed',
    `Nothing can be written to ${tmpdir()}${instead === undefined ? '' : `, nor to ${instead}`}: ${message}.`,
    `Set TMPDIR to a folder that can be written and has room${instead === undefined ? '' : ', or give --cache one'}.`,
    { cause: thrown },
  );
}

async function isLeft(folder: string): Promise<boolean> {
  const stats = await lstat(folder).catch(() => undefined);
  // everybody may write there: what is somebody else's stays
  if (!stats?.isDirectory() || (process.getuid && stats.uid !== process.getuid())) return false;
  const note = await readFile(join(folder, OWNER), 'utf8').catch(() => '');
  return note === ''
    ? Date.now() - stats.mtimeMs > UNKNOWN_MS
    : (await livingOwner(note, join(folder, OWNER))) === undefined;
}
