import { errorFacts } from '../errors';
import { listBlobs, sweepBlobs } from '../store/blobs';
import { storageFolder } from '../store/opfs-file';
import { sweepSmallFiles } from '../store/small-files';
import type { WorkerFacts } from '../worker/api';
import { sweepOutputs } from '../write/finished-outputs';

/** Whether the browser lets this page keep files, found out by trying. */
export async function storageFacts(): Promise<WorkerFacts['storage']> {
  try {
    await storageFolder('blobs');
    return { available: true };
  } catch (thrown) {
    return { available: false, why: errorFacts(thrown).message };
  }
}

/** Removes what cut-off downloads and merges left behind. Without storage there is nothing to remove. */
export async function sweepStorage(): Promise<void> {
  if (!(await storageFacts()).available) return;
  await sweepBlobs();
  await sweepSmallFiles();
  await sweepOutputs();
}

/** sha256 of every blob that is whole in the cache; none where there is no storage. */
export async function cachedHashes(): Promise<Set<string>> {
  if (!(await storageFacts()).available) return new Set();
  return new Set((await listBlobs()).filter((b) => b.complete).map((b) => b.sha256));
}
