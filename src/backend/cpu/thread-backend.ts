import { AmalgamError, type ErrorReport } from '../../errors';
import type { Backend, BackendBuffer, BackendSeconds } from '../backend';

interface RemoteBuffer extends BackendBuffer {
  number: number;
}

/** The worker's side of a thread, or a stand-in for it. */
export interface ThreadPort {
  postMessage(batch: Batch, transfer: Transferable[]): void;
  onmessage: ((event: MessageEvent<Answer>) => void) | null;
  onerror: ((event: ErrorEvent) => void) | null;
  terminate(): void;
}

const namesOf = <N extends string>(declared: Readonly<Record<N, unknown>>) => Object.keys(declared) as N[];

/** A buffer larger than the CPU engine's own limit is refused by it; the same bound holds here. */
const MAX_BUFFER_BYTES = 1 << 30;

/**
 * A CPU engine that computes in a worker of its own ({@link serveThread}): the calling thread is free to read and write
 * meanwhile. Nothing is shared between the threads; arrays that are handed over move without a copy.
 * @param onReturned gets the memory of what was handed over when it has been used
 */
export function createThreadBackend(
  port: ThreadPort,
  adapter: string,
  { tileBytes, keptBytes }: { tileBytes: number; keptBytes: number },
  onReturned: (buffer: ArrayBuffer) => void = () => {},
): Backend {
  const seconds: BackendSeconds = { upload: 0, compute: 0, readback: 0 };
  const waiting: { resolve(data: Uint8Array<ArrayBuffer>[]): void; reject(error: unknown): void }[] = [];
  let commands: Command[] = [];
  let transfer: Transferable[] = [];
  let next = 1;
  let failed: AmalgamError | undefined;

  const fail = (error: AmalgamError) => {
    failed ??= error;
    for (const { reject } of waiting.splice(0)) reject(error);
  };
  port.onmessage = ({ data: answer }) => {
    const asked = waiting.shift();
    if ('error' in answer) {
      const { code, message, hint } = answer.error;
      const error = new AmalgamError(code, message, hint);
      asked?.reject(error);
      fail(error);
      return;
    }
    Object.assign(seconds, answer.seconds);
    for (const buffer of answer.returned) onReturned(buffer);
    asked?.resolve(answer.data);
  };
  port.onerror = ({ message }) =>
    fail(
      new AmalgamError(
        'WorkerDied',
        `A thread of the CPU engine stopped: ${message || 'it could not be started'}.`,
        'Start again; if memory is short, close other tabs.',
      ),
    );
  const numberOf = (buffer: BackendBuffer) => (buffer as RemoteBuffer).number;

  return {
    kind: 'cpu',
    adapter,
    software: true,
    maxBufferBytes: MAX_BUFFER_BYTES,
    tileBytes,
    keptBytes,
    seconds,
    allocate(byteLength, label): RemoteBuffer {
      const size = Math.max(4, Math.ceil(byteLength / 4) * 4);
      const number = next++;
      commands.push({ do: 'allocate', buffer: number, byteLength: size, label });
      return { number, label, byteLength: size };
    },
    free(buffer) {
      commands.push({ do: 'free', buffer: numberOf(buffer) });
    },
    write(buffer, byteOffset, data, handOver = false) {
      const sent = handOver ? data : data.slice();
      transfer.push(sent.buffer);
      commands.push({ do: 'write', buffer: numberOf(buffer), byteOffset, data: sent });
    },
    clear(buffer, byteOffset = 0, byteLength = buffer.byteLength - byteOffset) {
      commands.push({ do: 'clear', buffer: numberOf(buffer), byteOffset, byteLength });
    },
    run(kernel, { params, buffers, elements }) {
      commands.push({
        do: 'run',
        kernel: kernel.id,
        params: namesOf(kernel.params).map((name) => params[name]),
        buffers: namesOf(kernel.buffers).map((name) => numberOf(buffers[name])),
        ...(elements === undefined ? {} : { elements }),
      });
    },
    read(ranges) {
      if (failed) return Promise.reject(failed);
      const read = ranges.map(({ buffer, byteOffset = 0, ...range }) => ({
        buffer: numberOf(buffer),
        byteOffset,
        ...range,
      }));
      const given = ranges.flatMap(({ into }) => into ?? []);
      port.postMessage({ commands, read }, [...transfer, ...given]);
      commands = [];
      transfer = [];
      return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
    },
    close() {
      port.terminate();
      fail(new AmalgamError('Canceled', 'The CPU engine was closed.', 'Start again.'));
    },
  };
}

// Messages between an engine's owner and its worker: commands in order, answers to reads.

/**
 * Buffers are numbers; kernels go by their id, their parameters and buffers in the order of their declaration: lists of numbers
 * take a tenth of the time that objects take to cross.
 */
export type Command =
  | { do: 'allocate'; buffer: number; byteLength: number; label: string }
  | { do: 'free'; buffer: number }
  | { do: 'write'; buffer: number; byteOffset: number; data: Uint8Array<ArrayBuffer> }
  | { do: 'clear'; buffer: number; byteOffset: number; byteLength: number }
  | { do: 'run'; kernel: string; params: number[]; buffers: number[]; elements?: number };

/** Commands, and the reads after them. */
export interface Batch {
  commands: Command[];
  read: { buffer: number; byteOffset: number; byteLength: number; into?: ArrayBuffer }[];
}

/** One for every batch, in order. `returned`: the written buffers, on their way back to the sender. */
export type Answer =
  | { data: Uint8Array<ArrayBuffer>[]; seconds: BackendSeconds; returned: ArrayBuffer[] }
  | { error: ErrorReport };
