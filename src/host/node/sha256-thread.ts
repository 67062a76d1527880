import type { Sha256 } from '../../sources/sha256';
import type { Sha256Thread } from '../../sources/sha256-thread';

/** Stands in for the browser's hashing thread: the processor's own instructions need none. */
export function sha256Thread(begun: Sha256): Sha256Thread {
  return {
    update: async (bytes) => begun.update(bytes),
    digest: async () => (await begun.copy()).digest(),
    close() {},
  };
}
