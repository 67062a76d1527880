/** Files written into a new folder on the person's disk. */

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
  let free = name;
  for (let n = 2; await has(within, free); n++) free = `${name}-${n}`;
  const folder = await within.getDirectoryHandle(free, { create: true });
  for (const { name: path, file } of files) {
    const handle = await folder.getFileHandle(path, { create: true });
    // closes the file when all is written, and gives it up when something fails
    await file.stream().pipeTo(await handle.createWritable());
  }
  return free;
}

async function has(within: FileSystemDirectoryHandle, name: string): Promise<boolean> {
  for await (const taken of within.keys()) if (taken === name) return true;
  return false;
}
