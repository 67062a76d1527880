/** Stands in for `hash-wasm` and `sources/digest` in the command: the processor's own SHA instructions, by node:crypto. */
import { createHash, hash } from 'node:crypto';

export async function createSHA256() {
  let hashing = createHash('sha256');
  const hasher = {
    init() {
      hashing = createHash('sha256');
      return hasher;
    },
    update(bytes: Uint8Array) {
      hashing.update(bytes);
      return hasher;
    },
    digest: (_: 'hex') => hashing.digest('hex'),
  };
  return hasher;
}

export async function digest(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  return Uint8Array.from(hash('sha256', bytes, 'buffer'));
}
