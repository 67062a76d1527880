/** Merges that were cut off and can go on: found by their journals. */
import { destinationError, isDomException, outputName } from './destination-error';
import { deleteOutput, findOutput, JOURNAL_FILE, listOutputs } from './finished-outputs';
import { folderJournals } from './folder-journals';
import { readStored } from './opfs-sink';
import { type RunJournal, readJournal } from './run-journal';

export interface InterruptedOutput {
  kind: 'downloads' | 'folder';
  name: string;
  journal: RunJournal;
}

const SUFFIX = '.jsonl';

/** Every merge with a journal and no end; one that runs right now, here or in another tab, is among them. */
export async function listInterruptedOutputs(): Promise<InterruptedOutput[]> {
  const found: InterruptedOutput[] = [];
  for (const { name, complete } of await listOutputs()) {
    const folder = complete ? undefined : await findOutput(name);
    const journal = folder && (await readJournal(await readStored(folder, JOURNAL_FILE)));
    if (journal) found.push({ kind: 'downloads', name, journal });
  }
  const journals = await folderJournals();
  const files: string[] = [];
  for await (const file of journals?.keys() ?? []) if (file.endsWith(SUFFIX)) files.push(file);
  for (const file of files) {
    const journal = await readJournal(await readStored(journals!, file));
    if (journal) found.push({ kind: 'folder', name: file.slice(0, -SUFFIX.length), journal });
  }
  return found;
}

/**
 * Forgets an interrupted merge: what is in the browser's own storage goes; a picked folder keeps its files.
 * @throws Busy while a merge writes it.
 */
export async function discardInterrupted(kind: 'downloads' | 'folder', name: string): Promise<void> {
  outputName(name);
  if (kind === 'downloads') return deleteOutput(name);
  const journals = await folderJournals();
  try {
    await journals?.removeEntry(name + SUFFIX);
  } catch (thrown) {
    if (!isDomException(thrown, 'NotFoundError')) throw destinationError(thrown, name);
  }
}
