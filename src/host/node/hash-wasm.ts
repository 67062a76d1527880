/** Stands in for `hash-wasm` in the command: the processor's own SHA instructions, by node:crypto. */
import { createHash } from 'node:crypto';

export async function createSHA256() {
  let hash = createHash('sha256');
  const hasher = {
    init() {
      hash = createHash('sha256');
      return hasher;
    },
    update(bytes: Uint8Array) {
      hash.update(bytes);
      return hasher;
    },
    digest: (_: 'hex') => hash.digest('hex'),
  };
  return hasher;
}
