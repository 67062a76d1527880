/** Folders of one process in the system's temporary folder. */
import { lstat, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { livingOwner, ownNote } from './owner';

const OWNER = '.amalgam-owner';
/** A folder without a note is being made just now, or was left by a version that wrote none. */
const UNKNOWN_MS = 24 * 60 * 60 * 1000;

/**
 * Makes a folder, and removes those of the same kind that processes left which were killed.
 * @param prefix of its name
 * @returns its path
 */
export async function temporaryFolder(prefix: string): Promise<string> {
  for (const name of await readdir(tmpdir())) {
    const folder = join(tmpdir(), name);
    if (name.startsWith(prefix) && (await isLeft(folder))) await rm(folder, { recursive: true, force: true });
  }
  const made = await mkdtemp(join(tmpdir(), prefix));
  await writeFile(join(made, OWNER), await ownNote());
  return made;
}

async function isLeft(folder: string): Promise<boolean> {
  const stats = await lstat(folder).catch(() => undefined);
  // everybody may write there: what is somebody else's stays
  if (!stats?.isDirectory() || (process.getuid && stats.uid !== process.getuid())) return false;
  const note = await readFile(join(folder, OWNER), 'utf8').catch(() => '');
  return note === '' ? Date.now() - stats.mtimeMs > UNKNOWN_MS : (await livingOwner(note)) === undefined;
}
