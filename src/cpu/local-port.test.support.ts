import type { Kernel } from '../compute/kernel';
import type { Answer, Batch } from './lane-protocol';
import type { LanePort } from './remote-engine';
import { serveEngine } from './serve-engine';

/** A port whose messages are cloned and moved as between threads. */
export function localPort(kernels: ReadonlyMap<string, Kernel>): LanePort {
  const port: LanePort = {
    postMessage(batch: Batch, transfer: Transferable[]) {
      const sent = structuredClone(batch, { transfer: transfer as ArrayBuffer[] });
      setTimeout(() => serve(sent), 0);
    },
    onmessage: null,
    onerror: null,
    terminate() {},
  };
  const serve = serveEngine(kernels, (answer: Answer, transfer) => {
    const data = structuredClone(answer, { transfer: transfer as ArrayBuffer[] });
    port.onmessage?.({ data } as MessageEvent<Answer>);
  });
  return port;
}
