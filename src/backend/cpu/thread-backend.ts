import { AmalgamError } from '../../errors';
import type { Backend, BackendBuffer, BackendSeconds } from '../backend';

interface RemoteBuffer extends BackendBuffer {
  number: number;
}

/** The thread, as the engine calls it. */
export interface BatchThread {
  /** Computes a batch after those before it. */
  compute(batch: Batch, transfer: Transferable[]): Promise<Answer>;
  /** Ends it: what waits for it fails. */
  terminate(): void;
}

const namesOf = <N extends string>(declared: Readonly<Record<N, unknown>>) => Object.keys(declared) as N[];

/** A buffer larger than the CPU engine's own limit is refused by it; the same bound holds here. */
const MAX_BUFFER_BYTES = 1 << 30;

/**
 * A CPU engine that computes in a worker of its own (serve-thread.ts): the calling thread is free to read and write
 * meanwhile. Nothing is shared between the threads; arrays that are handed over move without a copy.
 * @param onReturned gets the memory of what was handed over when it has been used
 */
export function createThreadBackend(
  thread: BatchThread,
  adapter: string,
  { tileBytes, keptBytes }: { tileBytes: number; keptBytes: number },
  onReturned: (buffer: ArrayBuffer) => void = () => {},
): Backend {
  const seconds: BackendSeconds = { upload: 0, compute: 0, readback: 0 };
  let commands: Command[] = [];
  let transfer: Transferable[] = [];
  let next = 1;
  let failed: unknown;
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
    async read(ranges) {
      if (failed) throw failed;
      const read = ranges.map(({ buffer, byteOffset = 0, ...range }) => ({
        buffer: numberOf(buffer),
        byteOffset,
        ...range,
      }));
      const given = ranges.flatMap(({ into }) => into ?? []);
      const answering = thread.compute({ commands, read }, [...transfer, ...given]);
      commands = [];
      transfer = [];
      try {
        const answer = await answering;
        Object.assign(seconds, answer.seconds);
        for (const buffer of answer.returned) onReturned(buffer);
        return answer.data;
      } catch (thrown) {
        failed ??= thrown;
        throw failed;
      }
    },
    close() {
      failed ??= new AmalgamError('Canceled', 'The CPU engine was closed.', 'Start again.');
      thread.terminate();
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

/** `returned`: the written buffers, on their way back to the sender. */
export interface Answer {
  data: Uint8Array<ArrayBuffer>[];
  seconds: BackendSeconds;
  returned: ArrayBuffer[];
}

/** The thread's side. */
export interface BatchCalls {
  compute(batch: Batch): Promise<Answer>;
}
