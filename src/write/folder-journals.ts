/**
 * The journals of merges into picked folders. They are in the browser's own storage, `folder-runs/<name>.<id>.jsonl`,
 * so that an interrupted merge is found without asking for the folder; a small file in the folder names the journal it
 * belongs to, so that no other folder is ever taken for it.
 */
import { AmalgamError, isDomException } from '../errors';
import {
  bytesOf,
  entriesOf,
  fileIn,
  folderIn,
  ifThere,
  removeFrom,
  rooted,
  storageRoot,
  writableOf,
} from '../platform';
import { destinationError, failing, outputName } from './destination-error';
import { deleteOutput, findOutput, JOURNAL_FILE, listOutputs } from './finished-outputs';
import { findFile, openJournal, readStored } from './opfs-sink';
import { type RunJournal, readJournal } from './run-journal';

/** In the picked folder while its merge is not finished. */
export const MARKER = '.amalgam-run';
const SUFFIX = '.jsonl';
const ID = /^[0-9a-f-]{36}$/;

export interface FolderJournal {
  read(): Promise<Uint8Array<ArrayBuffer>>;
  append(at: number, line: Uint8Array<ArrayBuffer>): Promise<void>;
  close(): void;
  /** Removes journal and marker. */
  remove(): Promise<void>;
}

/**
 * The journal of a new merge into `folder`; undefined where the browser gives this page no storage. Nothing is written
 * before its first line. A journal that the folder belonged to goes: nothing else is in the folder.
 */
export async function newFolderJournal(
  folder: FileSystemDirectoryHandle,
  name: string,
): Promise<FolderJournal | undefined> {
  const journals = await folderJournals();
  if (!journals) return undefined;
  const old = await markedId(folder);
  if (old !== undefined) await openJournal(journals, fileName(name, old), name).remove();
  return folderJournal(journals, folder, name, crypto.randomUUID(), false);
}

/** The journal of the interrupted merge into `folder`. @throws DestinationFailed when there is none. */
export async function foundFolderJournal(
  folder: FileSystemDirectoryHandle,
  name: string,
): Promise<FolderJournal> {
  const journals = await folderJournals();
  const id = await markedId(folder);
  if (journals && id !== undefined && (await findFile(journals, [fileName(name, id)]))) {
    return folderJournal(journals, folder, name, id, true);
  }
  throw new AmalgamError(
    'DestinationFailed',
    `The folder ${name} is not where the interrupted merge was writing.`,
    'Choose the folder that it was begun in, or discard the interrupted merge.',
  );
}

async function markedId(folder: FileSystemDirectoryHandle): Promise<string | undefined> {
  const file = await findFile(folder, [MARKER]);
  const id = file ? new TextDecoder().decode(await bytesOf(file)) : '';
  return ID.test(id) ? id : undefined;
}

/** Names and contents of all journals. */
async function listFolderJournals(): Promise<{ name: string; bytes: Uint8Array<ArrayBuffer> }[]> {
  const journals = await folderJournals();
  const found: { name: string; bytes: Uint8Array<ArrayBuffer> }[] = [];
  for (const { file, name } of await filesOf(journals)) {
    found.push({ name, bytes: await openJournal(journals!, file, name).read() });
  }
  return found;
}

/** Removes the journals of a name; the files in the folders stay. */
async function removeFolderJournals(wanted: string): Promise<void> {
  const journals = await folderJournals();
  for (const { file, name } of await filesOf(journals)) {
    if (name === wanted) await openJournal(journals!, file, name).remove();
  }
}

async function filesOf(journals: FileSystemDirectoryHandle | undefined) {
  const files: { file: string; name: string }[] = [];
  for (const [file] of journals ? await entriesOf(journals) : []) {
    const name = file.slice(0, -fileName('', '').length - 36);
    if (file.endsWith(SUFFIX) && name !== '') files.push({ file, name });
  }
  return files;
}

function fileName(name: string, id: string): string {
  return `${name}.${id}${SUFFIX}`;
}

function folderJournal(
  journals: FileSystemDirectoryHandle,
  folder: FileSystemDirectoryHandle,
  name: string,
  id: string,
  isMarked: boolean,
): FolderJournal {
  const journal = openJournal(journals, fileName(name, id), name);
  let marked = isMarked;
  return {
    read: () => journal.read(),
    async append(at, line) {
      if (!marked) await mark(folder, name, id);
      marked = true;
      await journal.append(at, line);
    },
    close: () => journal.close(),
    async remove() {
      await journal.remove();
      await ifThere(removeFrom(folder, MARKER)).catch(failing(name));
      marked = false;
    },
  };
}

async function mark(folder: FileSystemDirectoryHandle, name: string, id: string): Promise<void> {
  try {
    const stream = await writableOf(await fileIn(folder, MARKER, true));
    await rooted(stream, stream.write(id));
    await rooted(stream, stream.close());
  } catch (thrown) {
    throw destinationError(thrown, name);
  }
}

async function folderJournals(): Promise<FileSystemDirectoryHandle | undefined> {
  try {
    return await folderIn(await storageRoot(), 'folder-runs', true);
  } catch (thrown) {
    if (isDomException(thrown, 'SecurityError') || thrown instanceof TypeError) return undefined;
    throw thrown;
  }
}

// Merges that were cut off and can go on: found by their journals.

interface InterruptedOutput {
  kind: 'downloads' | 'folder';
  name: string;
  journal: RunJournal;
}

/** Every merge with a journal and no end; one that runs right now, here or in another tab, is among them. */
export async function listInterruptedOutputs(): Promise<InterruptedOutput[]> {
  const found: InterruptedOutput[] = [];
  for (const { name, complete } of await listOutputs()) {
    const folder = complete ? undefined : await findOutput(name);
    const journal = folder && (await readJournal(await readStored(folder, JOURNAL_FILE)));
    if (journal) found.push({ kind: 'downloads', name, journal });
  }
  for (const { name, bytes } of await listFolderJournals()) {
    const journal = await readJournal(bytes);
    if (journal) found.push({ kind: 'folder', name, journal });
  }
  return found;
}

/**
 * Forgets an interrupted merge: its files in the browser's own storage go; those in a picked folder stay.
 * @throws Busy while a merge writes it.
 */
export async function discardInterrupted(kind: 'downloads' | 'folder', name: string): Promise<void> {
  outputName(name);
  if (kind === 'downloads') return deleteOutput(name);
  await removeFolderJournals(name);
}
