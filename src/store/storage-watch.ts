/**
 * Watches, from the page, whether the site's storage is cleared while a job runs. A worker that holds a file open then
 * waits in its next write for ever (Chromium 156), without an error.
 */

import { folderIn, storageRoot } from '../platform';

/** An empty folder that is there until everything goes. */
const MARK = 'in-use';
const LOOK_MS = 2000;

/**
 * Calls `onCleared` once when the storage is cleared.
 * @returns ends the watch
 */
export function watchStorage(onCleared: () => void): () => void {
  let isOver = false;
  const look = async (root: FileSystemDirectoryHandle) => {
    while (!isOver) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      const isThere = await folderIn(root, MARK).then(
        () => true,
        (thrown: unknown) => !(thrown instanceof DOMException && thrown.name === 'NotFoundError'),
      );
      if (isThere || isOver) continue;
      isOver = true;
      onCleared();
    }
  };
  const watch = async () => {
    const root = await storageRoot();
    await folderIn(root, MARK, true);
    await look(root);
  };
  // a browser without storage, or a private window that refuses it: nothing can be cleared there
  watch().catch(() => undefined);
  return () => {
    isOver = true;
  };
}
