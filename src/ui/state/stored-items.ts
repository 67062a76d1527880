/** Files of this page in the browser's storage: the room for them, and deleting them one by one. */

import { counted } from '../../formats/quantity';
import type { InterruptedRun } from '../../reports/merge';
import type { CacheInfo } from '../../reports/worker';
import { loadInterrupted } from './past-runs';
import { discardRun } from './run';
import { interruptedRuns } from './runs';
import { noticed, type Studio, type StudioState } from './studio';

/** Bytes in use and in all, as the browser estimates them; null without an estimate. */
export interface Room {
  used: number;
  quota: number;
  /** The browser deletes none of it by itself. */
  isKept?: boolean;
}

export interface StoredItem {
  kind: 'blob' | 'output' | 'masks' | 'interrupted';
  id: string;
  name: string;
  /** Details beside the name. */
  detail: string;
  /** Null where it is part of an output that is counted already. */
  bytes: number | null;
  /** Paths of the files of a finished output. */
  files?: string[];
}

export interface StoredGroup {
  kind: StoredItem['kind'];
  title: string;
  /** Consequence of deleting, in words. */
  meaning: string;
  items: StoredItem[];
  bytes: number;
}

const GROUPS: readonly Pick<StoredGroup, 'kind' | 'title' | 'meaning'>[] = [
  {
    kind: 'blob',
    title: 'Downloads',
    meaning: 'Model files from the Hub. Deleted files are downloaded again when they are needed.',
  },
  {
    kind: 'output',
    title: 'Merged models',
    meaning: 'Results to download. Deleted ones have to be merged again.',
  },
  {
    kind: 'interrupted',
    title: 'Interrupted merges',
    meaning: 'Merges that can continue where they stopped. Deleted ones start over.',
  },
  {
    kind: 'masks',
    title: 'Importance',
    meaning: 'Masks and solved changes. Deleted ones are computed again.',
  },
];

/** Everything stored, in groups, the largest first within each; empty groups are left out. Pure. */
export function storedGroups(
  { blobs, outputs, masks }: CacheInfo,
  interrupted: readonly InterruptedRun[],
): StoredGroup[] {
  const cut = new Set(interrupted.map((run) => run.destination.name));
  const all: StoredItem[] = [
    ...blobs.map(({ sha256, name, bytes }) => {
      return { kind: 'blob' as const, id: sha256, name, detail: `${sha256.slice(0, 12)}…`, bytes };
    }),
    ...outputs
      .filter(({ name, complete }) => complete || !cut.has(name))
      .map(({ name, bytes, complete, files }) => ({
        ...{ kind: 'output' as const, id: name, name, detail: complete ? '' : 'unfinished', bytes },
        ...(complete && { files }),
      })),
    ...interrupted.map(({ destination: { name }, tensorsDone, tensors }) => ({
      ...{
        kind: 'interrupted' as const,
        id: name,
        name,
        detail: `${tensorsDone} of ${counted(tensors, 'tensor')}`,
      },
      bytes: outputs.find((o) => o.name === name)?.bytes ?? null,
    })),
    ...masks.map(({ id, title, bytes, tensors }) => {
      return { kind: 'masks' as const, id, name: title, detail: counted(tensors, 'tensor'), bytes };
    }),
  ];
  const size = ({ bytes }: StoredItem) => bytes ?? 0;
  return GROUPS.map((group) => {
    const items = all.filter((item) => item.kind === group.kind);
    items.sort((a, b) => size(b) - size(a));
    return { ...group, items, bytes: items.reduce((sum, item) => sum + size(item), 0) };
  }).filter(({ items }) => items.length > 0);
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
  const isKept = (await navigator.storage?.persisted?.()) ?? false;
  return usage === undefined || quota === undefined ? null : { used: usage, quota, isKept };
}

/** Deletes one item. Never rejects. */
export async function deleteStored(studio: Studio, { kind, id }: StoredItem): Promise<void> {
  if (kind === 'interrupted') {
    const run = interruptedRuns(studio.store.getState()).find((r) => r.destination.name === id);
    if (run) await discardRun(studio, run);
    return;
  }
  await noticed(studio, () => studio.worker.deleteCached(kind, id));
  await loadInterrupted(studio);
}

/** Why nothing can be deleted now, or null: a job may be reading it. */
export function whyNotDelete({ job, elsewhere }: StudioState): string | null {
  return job || elsewhere ? 'The engine is at work and may need it.' : null;
}
