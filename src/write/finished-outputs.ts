import { AmalgamError, isDomException } from '../errors';
import { isFolder } from '../store/opfs-file';
import { destinationError, outputName, outputPathParts, storageFull } from './destination-error';
import { readStored } from './opfs-sink';
import { readJournal } from './run-journal';

/**
 * Outputs that wait in the browser's own storage to be downloaded. Layout: `outputs/<name>/files/…` holds the files and
 * `outputs/<name>/complete.json`, written last, says which they are. Without that record an output does not exist;
 * `outputs/<name>/run.jsonl` is the journal from which a cut-off merge goes on.
 */
interface FinishedOutput {
  name: string;
  /** Sum of its files. */
  bytes: number;
  /** False for the remains of a merge that is still running or was cut off. */
  complete: boolean;
  /** Files in the order they were written; empty while not complete. */
  files: OutputFile[];
}

export interface OutputFile {
  path: string;
  bytes: number;
}

export const RECORD_FILE = 'complete.json';
export const JOURNAL_FILE = 'run.jsonl';
export const FILES_FOLDER = 'files';

/** The lock held while `name` is written or removed, so that a second tab never cleans away a running merge. */
export function outputLock(name: string): string {
  return `amalgam-output:${name}`;
}

/** @throws StorageUnavailable when the browser has no storage for this page, StorageFull. */
export async function outputsRoot(): Promise<FileSystemDirectoryHandle> {
  try {
    const root = await navigator.storage.getDirectory();
    return await root.getDirectoryHandle('outputs', { create: true });
  } catch (thrown) {
    if (isDomException(thrown, 'QuotaExceededError')) throw storageFull('an output', { cause: thrown });
    throw new AmalgamError(
      'StorageUnavailable',
      'This browser does not let Amalgam keep files (its private storage is off).',
      'Leave the private window or allow site data, or save to a folder instead.',
      { cause: thrown },
    );
  }
}

/** Every output, complete or not, by name. */
export async function listOutputs(): Promise<FinishedOutput[]> {
  const outputs: FinishedOutput[] = [];
  for await (const handle of (await outputsRoot()).values()) {
    if (isFolder(handle)) outputs.push(await readOutput(handle));
  }
  return outputs.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * A file of a complete output, disk-backed: handing it to `<a download>` copies nothing into memory.
 * @throws NotFound when there is no such output or file, UnsafePath
 */
export async function openOutputFile(name: string, path: string): Promise<File> {
  const folder = await findOutput(name);
  const output = folder && (await readOutput(folder));
  if (!output?.files.some((file) => file.path === path)) {
    throw new AmalgamError(
      'NotFound',
      `The output ${name} has no finished file ${path}.`,
      'It may have been deleted, or the merge did not finish. Merge again.',
    );
  }
  const parts = outputPathParts(path);
  const fileName = parts.pop()!;
  let inside = await folder!.getDirectoryHandle(FILES_FOLDER);
  for (const part of parts) inside = await inside.getDirectoryHandle(part);
  return (await inside.getFileHandle(fileName)).getFile();
}

/** Removes an output. One that is not there is fine. @throws Busy while a merge writes it. */
export async function deleteOutput(name: string): Promise<void> {
  outputName(name);
  const removed = await withOutputLock(name, () => removeOutput(name));
  if (!removed) throw outputBusy(name);
}

/**
 * Removes what cut-off merges left behind and cannot be resumed; outputs that are complete, being written or have a
 * journal stay.
 * @returns the names removed.
 */
export async function cleanOutputs(): Promise<string[]> {
  const cleaned: string[] = [];
  for (const { name, complete } of await listOutputs()) {
    if (complete) continue;
    // Read again under the lock: another tab may have finished it in between. One that is locked is being written.
    await withOutputLock(name, async () => {
      const folder = await findOutput(name);
      if (!folder || (await readOutput(folder)).complete) return;
      if (await readJournal(await readStored(folder, JOURNAL_FILE))) return;
      await removeOutput(name);
      cleaned.push(name);
    });
  }
  return cleaned;
}

/** Runs `act` unless somebody else holds the output; says whether it ran. */
async function withOutputLock(name: string, act: () => Promise<void>): Promise<boolean> {
  return navigator.locks.request(outputLock(name), { ifAvailable: true }, async (lock) => {
    if (lock) await act();
    return lock !== null;
  });
}

export function outputBusy(name: string): AmalgamError {
  return new AmalgamError(
    'Busy',
    `Another merge is writing the output ${name}.`,
    'Wait for it or cancel it, or choose another name.',
  );
}

/** Removes the folder with everything in it. The caller holds its lock. A crashed tab's handles take a moment to go. */
export async function removeOutput(name: string): Promise<void> {
  const root = await outputsRoot();
  for (let attempt = 1; ; attempt++) {
    try {
      await root.removeEntry(name, { recursive: true });
      return;
    } catch (thrown) {
      if (isDomException(thrown, 'NotFoundError')) return;
      const isLocked = isDomException(thrown, 'NoModificationAllowedError');
      if (!isLocked || attempt === 20) throw destinationError(thrown, name);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

/** The folder of an output, or undefined. @throws UnsafePath */
export async function findOutput(name: string): Promise<FileSystemDirectoryHandle | undefined> {
  outputName(name);
  for await (const handle of (await outputsRoot()).values()) {
    if (handle.name === name && isFolder(handle)) return handle;
  }
  return undefined;
}

/** An output as its record says; incomplete when the record is missing, torn, or tells of files that are not there. */
export async function readOutput(folder: FileSystemDirectoryHandle): Promise<FinishedOutput> {
  const present = await filesBelow(folder, FILES_FOLDER);
  const bytes = [...present.values()].reduce((sum, size) => sum + size, 0);
  const files = await readRecord(folder);
  const complete = files?.every((file) => present.get(file.path) === file.bytes) ?? false;
  return { name: folder.name, bytes, complete, files: (complete && files) || [] };
}

async function readRecord(folder: FileSystemDirectoryHandle): Promise<OutputFile[] | undefined> {
  try {
    const record = await folder.getFileHandle(RECORD_FILE);
    const { files } = JSON.parse(await (await record.getFile()).text()) as { files: OutputFile[] };
    return files;
  } catch (thrown) {
    // Not there, or torn by a crash while it was written: the output was never complete.
    if (thrown instanceof SyntaxError || isDomException(thrown, 'NotFoundError')) return undefined;
    throw thrown;
  }
}

/** Path below `name` → size of every file in it. */
async function filesBelow(folder: FileSystemDirectoryHandle, name: string): Promise<Map<string, number>> {
  const sizes = new Map<string, number>();
  const walk = async (inside: FileSystemDirectoryHandle, prefix: string): Promise<void> => {
    for await (const handle of inside.values()) {
      if (isFolder(handle)) await walk(handle, `${prefix}${handle.name}/`);
      else sizes.set(prefix + handle.name, (await (handle as FileSystemFileHandle).getFile()).size);
    }
  };
  for await (const handle of folder.values()) {
    if (handle.name === name && isFolder(handle)) await walk(handle, '');
  }
  return sizes;
}
