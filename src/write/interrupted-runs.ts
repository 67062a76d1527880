/** Merges that were cut off and can go on: found by their journals. */
import { outputName } from './destination-error';
import { deleteOutput, findOutput, JOURNAL_FILE, listOutputs } from './finished-outputs';
import { listFolderJournals, removeFolderJournals } from './folder-journals';
import { readStored } from './opfs-sink';
import { type RunJournal, readJournal } from './run-journal';

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
