/**
 * Threads beside this one, as workers of the browser or threads of Node. All are alike: each is opened for one kind of work, and
 * its owner calls what that kind offers: to merge, measure or compare tensors, or to run kernels. They share nothing: each opens
 * the files itself, reads into its own memory and computes. Only what is small crosses, and what a thread cannot reach: values
 * computed by code of its owner, and files that another thread cannot open.
 */

import * as Comlink from 'comlink';
import type { Backend } from '../backend/backend';
import { AmalgamError } from '../errors';
import { inputName, type ReadTensor } from '../inputs/stored-tensor';
import type { Derived, TensorRef } from '../inputs/tensor-view';
import { reporting, rethrow, rooted, type WorkerPort } from '../platform';
import type { WorkSeconds } from '../reports/job';
import type { SourceOrigin } from '../sources/byte-source';
import { canceled, throwIfCanceled } from '../sources/cancellation';
import type { Leaf } from '../sources/tree-hash';
import type { Inputs } from './weight-inputs';

let start: (() => WorkerPort) | undefined;
/** What ends each thread that was started and is not ended, in the middle of its work; those of an engine are the engine's. */
const running = new Set<() => void>();

/** Sets how threads are started here. */
export function startThreadsWith(given: () => WorkerPort): void {
  start = given;
}

/** Whether a job can have threads here. */
export const hasThreads = () => start !== undefined;

/** A thread whose calls fail when it stops. */
export interface Thread<Calls> {
  /** @throws AmalgamError what the call throws; `WorkerDied` */
  ask<T>(act: (calls: Comlink.Remote<Calls>) => Promise<T>): Promise<T>;
  terminate(): void;
}

/** Starts a thread that serves such calls ({@link reporting}). @param isOfEngine it outlives the job that is canceled */
export function openThread<Calls>(isOfEngine = false): Thread<Calls> {
  if (!start) throw new Error('startThreadsWith comes before the first job');
  const port = start();
  const calls = Comlink.wrap<Calls>(port.endpoint);
  let stopped: AmalgamError | undefined;
  const waiting = new Set<(why: AmalgamError) => void>();
  const stop = (message: string) => {
    stopped ??= new AmalgamError(
      'WorkerDied',
      `A thread of the CPU engine stopped: ${message || 'it could not be started'}.`,
      'Start again; if memory is short, close other tabs.',
    );
    for (const fail of waiting) fail(stopped);
  };
  const terminate = () => {
    running.delete(terminate);
    port.terminate();
    stop('it was ended');
  };
  if (!isOfEngine) running.add(terminate);
  port.onError(stop);
  return {
    ask: (act) =>
      new Promise((resolve, reject) => {
        if (stopped) return reject(stopped);
        waiting.add(reject);
        // comlink closes the port of calls that nobody holds
        void rooted(calls, act(calls))
          .catch(rethrow)
          .then(resolve, reject)
          .finally(() => waiting.delete(reject));
      }),
    terminate,
  };
}

/** Ends every thread in the middle of its work, which fails: for a job that is canceled. */
export function endThreads(): void {
  for (const end of [...running]) end();
}

// Members of a pool: threads, or what stands for one in this thread.

/** Gives tasks, in order, to the members that are free, to those first that had one last. */
export function threadPool<T>(members: readonly T[]) {
  const free = [...members];
  const waiting: ((member: T) => void)[] = [];
  return {
    async run<R>(task: (member: T) => Promise<R>): Promise<R> {
      const member = free.shift() ?? (await new Promise<T>((resolve) => waiting.push(resolve)));
      try {
        return await task(member);
      } finally {
        const next = waiting.shift();
        if (next) next(member);
        else free.unshift(member);
      }
    },
  };
}

// Files that threads open by themselves.

/** Work on tensors in files, as a thread is told of it at its beginning: plain data. */
export interface ThreadJob<Work> {
  work: Work;
  /** By {@link inputName}; one without origin is read by the owner. */
  inputs: { name: string; byteLength: number; isHashed: boolean; origin?: SourceOrigin }[];
  /** The derived values in the work, which the owner computes. */
  derived: Derived[];
  /** Bytes that its tiles may take, and stored bytes between the passes over a tensor. */
  share: { tileBytes: number; keptBytes: number };
  /** Threads that do the work. */
  threads: number;
}

/** What a thread can be opened for (src/worker/all-kernels.ts). */
export type WorkKind = 'merge' | 'statistics' | 'compare' | 'engine';

/** Hash of a piece of an input. */
export type FoundLeaf = readonly [input: string, piece: number, leaf: Leaf];

/** A thread, as its owner calls it. */
export interface ThreadCalls {
  open(kind: WorkKind, job: ThreadJob<unknown>, owner: ThreadOwner): Promise<void>;
  /** @param name a call of its kind of work */
  call(name: string, args: unknown[]): Promise<Answered>;
}

/** What a call came to, the hashes of pieces of inputs since the call before, and seconds so far. */
export interface Answered {
  result: unknown;
  found: FoundLeaf[];
  seconds: WorkSeconds;
}

/** The owner of a thread, as the thread calls it; a kind of work may have more to ask. */
export interface ThreadOwner {
  read(input: string, begin: number, end: number): Promise<Uint8Array<ArrayBuffer>>;
  derived(index: number, begin: number, end: number): Promise<Float32Array<ArrayBuffer>>;
  /** Something of items is done, such as elements of tensors. */
  done(amounts: readonly (readonly [amount: number, item: string])[]): void;
}

function sumSeconds(threads: readonly (WorkSeconds | undefined)[]): WorkSeconds {
  const sum = (work: keyof WorkSeconds) => threads.reduce((all, one) => all + (one?.[work] ?? 0), 0);
  return {
    ...{ read: sum('read'), upload: sum('upload'), compute: sum('compute') },
    ...{ readback: sum('readback'), write: sum('write') },
  };
}

/** Bytes that all threads together may take: for tiles, and for stored bytes that stay between the passes over a tensor. */
const SHARED = { tiles: 32 * 2 ** 20, kept: 64 * 2 ** 20 };

interface ThreadsOptions<Work> {
  kind: WorkKind;
  count: number;
  /** Plain data, derived values aside. */
  work: Work;
  /** What the files are read of; without files there is nothing to read. */
  inputs?: Inputs;
  files: readonly { folder: string; file: string }[];
  /** Gets the hashes of what is read of files that are to be hashed. */
  hashed?: { isHashed(name: string): boolean; take(...leaf: FoundLeaf): Promise<void> };
  /** What threads of this kind ask of their owner besides. */
  owner?: object;
  onDone?(amount: number, item: string): void;
  /** Seconds of all threads together, which are more than the time passed. */
  onSeconds?(seconds: WorkSeconds): void;
}

/** Types of the calls of a kind of work. */
type WorkCalls<Calls> = { [Name in keyof Calls]: (...args: never[]) => Promise<unknown> };

/** A thread that is open for a kind of work. */
export interface WorkThread<Calls extends WorkCalls<Calls>> {
  /** @param moved memory in the arguments that goes with them @throws AmalgamError what the call throws; `WorkerDied` */
  ask<Name extends keyof Calls & string>(
    name: Name,
    args: Parameters<Calls[Name]>,
    moved?: Transferable[],
  ): Promise<Awaited<ReturnType<Calls[Name]>>>;
  terminate(): void;
}

/** Starts threads and opens each for the work. @throws AmalgamError `WorkerDied`, what opening throws: then none runs */
export async function openThreads<Calls extends WorkCalls<Calls>>(
  options: ThreadsOptions<unknown>,
): Promise<WorkThread<Calls>[]> {
  const { kind, count, hashed } = options;
  const { job, owner } = await shareWork(options);
  const threads = Array.from({ length: count }, () => openThread<ThreadCalls>());
  try {
    await Promise.all(
      threads.map(({ ask }) => ask((calls) => calls.open(kind, job, Comlink.proxy(reporting(owner))))),
    );
  } catch (thrown) {
    for (const { terminate } of threads) terminate();
    throw thrown;
  }
  const spent: WorkSeconds[] = [];
  return threads.map(
    ({ ask, terminate }, number): WorkThread<Calls> => ({
      async ask(name, args, moved = []) {
        const answered = await ask((calls) => calls.call(name, Comlink.transfer(args, moved)));
        spent[number] = answered.seconds;
        options.onSeconds?.(sumSeconds(spent));
        for (const leaf of answered.found) await hashed?.take(...leaf);
        return answered.result as never;
      },
      terminate,
    }),
  );
}

/** What each of so many threads is told, and what it can ask of the owner of the inputs. */
async function shareWork<Work>(
  options: ThreadsOptions<Work>,
): Promise<{ job: ThreadJob<Work>; owner: ThreadOwner }> {
  const { inputs, files, hashed, count } = options;
  const values: Derived[] = [];
  const derived: Derived[] = [];
  const work = portable(options.work, values, derived);
  const described = files.map(async ({ folder, file }) => {
    const name = inputName(folder, file);
    const { byteLength, origin } = inputs!.stored(name);
    const isHashed = hashed?.isHashed(name) === true;
    return { name, byteLength, isHashed, ...(origin && { origin: await origin() }) };
  });
  return {
    job: {
      work,
      inputs: await Promise.all(described),
      derived,
      share: { tileBytes: SHARED.tiles / count, keptBytes: SHARED.kept / count },
      threads: count,
    },
    owner: {
      ...options.owner,
      read: async (input, begin, end) => moved(await inputs!.source(input).read(begin, end)),
      // opened when it is asked for, and a few at a time; what is quantized a thread opens by itself
      derived: async (index, begin, end) => {
        const bytes = await inputs!.read(derivedRef(values[index]!), 4 * begin, 4 * end);
        return moved(new Float32Array(bytes.buffer, bytes.byteOffset, end - begin));
      },
      done: (amounts) => {
        for (const each of amounts) options.onDone?.(...each);
      },
    },
  };
}

/** A tensor of derived values, of which no more is known here. */
const derivedRef = (derived: Derived): TensorRef => ({
  ...{ folder: '', file: '', key: '', dtype: 'F32', shape: [], begin: 0, end: 0 },
  derived,
});

/** An array whose memory goes with it. */
export function moved<T extends Uint8Array | Uint32Array | Float32Array | Float64Array>(array: T): T {
  return Comlink.transfer(array, [array.buffer]);
}

/**
 * A copy of plain data in which derived values have lost their code, for it does not cross.
 * @param found gets the derived values @param standIns and what stands for each in the copy
 */
function portable<T>(value: T, found: Derived[], standIns: Derived[], seen = new Map<unknown, unknown>()): T {
  if (typeof value !== 'object' || value === null) return value;
  if (!Array.isArray(value) && Object.getPrototypeOf(value) !== Object.prototype) return value;
  const known = seen.get(value);
  if (known) return known as T;
  const copy: Record<string, unknown> | unknown[] = Array.isArray(value) ? [] : {};
  seen.set(value, copy);
  for (const [key, part] of Object.entries(value)) {
    if (typeof part !== 'function')
      (copy as Record<string, unknown>)[key] = portable(part, found, standIns, seen);
  }
  if ('open' in value && 'from' in value) {
    found.push(value as unknown as Derived);
    standIns.push(copy as unknown as Derived);
  }
  return copy as T;
}

// A pass over items that do not depend on each other, such as the tensors of a plan.

/** Works on the items of a pass, one after the other: in this thread or in another one. */
export interface PassMember<Result> {
  /** @param following the item that will probably come next, to be read ahead */
  take(index: number, following?: number): Promise<Result>;
  close(): void;
}

/** What a member works with. */
export interface PassTools {
  engine: Backend;
  read: ReadTensor;
  /** Members of the pass. */
  members: number;
  signal?: AbortSignal;
  /** Seconds that it stood still for stored bytes. */
  onWait?(seconds: number): void;
  onDone?(amount: number, item: string): void;
}

/** Opens a member. @param work plain data: what the items are and what is to be done with them */
export type OpenMember<Work, Result> = (work: Work, tools: PassTools) => PassMember<Result>;

export interface Pass<Result> {
  /** Results of items by their numbers, in their order. After a failure no more is begun. @throws the first failure, once all rest */
  run(items: Iterable<number>, onResult?: (result: Result, index: number) => void): Promise<Result[]>;
  close(): void;
}

/** A pass by members that are open. */
export function passBy<Result>(members: readonly PassMember<Result>[], signal?: AbortSignal): Pass<Result> {
  const pool = threadPool(members);
  return {
    async run(items, onResult) {
      let hasFailed = false;
      const results = [...items].map((index, at, all) =>
        pool.run(async (member) => {
          if (hasFailed) throw canceled();
          try {
            throwIfCanceled(signal);
            const result = await member.take(index, members.length === 1 ? all[at + 1] : undefined);
            onResult?.(result, index);
            return result;
          } catch (thrown) {
            hasFailed = true;
            throw thrown;
          }
        }),
      );
      try {
        return await Promise.all(results);
      } finally {
        await Promise.allSettled(results);
      }
    },
    close() {
      for (const member of members) member.close();
    },
  };
}

interface PassOptions<Work, Result>
  extends Omit<PassTools, 'read' | 'members'>,
    Pick<ThreadsOptions<Work>, 'kind' | 'work' | 'files' | 'onSeconds'> {
  inputs: Inputs;
  open: OpenMember<Work, Result>;
  /** Threads that do it; with 0 this one does, on its engine. */
  threads: number;
}

/** Opens a pass. @throws AmalgamError `WorkerDied`, and what opening the files throws */
export async function openPass<Work, Result>(options: PassOptions<Work, Result>): Promise<Pass<Result>> {
  const { open, work, inputs, threads: count, signal } = options;
  if (count === 0) {
    return passBy([open(work, { ...options, read: inputs.read, members: 1 })], signal);
  }
  const threads = await openThreads<Pick<PassMember<Result>, 'take'>>({ ...options, count });
  const members = threads.map(
    ({ ask, terminate }): PassMember<Result> => ({ take: (index) => ask('take', [index]), close: terminate }),
  );
  return passBy(members, signal);
}
