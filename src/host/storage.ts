import { errorReport } from '../errors';
import type { WorkerInfo } from '../reports/worker';
import { cleanBlobs, listBlobs } from '../store/blobs';
import { ensureStorage } from '../store/memory-storage';
import { storageFolder } from '../store/opfs-file';
import { cleanSmallFiles } from '../store/small-files';
import { cleanOutputs } from '../write/finished-outputs';

/** Whether the browser lets this page keep files, or memory does in its place; found out by trying. */
export async function storageInfo(): Promise<WorkerInfo['storage']> {
  try {
    const memoryBytes = await ensureStorage();
    await storageFolder('blobs');
    return { available: true, ...(memoryBytes === undefined ? {} : { memoryBytes }) };
  } catch (thrown) {
    return { available: false, why: errorReport(thrown).message };
  }
}

/** Removes what cut-off downloads and merges left behind. Without storage there is nothing to remove. */
export async function cleanStorage(): Promise<void> {
  if (!(await storageInfo()).available) return;
  await cleanBlobs();
  await cleanSmallFiles();
  await cleanOutputs();
}

/** Bytes of every blob of which there is something in the cache, by sha256; none where there is no storage. */
export async function cachedBytes(): Promise<Map<string, number>> {
  if (!(await storageInfo()).available) return new Map();
  return new Map((await listBlobs()).map(({ sha256, bytes }) => [sha256, bytes]));
}
