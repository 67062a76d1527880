import type { Backend, BackendBuffer } from '../backend';
import type { Kernel } from '../kernel';
import type { BatchCalls, Command } from './thread-backend';

/**
 * Computes batches with an engine of this thread, one after the other.
 * @param kernels by id; a batch that names another one fails
 * @param handOver has memory go with the answer
 */
export function computing(
  engine: Backend,
  kernels: ReadonlyMap<string, Kernel>,
  handOver: (memory: ArrayBuffer[]) => void,
): BatchCalls {
  const buffers = new Map<number, BackendBuffer>();
  let turn: Promise<unknown> = Promise.resolve();
  return {
    compute({ commands, read }) {
      const computed = turn.then(async () => {
        const returned: ArrayBuffer[] = [];
        for (const command of commands) {
          obey(engine, buffers, kernels, command);
          if (command.do === 'write') returned.push(command.data.buffer);
        }
        const ranges = read.map(({ buffer, ...range }) => ({ buffer: buffers.get(buffer)!, ...range }));
        const data = await engine.read(ranges);
        handOver([...data.map(({ buffer }) => buffer), ...returned]);
        return { data, seconds: { ...engine.seconds }, returned };
      });
      turn = computed.catch(() => {}); // reported to who asks
      return computed;
    },
  };
}

function obey(
  engine: Backend,
  buffers: Map<number, BackendBuffer>,
  kernels: ReadonlyMap<string, Kernel>,
  command: Command,
): void {
  switch (command.do) {
    case 'allocate':
      buffers.set(command.buffer, engine.allocate(command.byteLength, command.label));
      return;
    case 'free':
      engine.free(buffers.get(command.buffer)!);
      buffers.delete(command.buffer);
      return;
    case 'write':
      engine.write(buffers.get(command.buffer)!, command.byteOffset, command.data);
      return;
    case 'clear':
      engine.clear(buffers.get(command.buffer)!, command.byteOffset, command.byteLength);
      return;
    case 'run': {
      const kernel = kernels.get(command.kernel);
      if (!kernel) throw new Error(`the CPU engine's thread has no kernel ${command.kernel}`);
      const { elements } = command;
      const params = Object.fromEntries(
        Object.keys(kernel.params).map((name, i) => [name, command.params[i]!]),
      );
      const bound = Object.fromEntries(
        Object.keys(kernel.buffers).map((name, i) => [name, buffers.get(command.buffers[i]!)!]),
      );
      engine.run(kernel, { params, buffers: bound, ...(elements === undefined ? {} : { elements }) });
    }
  }
}
