/** Folders and files from pickers, inputs and drops, as a flat list of paths. Files are not read here. */
import type { LocalFile } from '../../reports/models';

/** Folders in folders are followed this far: a model folder, its adapters, their checkpoints. */
const MAX_DEPTH = 4;

/** Every file of a picked folder, paths beginning with the folder's own name. */
export async function walkDirectory(handle: FileSystemDirectoryHandle): Promise<LocalFile[]> {
  const found: LocalFile[] = [];
  await walkHandle(handle, handle.name, 0, found);
  return found;
}

/** The files of an `<input type="file">`, of a whole folder or one by one. */
export function inputFiles(list: FileList): LocalFile[] {
  return [...list]
    .map((file) => ({ path: file.webkitRelativePath || file.name, file }))
    .filter(({ path }) => !path.split('/').some(isHidden));
}

/** Folders and files dropped on the page. Must be called within the drop event: the list empties afterwards. */
export async function droppedFiles(transfer: DataTransfer): Promise<LocalFile[]> {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter((e) => e !== null);
  const found: LocalFile[] = [];
  for (const entry of entries) await walkEntry(entry, entry.name, 0, found);
  return found;
}

async function walkHandle(
  handle: FileSystemDirectoryHandle,
  path: string,
  depth: number,
  found: LocalFile[],
): Promise<void> {
  for await (const [name, child] of handle.entries()) {
    if (isHidden(name)) continue;
    const childPath = `${path}/${name}`;
    if (child.kind === 'file')
      found.push({ path: childPath, file: await (child as FileSystemFileHandle).getFile() });
    else if (depth < MAX_DEPTH)
      await walkHandle(child as FileSystemDirectoryHandle, childPath, depth + 1, found);
  }
}

async function walkEntry(
  entry: FileSystemEntry,
  path: string,
  depth: number,
  found: LocalFile[],
): Promise<void> {
  if (isHidden(entry.name)) return;
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) =>
      (entry as FileSystemFileEntry).file(resolve, reject),
    );
    found.push({ path, file });
    return;
  }
  if (depth >= MAX_DEPTH) return;
  for (const child of await listEntries(entry as FileSystemDirectoryEntry)) {
    await walkEntry(child, `${path}/${child.name}`, depth + 1, found);
  }
}

/** A directory reader hands out its entries in batches (100 in Chromium) until one is empty. */
async function listEntries(directory: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = directory.createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    const batch = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (batch.length === 0) return all;
    all.push(...batch);
  }
}

/** `.git`, `.cache` and the like: never part of a model, often thousands of files. */
function isHidden(name: string): boolean {
  return name.startsWith('.');
}
