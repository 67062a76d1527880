import type { Emit } from '../tensor/tensor-outcome';

/**
 * An emit that may be fed anew from the start: bytes that went out already are left out. A tensor's bytes do not
 * depend on how often, or in which tiles, it is computed.
 */
export function replayable(emit: Emit): { emit: Emit; restart(): void } {
  let sent = 0;
  let at = 0;
  return {
    async emit(bytes) {
      const fresh = bytes.subarray(Math.min(bytes.byteLength, Math.max(0, sent - at)));
      at += bytes.byteLength;
      if (fresh.byteLength === 0) return;
      sent = at;
      await emit(fresh);
    },
    restart() {
      at = 0;
    },
  };
}
