/** Tensors under way at once, one per thread; they land in order. */
import { giveBack } from '../../sources/spare-arrays';
import type { TensorPlan } from '../plan/plan';
import type { WholeModel } from '../tensor/delta-pipeline';
import type { Emit, TensorStatistics } from '../tensor/tensor-outcome';
import { isComputed, type MergeThread } from './merge-thread';

export interface OrderedOutput {
  /** Lets the next tensor in order hand its bytes to `emit`; resolves when it has handed over all of them. */
  land(emit: Emit): Promise<TensorStatistics | undefined>;
  /** Ends what is under way; resolves when no thread runs any more. */
  cancel(): Promise<void>;
}

/** Finished bytes that may wait for their turn, so that no thread rests while a long tensor is before its own. */
const WAITING_BYTES = 128 * 2 ** 20;

/** A thread looks ahead from the start of a tensor no larger than this, else from its first finished bytes. */
const SHORT_ELEMENTS = 2 ** 23;

interface PendingTensor {
  /** Finished before its turn. */
  readonly waiting: Uint8Array<ArrayBuffer>[];
  readonly turn: Deferred<Emit>;
  readonly done: Deferred<TensorStatistics | undefined>;
}

/**
 * Merges `tensors` from number `first` on: every thread takes the next one that none has taken, when it is done with its
 * own. What is finished before its turn waits, up to {@link WAITING_BYTES} of all threads together.
 */
export function openOrderedOutput(
  threads: readonly MergeThread[],
  tensors: readonly TensorPlan[],
  first: number,
  wholeModel: WholeModel | undefined,
  waitingBytes = WAITING_BYTES,
): OrderedOutput {
  const pending = new Map<number, PendingTensor>();
  let next = first;
  let landing = first;
  let waits = 0;
  let hasEnded = false;

  const pendingOf = (index: number): PendingTensor => {
    const entry = pending.get(index) ?? { waiting: [], turn: deferred<Emit>(), done: deferred() };
    pending.set(index, entry);
    return entry;
  };
  const take = () => (next < tensors.length && !hasEnded ? next++ : undefined);
  const emitOf =
    ({ waiting, turn }: PendingTensor): Emit =>
    async (bytes) => {
      if (hasEnded) throw ended();
      if (!turn.isSettled && waits + bytes.byteLength <= waitingBytes) {
        waits += bytes.byteLength;
        waiting.push(bytes);
      } else await (await turn.promise)(bytes);
    };

  const work = async (thread: MergeThread, own: number | undefined) => {
    for (let index = own; index !== undefined && !hasEnded; ) {
      const tensor = tensors[index]!;
      const entry = pendingOf(index);
      let following: number | undefined;
      const lookAhead = () => {
        if (following !== undefined) return;
        following = take();
        if (following !== undefined) thread.lookAhead(tensors[following]);
      };
      const emit = emitOf(entry);
      const merged = thread.merge(tensor, wholeModel, (bytes) => {
        lookAhead();
        return emit(bytes);
      });
      if (tensor.elements <= SHORT_ELEMENTS) lookAhead();
      await merged.then(entry.done.resolve, entry.done.reject);
      lookAhead();
      index = following;
    }
  };
  // every thread has its first before one looks ahead
  const begins = threads.map(take);
  const working = threads.map((thread, l) => work(thread, begins[l]));

  return {
    async land(emit) {
      const tensor = tensors[landing]!;
      const { waiting, turn, done } = pendingOf(landing);
      const pass: Emit = async (bytes) => {
        await emit(bytes);
        // computed bytes were made for this alone
        if (isComputed(tensor)) giveBack(bytes.buffer);
      };
      for (let bytes = waiting.shift(); bytes; bytes = waiting.shift()) {
        waits -= bytes.byteLength;
        await pass(bytes);
      }
      turn.resolve(pass);
      const statistics = await done.promise;
      pending.delete(landing++);
      return statistics;
    },
    async cancel() {
      hasEnded = true;
      for (const { turn } of pending.values()) turn.reject(ended());
      await Promise.allSettled(working);
    },
  };
}

function ended(): DOMException {
  return new DOMException('The run has ended.', 'AbortError');
}

interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly isSettled: boolean;
  resolve(value: T): void;
  reject(why: unknown): void;
}

/** A promise from outside; nobody has to wait for it when it fails. */
function deferred<T>(): Deferred<T> {
  let isSettled = false;
  let settle: { resolve(value: T): void; reject(why: unknown): void } | undefined;
  const promise = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject };
  });
  promise.catch(() => {});
  return {
    promise,
    get isSettled() {
      return isSettled;
    },
    resolve(value) {
      isSettled = true;
      settle!.resolve(value);
    },
    reject(why) {
      isSettled = true;
      settle!.reject(why);
    },
  };
}
