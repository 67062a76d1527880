/**
 * Memory of arrays that are done with, for the next ones: memory that is new to the process has to be cleared and mapped
 * page by page, which costs more than filling it from a file in the cache.
 */

/** Smaller arrays are cheap to allocate; larger ones are not pooled. */
const LEAST = 256 * 2 ** 10;
const MOST = 16 * 2 ** 20;
/** Most bytes in the pool. */
let most = 64 * 2 ** 20;

const spare: ArrayBuffer[] = [];
let kept = 0;

/** An array of `byteLength` bytes with any contents; its buffer may be longer. */
export function spareArray(byteLength: number): Uint8Array<ArrayBuffer> {
  if (byteLength < LEAST || byteLength > MOST) return new Uint8Array(byteLength);
  const size = 2 ** Math.ceil(Math.log2(byteLength));
  const at = spare.findIndex((buffer) => buffer.byteLength === size);
  if (at < 0) return new Uint8Array(new ArrayBuffer(size), 0, byteLength);
  kept -= size;
  return new Uint8Array(spare.splice(at, 1)[0]!, 0, byteLength);
}

/** A copy in such an array. */
export function spareCopy(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const copy = spareArray(bytes.byteLength);
  copy.set(bytes);
  return copy;
}

/** Sets how many bytes the pool has at most. */
export function limitSpares(bytes: number): void {
  most = bytes;
}

/** Returns the memory of an unused array to the pool. */
export function giveBack(buffer: ArrayBuffer): void {
  const { byteLength } = buffer;
  if (byteLength < LEAST || byteLength > MOST || kept + byteLength > most) return;
  if (Math.log2(byteLength) % 1 !== 0) return;
  kept += byteLength;
  spare.push(buffer);
}

/** Everything in the pool, for another thread to give back there. */
export function takeSpares(): ArrayBuffer[] {
  kept = 0;
  return spare.splice(0);
}
