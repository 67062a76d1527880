import { AmalgamError, isDomException } from '../errors';
import {
  bytesOf,
  contentOf,
  entriesOf,
  fileBelow,
  fileIn,
  folderIn,
  ifThere,
  openBroadcast,
  removeFrom,
  storageRoot,
} from '../platform';
import type { PushSource } from '../reports/push';
import type { CacheInfo } from '../reports/worker';
import { isFolder } from '../store/opfs-file';
import { failing, outputName, outputPathParts, storageFull } from './destination-error';
import { readStored } from './opfs-sink';
import { readJournal } from './run-journal';

/**
 * Outputs that wait in the browser's own storage to be downloaded. Layout: `outputs/<name>/files/…` holds the files and
 * `outputs/<name>/complete.json`, written last, lists them. Without that record an output does not exist;
 * `outputs/<name>/run.jsonl` is the journal from which a cut-off merge goes on.
 */
type FinishedOutput = Omit<CacheInfo['outputs'][number], 'files'> & { files: OutputFile[] };

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
    return await folderIn(await storageRoot(), 'outputs', true);
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

/** Outputs that were found complete; one stays so until it is removed, here or in another tab. */
const known = new Map<string, FinishedOutput>();
let changes: ReturnType<typeof openBroadcast<string>> | undefined;

/** Every output, complete or not, by name. Each complete one is looked through once: there may be hundreds. */
export async function listOutputs(): Promise<FinishedOutput[]> {
  changes ??= openBroadcast<string>('amalgam-outputs', (name) => known.delete(name));
  const folders = (await entriesOf(await outputsRoot())).filter(([, handle]) => isFolder(handle));
  const outputs: FinishedOutput[] = [];
  for (const [name, folder] of folders) {
    const output = known.get(name) ?? (await readOutput(folder as FileSystemDirectoryHandle));
    if (output.complete) known.set(name, output);
    outputs.push(output);
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
  return contentOf(await fileBelow(folder!, [FILES_FOLDER, ...outputPathParts(path)]));
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

/** Runs `act` unless the output is locked elsewhere; returns whether it ran. */
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
  known.delete(name);
  changes?.say(name);
  const removing = removeFrom(await outputsRoot(), name, { recursive: true, isAwaited: true });
  await ifThere(removing).catch(failing(name));
}

/** The folder of an output, or undefined. @throws UnsafePath */
export async function findOutput(name: string): Promise<FileSystemDirectoryHandle | undefined> {
  outputName(name);
  try {
    return await folderIn(await outputsRoot(), name);
  } catch (thrown) {
    if (isDomException(thrown, 'NotFoundError') || isDomException(thrown, 'TypeMismatchError'))
      return undefined;
    throw thrown;
  }
}

/** An output by its record; incomplete when the record is missing, torn, or lists files that are not there. */
export async function readOutput(folder: FileSystemDirectoryHandle): Promise<FinishedOutput> {
  const present = await filesBelow(folder, FILES_FOLDER);
  const bytes = [...present.values()].reduce((sum, size) => sum + size, 0);
  const files = await readRecord(folder);
  const complete = files?.every((file) => present.get(file.path) === file.bytes) ?? false;
  return { name: folder.name, bytes, complete, files: (complete && files) || [] };
}

async function readRecord(folder: FileSystemDirectoryHandle): Promise<OutputFile[] | undefined> {
  try {
    const record = await bytesOf(await contentOf(await fileIn(folder, RECORD_FILE)));
    const { files } = JSON.parse(new TextDecoder().decode(record)) as { files: OutputFile[] };
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
    for (const [entry, handle] of await entriesOf(inside)) {
      if (isFolder(handle)) await walk(handle, `${prefix}${entry}/`);
      else sizes.set(prefix + entry, (await contentOf(handle as FileSystemFileHandle)).size);
    }
  };
  for (const [entry, handle] of await entriesOf(folder)) {
    if (entry === name && isFolder(handle)) await walk(handle, '');
  }
  return sizes;
}

// The files of a finished output, disk-backed, wherever it was written.

export interface FinishedFile {
  path: string;
  content: File;
}

/**
 * @returns the files in the order they were written
 * @throws NotFound when the output is not there or not finished; DestinationFailed when the folder cannot be read
 */
export async function finishedFiles(source: PushSource): Promise<FinishedFile[]> {
  const files: FinishedFile[] = [];
  if (source.kind === 'downloads') {
    const folder = await findOutput(source.name);
    const output = folder && (await readOutput(folder));
    if (!output?.complete) throw notFinished(source.name);
    for (const { path } of output.files) {
      files.push({ path, content: await openOutputFile(source.name, path) });
    }
    return files;
  }
  for (const path of source.files) {
    const file = fileBelow(source.handle, [source.name, ...outputPathParts(path)]);
    const content = await file.then(contentOf).catch(failing(`${source.name}/${path}`));
    files.push({ path, content });
  }
  return files;
}

function notFinished(name: string): AmalgamError {
  return new AmalgamError(
    'NotFound',
    `There is no finished output ${name}.`,
    'It may have been deleted, or the merge did not finish. Merge again.',
  );
}
