/** Files of this page in the browser's storage: the room for them, and deleting them one by one. */

import type { InterruptedRun } from '../../reports/merge';
import type { CacheInfo } from '../../reports/worker';
import { discardRun } from './interrupted-merges';
import { loadInterrupted } from './past-runs';
import { interruptedRuns } from './runs';
import { notifyError, type Studio } from './studio';
import type { StudioState } from './studio-state';

/** Bytes in use and in all, as the browser estimates them; null without an estimate. */
export interface Room {
  used: number;
  quota: number;
}

export interface StoredItem {
  kind: 'blob' | 'output' | 'masks' | 'interrupted';
  id: string;
  name: string;
  /** Details beside the name. */
  detail: string;
  /** Null where it is part of an output that is counted already. */
  bytes: number | null;
}

export interface StoredGroup {
  kind: StoredItem['kind'];
  title: string;
  /** Consequence of deleting, in words. */
  meaning: string;
  things: StoredItem[];
  bytes: number;
}

/** Everything stored, in groups, the largest first within each; empty groups are left out. Pure. */
export function storedGroups(cache: CacheInfo, interrupted: readonly InterruptedRun[]): StoredGroup[] {
  const cut = new Set(interrupted.map((run) => run.destination.name));
  const groups: Omit<StoredGroup, 'bytes'>[] = [
    {
      kind: 'blob',
      title: 'Downloads',
      meaning: 'Model files from the Hub. Deleted files are downloaded again when they are needed.',
      things: cache.blobs.map(({ sha256, name, bytes }) => ({
        kind: 'blob',
        id: sha256,
        name,
        detail: `${sha256.slice(0, 12)}…`,
        bytes,
      })),
    },
    {
      kind: 'output',
      title: 'Merged models',
      meaning: 'Results to download. Deleted ones have to be merged again.',
      things: cache.outputs
        .filter(({ name, complete }) => complete || !cut.has(name))
        .map(({ name, bytes, complete }) => ({
          kind: 'output',
          id: name,
          name,
          detail: complete ? '' : 'unfinished',
          bytes,
        })),
    },
    {
      kind: 'interrupted',
      title: 'Interrupted merges',
      meaning: 'Merges that can continue where they stopped. Deleted ones start over.',
      things: interrupted.map(({ destination, tensorsDone, tensors }) => ({
        kind: 'interrupted',
        id: destination.name,
        name: destination.name,
        detail: `${tensorsDone} of ${tensors} tensors`,
        bytes: cache.outputs.find((o) => o.name === destination.name)?.bytes ?? null,
      })),
    },
    {
      kind: 'masks',
      title: 'Importance',
      meaning: 'Masks and solved changes. Deleted ones are computed again.',
      things: cache.masks.map(({ id, title, bytes, tensors }) => ({
        kind: 'masks',
        id,
        name: title,
        detail: `${tensors} tensors`,
        bytes,
      })),
    },
  ];
  return groups
    .filter((group) => group.things.length > 0)
    .map((group) => ({
      ...group,
      things: [...group.things].sort((a, b) => (b.bytes ?? 0) - (a.bytes ?? 0)),
      bytes: group.things.reduce((sum, thing) => sum + (thing.bytes ?? 0), 0),
    }));
}

/** How full the browser's storage is for this page, or the memory in its place. */
export async function readRoom({ worker, store }: Studio): Promise<Room | null> {
  const memory = store.getState().engine.info?.storage.memoryBytes;
  if (memory !== undefined) {
    const { blobs, outputs, masks } = await worker.cache();
    return {
      used: [...blobs, ...outputs, ...masks].reduce((sum, { bytes }) => sum + bytes, 0),
      quota: memory,
    };
  }
  const { usage, quota } = (await navigator.storage?.estimate?.()) ?? {};
  return usage === undefined || quota === undefined ? null : { used: usage, quota };
}

/** Deletes one thing. Never rejects. */
export async function deleteStored(studio: Studio, thing: StoredItem): Promise<void> {
  if (thing.kind === 'interrupted') {
    const run = interruptedRuns(studio.store.getState()).find((r) => r.destination.name === thing.id);
    if (run) await discardRun(studio, run);
    return;
  }
  try {
    await studio.worker.deleteCached(thing.kind, thing.id);
  } catch (thrown) {
    notifyError(studio, thrown);
  }
  await loadInterrupted(studio);
}

/** Why nothing can be deleted now, or null: a job may be reading it. */
export function whyNotDelete({ job, elsewhere }: StudioState): string | null {
  return job || elsewhere ? 'The engine is at work and may need it.' : null;
}
