import { AmalgamError } from '../errors';
import type { DestinationSpec } from '../reports/job';
import { pieceDigest } from '../sources/piece-digest';
import { giveBack } from '../sources/spare-arrays';
import { type Leaf, TREE_PIECE_BYTES, treeHash } from '../sources/tree-hash';
import type { Destination, FileSink } from './destination';
import { openDownloadDestination } from './download-destination';
import { openFolderDestination } from './folder-destination';

/** Pieces that are read back at once: one is hashed while the others come from the disk. */
const AT_ONCE = 4;

/**
 * The same destination, but what was written is read back once a file is closed, piece by piece, while the next one is
 * being written; `commit` waits for that. A disk, a cable or a memory that flips a bit on the way is found before the
 * output is called finished.
 * @throws IntegrityError from `written` and `commit`, naming the file and the bytes that differ
 */
export function checkedDestination(inner: Destination): Destination {
  const { left, remains } = inner;
  if (!left) return inner;
  const hashes = new Map<string, string>();
  let checks: Promise<void> = Promise.resolve();
  let isOver = false;

  async function check(path: string, length: number, leaves: readonly Leaf[]): Promise<void> {
    const source = isOver ? undefined : await left!(path);
    if (isOver) return;
    if (source?.byteLength !== length) throw notAsWritten(path, 0, length);
    const pieces = leaves.entries();
    const readBack = async () => {
      for (const [index, leaf] of pieces) {
        const begin = index * TREE_PIECE_BYTES;
        const end = Math.min(begin + TREE_PIECE_BYTES, length);
        const bytes = await source.read(begin, end);
        const stored = await pieceDigest(bytes);
        giveBack(bytes.buffer);
        if (stored.some((byte, i) => byte !== leaf[i])) throw notAsWritten(path, begin, end);
        if (isOver) return;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, readBack));
    hashes.set(path, await treeHash(leaves));
  }

  function checkedSink(path: string, sink: FileSink, from: number): FileSink {
    let length = from;
    return {
      ...sink,
      async write(bytes) {
        length += bytes.byteLength;
        await sink.write(bytes);
      },
      async close(leaves) {
        await sink.close(leaves);
        checks = checks.then(() => check(path, length, leaves));
        // it is thrown by `written` and `commit`, if they come
        checks.catch(() => undefined);
      },
    };
  }

  return {
    ...inner,
    create: async (path, length) => checkedSink(path, await inner.create(path, length), 0),
    async written() {
      await checks;
      return hashes;
    },
    async commit() {
      await checks;
      await inner.commit();
    },
    async discard() {
      isOver = true;
      await inner.discard();
    },
    ...(remains && {
      remains: {
        ...remains,
        async adopt(path, bytes, hash) {
          await remains.adopt(path, bytes, hash);
          hashes.set(path, hash);
        },
        ...(remains.reopen && {
          reopen: async (path, bytes, length) =>
            checkedSink(path, await remains.reopen!(path, bytes, length), bytes),
        }),
        async keep() {
          isOver = true;
          await remains.keep();
        },
      },
    }),
  };
}

function notAsWritten(path: string, begin: number, end: number): AmalgamError {
  return new AmalgamError(
    'IntegrityError',
    `${path} was not stored as it was written: bytes ${begin} to ${end} differ when they are read back.`,
    'Check the disk and the memory of this machine, then resume the merge: the file is written again.',
  );
}

let openDisk: (() => Destination) | undefined;

/** Sets what opens the output folder of the command, which alone writes to the disk. */
export function openDiskWith(open: () => Destination): void {
  openDisk = open;
}

/**
 * Opens the destination a request names. Throws what its kind throws, before anything is written.
 * @param resume retains the remains of an interrupted run there
 */
export async function openDestination(spec: DestinationSpec, resume = false): Promise<Destination> {
  switch (spec.kind) {
    case 'folder':
      return checkedDestination(await openFolderDestination(spec.handle, spec.name, resume));
    case 'downloads':
      return checkedDestination(await openDownloadDestination(spec.name, resume));
    case 'disk':
      if (!openDisk) throw new Error('openDiskWith comes before the first job');
      return checkedDestination(openDisk());
    case 'nowhere':
      return openNowhere();
  }
}

/** A destination that stores nothing: for a merge whose hashes alone are wanted. */
function openNowhere(): Destination {
  return {
    create: async () => ({ write: async () => {}, close: async () => {} }),
    commit: async () => {},
    discard: async () => {},
  };
}
