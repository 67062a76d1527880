import type { Kernel } from '../kernel';
import { serveThread } from './serve-thread';
import type { Answer, Batch, ThreadPort } from './thread-backend';

/** A port whose messages are cloned and moved as between threads. */
export function localPort(kernels: ReadonlyMap<string, Kernel>): ThreadPort {
  const port: ThreadPort = {
    postMessage(batch: Batch, transfer: Transferable[]) {
      const sent = structuredClone(batch, { transfer: transfer as ArrayBuffer[] });
      setTimeout(() => serve(sent), 0);
    },
    onmessage: null,
    onerror: null,
    terminate() {},
  };
  const serve = serveThread(kernels, (answer: Answer, transfer) => {
    const data = structuredClone(answer, { transfer: transfer as ArrayBuffer[] });
    port.onmessage?.({ data } as MessageEvent<Answer>);
  });
  return port;
}
