import { errorReport, fromErrorReport } from '../../errors';
import type { Kernel } from '../kernel';
import { createCpuBackend } from './cpu-backend';
import { computing } from './serve-thread';
import type { BatchThread } from './thread-backend';

/** A thread whose messages are cloned and moved as between threads. */
export function localThread(kernels: ReadonlyMap<string, Kernel>): BatchThread {
  const { compute } = computing(createCpuBackend(), kernels, () => {});
  const waiting = new Set<(why: unknown) => void>();
  return {
    compute(batch, transfer) {
      const sent = structuredClone(batch, { transfer: transfer as ArrayBuffer[] });
      return new Promise((resolve, reject) => {
        waiting.add(reject);
        const answer = async () => {
          const computed = await compute(sent);
          const moved = [...computed.data.map(({ buffer }) => buffer), ...computed.returned];
          return structuredClone(computed, { transfer: moved });
        };
        setTimeout(() => answer().then(resolve, (thrown) => reject(fromErrorReport(errorReport(thrown)))), 0);
      });
    },
    terminate() {
      for (const fail of waiting) fail(new Error('it was ended'));
    },
  };
}
