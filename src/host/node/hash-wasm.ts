/** Stands in for `hash-wasm` in the command: the processor's own SHA instructions, by node:crypto. */
import { createHash, type Hash } from 'node:crypto';

/** States by the array that was given out for each. */
const states = new WeakMap<Uint8Array, Hash>();

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
    save() {
      const state = new Uint8Array(0);
      states.set(state, hash.copy());
      return state;
    },
    load(state: Uint8Array) {
      const found = states.get(state);
      if (!found) throw new Error('A hash of another process cannot go on in this one.');
      hash = found.copy();
      return hasher;
    },
  };
  return hasher;
}
