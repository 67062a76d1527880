/** An engine that counts the bytes it allocates, so that the peak printed is the peak allocated. */
import type { Backend } from './backend';

export interface CountedBackend extends Backend {
  /** Bytes of buffers held now, and the most there ever were. */
  readonly bytes: number;
  readonly peakBytes: number;
}

/** The same engine, counted. */
export function countedBackend(engine: Backend): CountedBackend {
  let bytes = 0;
  let peakBytes = 0;
  return {
    kind: engine.kind,
    adapter: engine.adapter,
    software: engine.software,
    maxBufferBytes: engine.maxBufferBytes,
    ...(engine.tileBytes === undefined ? {} : { tileBytes: engine.tileBytes }),
    ...(engine.keptBytes === undefined ? {} : { keptBytes: engine.keptBytes }),
    get seconds() {
      return engine.seconds;
    },
    get bytes() {
      return bytes;
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
    write: (buffer, byteOffset, data, handOver) => engine.write(buffer, byteOffset, data, handOver),
    clear: (buffer, byteOffset, byteLength) => engine.clear(buffer, byteOffset, byteLength),
    run: (kernel, dispatch) => engine.run(kernel, dispatch),
    read: (ranges) => engine.read(ranges),
    close: () => engine.close(),
  };
}
