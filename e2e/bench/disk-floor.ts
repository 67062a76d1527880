/** The floor on the disk: what reading and writing the same bytes takes one thread of Node, with nothing done to them. */
import { closeSync, fsyncSync, openSync, readSync, rmSync, writeSync } from 'node:fs';

export const PIECE_BYTES = 8 * 2 ** 20;

export interface DiskFloor {
  seconds: number;
  /** Bytes. */
  read: number;
  written: number;
}

/**
 * Reads files once, a piece of each in turn as a merge does, and writes as many bytes as its output has, which are on the
 * disk at the end and removed.
 * @param bytes to be written
 * @param scratch the file to write
 * @throws the system's errors
 */
export function diskFloor(files: readonly string[], bytes: number, scratch: string): DiskFloor {
  const piece = new Uint8Array(PIECE_BYTES);
  const begin = performance.now();
  let open = files.map((file) => openSync(file, 'r'));
  const output = openSync(scratch, 'w');
  try {
    let [read, written] = [0, 0];
    while (open.length > 0 || written < bytes) {
      open = open.filter((file) => {
        const got = readSync(file, piece);
        if (got === 0) closeSync(file);
        read += got;
        return got > 0;
      });
      written += writeSync(output, piece, 0, Math.min(piece.length, bytes - written));
    }
    fsyncSync(output);
    return { seconds: (performance.now() - begin) / 1000, read, written };
  } finally {
    for (const file of [...open, output]) closeSync(file);
    rmSync(scratch);
  }
}

const TOUCHED_BYTES = 2 ** 28;
const PAGE_BYTES = 4096;

/** Microseconds that the first touch of a page of memory [4 KiB] takes: a quarter of one, and tens where a host gives it anew. */
export function freshPageMicroseconds(): number {
  const memory = new Uint8Array(TOUCHED_BYTES);
  const begin = performance.now();
  for (let at = 0; at < TOUCHED_BYTES; at += PAGE_BYTES) memory[at] = 1;
  return ((performance.now() - begin) * 1000) / (TOUCHED_BYTES / PAGE_BYTES);
}
