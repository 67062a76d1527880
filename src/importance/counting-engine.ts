import type { ComputeEngine } from '../compute/engine';

/** The engine, counting the bytes of the buffers that are made through it. */
export function countingEngine(engine: ComputeEngine): ComputeEngine & { readonly peakBytes: number } {
  let bytes = 0;
  let peakBytes = 0;
  return {
    ...engine,
    get seconds() {
      return engine.seconds;
    },
    get peakBytes() {
      return peakBytes;
    },
    allocate(byteLength, label) {
      const buffer = engine.allocate(byteLength, label);
      bytes += buffer.byteLength;
      peakBytes = Math.max(peakBytes, bytes);
      return buffer;
    },
    free(buffer) {
      bytes -= buffer.byteLength;
      engine.free(buffer);
    },
  };
}
