import { AmalgamError } from '../errors';
import type { DestinationSpec } from '../reports/job';
import { pieceDigest } from '../sources/piece-digest';
import { giveBack } from '../sources/spare-arrays';
import { type Leaf, TREE_PIECE_BYTES, treeHash } from '../sources/tree-hash';
import type { Destination, FileSink, HashPieces } from './destination';
import { openDownloadDestination } from './download-destination';
import { openFolderDestination } from './folder-destination';

/** Parts of a file that are read back at once: some are hashed while the others come from the disk. */
const AT_ONCE = 4;
/** Pieces of a part. */
const PART_PIECES = 16;

function cutPieces(count: number): number[][] {
  return Array.from({ length: Math.ceil(count / PART_PIECES) }, (_, part) =>
    Array.from(
      { length: Math.min(PART_PIECES, count - part * PART_PIECES) },
      (_, i) => part * PART_PIECES + i,
    ),
  );
}

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
  let hash: HashPieces | undefined;
  let checks: Promise<void> = Promise.resolve();
  let isOver = false;

  async function check(path: string, length: number, leaves: readonly Leaf[]): Promise<void> {
    const source = isOver ? undefined : await left!(path);
    if (isOver) return;
    if (source?.byteLength !== length) throw notAsWritten(path, 0, length);
    const origin = hash && (await source.origin?.());
    const read = async (index: number) => {
      const begin = index * TREE_PIECE_BYTES;
      const bytes = await source.read(begin, Math.min(begin + TREE_PIECE_BYTES, length));
      const stored = await pieceDigest(bytes);
      giveBack(bytes.buffer);
      return stored;
    };
    const parts = cutPieces(leaves.length).values();
    const readBack = async () => {
      for (const pieces of parts) {
        const stored = origin ? await hash!(origin, pieces) : await Promise.all(pieces.map(read));
        for (const [i, index] of pieces.entries()) {
          const begin = index * TREE_PIECE_BYTES;
          if (stored[i]!.some((byte, at) => byte !== leaves[index]![at]))
            throw notAsWritten(path, begin, Math.min(begin + TREE_PIECE_BYTES, length));
        }
        if (isOver) return;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, readBack));
    hashes.set(path, await treeHash(leaves));
  }

  function checkedSink(path: string, sink: FileSink): FileSink {
    return {
      ...sink,
      async close(leaves, length) {
        await sink.close(leaves, length);
        checks = checks.then(() => check(path, length, leaves));
        // it is thrown by `written` and `commit`, if they come
        checks.catch(() => undefined);
      },
    };
  }

  return {
    ...inner,
    create: async (path) => checkedSink(path, await inner.create(path)),
    readBackBy(given) {
      hash = given;
    },
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
          reopen: async (path, bytes) => checkedSink(path, await remains.reopen!(path, bytes)),
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
