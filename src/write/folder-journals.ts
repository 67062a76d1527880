/** The journals of merges into picked folders: `folder-runs/<name>.jsonl` in the browser's own storage. */
import { isDomException } from './destination-error';

/** The folder that holds them; undefined where the browser gives this page no storage. */
export async function folderJournals(): Promise<FileSystemDirectoryHandle | undefined> {
  try {
    const root = await navigator.storage.getDirectory();
    return await root.getDirectoryHandle('folder-runs', { create: true });
  } catch (thrown) {
    if (isDomException(thrown, 'SecurityError') || thrown instanceof TypeError) return undefined;
    throw thrown;
  }
}
