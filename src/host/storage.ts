import { errorReport } from '../errors';
import type { WorkerInfo } from '../reports/worker';
import { cleanBlobs, listBlobs } from '../store/blobs';
import { cleanSmallFiles } from '../store/cached-source';
import { ensureStorage } from '../store/memory-storage';
import { storageFolder } from '../store/opfs-file';
import { cleanOutputs } from '../write/finished-outputs';

/** Whether this page has storage, or memory in its place; found out by trying. */
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

/** Bytes in the cache of every blob, whole or in part, by sha256; none without storage. */
export async function cachedBytes(): Promise<Map<string, number>> {
  if (!(await storageInfo()).available) return new Map();
  return new Map((await listBlobs()).map(({ sha256, bytes }) => [sha256, bytes]));
}
