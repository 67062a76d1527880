/** Files written into a new folder on the person's disk. */
import { entriesOf, fileIn, folderIn, rooted, writableOf } from '../../platform';

/**
 * Writes files into a new folder `name`, or `name-2`, … where there is one.
 * @param within the picked folder, writable
 * @returns the name of the new folder
 * @throws the browser's own errors: no access, no room
 */
export async function saveFolder(
  within: FileSystemDirectoryHandle,
  name: string,
  files: readonly { name: string; file: Blob }[],
): Promise<string> {
  const taken = new Set((await entriesOf(within)).map(([entry]) => entry));
  let free = name;
  for (let n = 2; taken.has(free); n++) free = `${name}-${n}`;
  const folder = await folderIn(within, free, true);
  for (const { name: path, file } of files) {
    const stream = await writableOf(await fileIn(folder, path, true));
    // closes the file when all is written, and gives it up when something fails
    await rooted(stream, file.stream().pipeTo(stream));
  }
  return free;
}
