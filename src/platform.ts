/**
 * Calls of the browser. What one needs stays in reach of the collector until it has settled: Chromium 156 collects a file
 * handle that is reachable only through its own pending call, and the promise is gone; Firefox 140 does the same to a worker
 * that is reachable only through its listeners. A call that can be made again has a deadline, and is.
 */
import * as Comlink from 'comlink';
import { AmalgamError, type ErrorReport, errorReport, fromErrorReport, isDomException } from './errors';
import { trustedWorkerUrl } from './trusted-worker-url';

/** Calls under way, workers and ports. */
const held = new Set<object>();

/** Holds a call under way, and its owner, until it has settled. For calls that cannot be made again. */
export function rooted<T>(owner: object, pending: Promise<T>): Promise<T> {
  const call = { owner, pending };
  held.add(call);
  const settled = () => held.delete(call);
  pending.then(settled, settled);
  return pending;
}

/** Milliseconds until a call without an answer is made again; reading takes as long as the disk. */
const DEADLINE_MS = 10_000;
export const READ_DEADLINE_MS = 60_000;
/** Times that a call is made which gets no answer, or a passing failure. */
const TRIES = 3;
/** Milliseconds to wait for a lock or a file that somebody who is leaving still holds. */
const PATIENCE_MS = 5000;
const WAIT_MS = 50;

interface Repeated<T> {
  deadlineMs?: number;
  /** How long a file that somebody else has open is waited for; default: not at all. */
  patienceMs?: number;
  /** Receives a value that came after the deadline. */
  late?(value: T): void;
}

/**
 * The answer to a call that can be made again.
 * @throws AmalgamError `StorageFailed` when the browser does not answer, else what the call throws
 */
async function repeated<T>(
  owner: object,
  call: () => Promise<T>,
  { deadlineMs = DEADLINE_MS, patienceMs = 0, late = () => {} }: Repeated<T> = {},
): Promise<T> {
  const begun = performance.now();
  for (let tried = 1; ; tried++) {
    try {
      const answer = await withinDeadline(rooted(owner, call()), deadlineMs, late);
      if (answer !== undefined) return answer.value;
      if (tried >= TRIES) throw noAnswer();
    } catch (thrown) {
      const isBusy = isDomException(thrown, 'NoModificationAllowedError');
      // "The operation failed for an unknown transient reason"
      const passes = isDomException(thrown, 'UnknownError') && tried < TRIES;
      if (!passes && !(isBusy && performance.now() - begun < patienceMs)) throw thrown;
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
    }
  }
}

/** Value of a promise, or undefined after the deadline; a thread busy throughout has not waited and gets half of it again. */
export function withinDeadline<T>(
  pending: Promise<T>,
  deadlineMs: number,
  late: (value: T) => void = () => {},
): Promise<{ value: T } | undefined> {
  return new Promise((resolve, reject) => {
    let isLate = false;
    let timer = setTimeout(() => {
      timer = setTimeout(() => {
        isLate = true;
        resolve(undefined);
      }, deadlineMs / 2);
    }, deadlineMs / 2);
    pending
      .then(
        (value) => (isLate ? late(value) : resolve({ value })),
        (thrown: unknown) => reject(thrown),
      )
      .finally(() => clearTimeout(timer));
  });
}

function noAnswer(): AmalgamError {
  return new AmalgamError(
    'StorageFailed',
    'The browser does not answer when it is asked for a file.',
    'Start again; if it happens again, restart the browser. What was finished is kept.',
  );
}

// ---- files

/** The top folder of the browser's storage. */
export function storageRoot(): Promise<FileSystemDirectoryHandle> {
  return repeated(navigator.storage, () => navigator.storage.getDirectory());
}

export function folderIn(
  folder: FileSystemDirectoryHandle,
  name: string,
  create = false,
): Promise<FileSystemDirectoryHandle> {
  return repeated(folder, () => folder.getDirectoryHandle(name, { create }));
}

export function fileIn(
  folder: FileSystemDirectoryHandle,
  name: string,
  create = false,
): Promise<FileSystemFileHandle> {
  return repeated(folder, () => folder.getFileHandle(name, { create }));
}

/** A file by the parts of its path below a folder; `create` makes it, and the folders on the way. */
export async function fileBelow(
  folder: FileSystemDirectoryHandle,
  parts: readonly string[],
  create = false,
): Promise<FileSystemFileHandle> {
  let inside = folder;
  for (const part of parts.slice(0, -1)) inside = await folderIn(inside, part, create);
  return fileIn(inside, parts.at(-1)!, create);
}

/** What was looked for, or undefined where it is not there. */
export function ifThere<T>(found: Promise<T>): Promise<T | undefined> {
  return found.catch((thrown: unknown) => {
    if (isDomException(thrown, 'NotFoundError')) return undefined;
    throw thrown;
  });
}

export function contentOf(file: FileSystemFileHandle): Promise<File> {
  return repeated(file, () => file.getFile());
}

/** Opens a file for one writer, or for any number of readers where the browser has that mode. */
export function syncAccess(
  file: FileSystemFileHandle,
  mode: 'readwrite' | 'read-only' = 'readwrite',
  patienceMs = PATIENCE_MS,
): Promise<FileSystemSyncAccessHandle> {
  const open = () => file.createSyncAccessHandle(mode === 'readwrite' ? undefined : { mode });
  return repeated(file, open, { patienceMs, late: (handle) => handle.close() });
}

/**
 * Opens a file for writing beside other threads that do the same at other places of it, where the browser has that mode;
 * else alone.
 */
export async function sharedAccess(
  file: FileSystemFileHandle,
): Promise<{ handle: FileSystemSyncAccessHandle; isShared: boolean }> {
  const open = () => file.createSyncAccessHandle({ mode: 'readwrite-unsafe' });
  const handle = await repeated(file, open, { patienceMs: PATIENCE_MS, late: (late) => late.close() });
  // a browser that does not know the mode takes no notice of it
  return { handle, isShared: handle.mode === 'readwrite-unsafe' };
}

export function writableOf(file: FileSystemFileHandle): Promise<FileSystemWritableFileStream> {
  const late = (stream: FileSystemWritableFileStream) => void stream.abort().catch(() => undefined);
  return repeated(file, () => file.createWritable(), { late });
}

/** Removes a file, or with `recursive` a folder and all it holds. @param isAwaited waits for files that are open a little longer */
export function removeFrom(
  folder: FileSystemDirectoryHandle,
  name: string,
  { recursive = false, isAwaited = false } = {},
): Promise<void> {
  const patienceMs = isAwaited ? PATIENCE_MS : 0;
  return repeated(folder, () => folder.removeEntry(name, { recursive }), { patienceMs });
}

/** The entries of a folder as they are now; it may be changed while they are looked at. */
export function entriesOf(folder: FileSystemDirectoryHandle): Promise<[string, FileSystemHandle][]> {
  return repeated(folder, async () => {
    const found: [string, FileSystemHandle][] = [];
    const entries = folder.entries();
    for (;;) {
      const { done, value } = await rooted(entries, entries.next());
      if (done) return found;
      found.push(value);
    }
  });
}

/** The bytes of a file or a part of one. */
export async function bytesOf(file: Blob): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await repeated(file, () => file.arrayBuffer(), { deadlineMs: READ_DEADLINE_MS }));
}

/** A reader of a file in order, into memory of its caller. @throws TypeError where the browser's files are no streams of bytes */
export const readerOf = (file: Blob) => file.stream().getReader({ mode: 'byob' });

/** Pieces of a stream; a consumer that stops early ends it. */
export async function* piecesOf<T>(stream: ReadableStream<T>): AsyncGenerator<T> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await rooted(reader, reader.read());
      if (done) return;
      yield value;
    }
  } finally {
    // a stream that has ended or failed has nothing left to end
    await rooted(reader, reader.cancel()).catch(() => undefined);
    reader.releaseLock();
  }
}

// ---- locks

/**
 * Takes the lock of a name and holds it until the returned function is called. A tab that dies lets go within a moment, so it is
 * waited for.
 * @returns undefined where somebody else keeps it
 */
export function holdLock(name: string, patienceMs = PATIENCE_MS): Promise<(() => void) | undefined> {
  const signal = AbortSignal.timeout(patienceMs);
  return new Promise((resolve, reject) => {
    navigator.locks
      .request(name, { signal }, () => new Promise<void>((release) => resolve(release)))
      .catch((thrown: unknown) => (signal.aborted ? resolve(undefined) : reject(thrown)));
  });
}

// ---- workers and ports: held until they are ended

/** A thread that a worker wants its window to start; the ports for its calls and for its errors and end come with it. */
interface WantedThread {
  startThread: { url: string; name: string };
}

/**
 * Starts a worker, held until it is terminated, and the threads that it wants, which end with it. A message it sent that cannot
 * be read is an `error` of it, as one thrown there.
 */
export function startWorker(url: string, name: string): Worker {
  const worker = new Worker(trustedWorkerUrl(url), { type: 'module', name });
  const threads = new Set<() => void>();
  held.add(worker);
  worker.addEventListener('messageerror', () =>
    worker.dispatchEvent(new ErrorEvent('error', { message: UNREADABLE })),
  );
  worker.addEventListener('message', ({ data, ports }: MessageEvent<Partial<WantedThread> | null>) => {
    // what it wanted just before it was ended is not wanted any more
    if (data?.startThread && held.has(worker)) startWanted(data.startThread, ports, threads);
  });
  worker.terminate = () => {
    held.delete(worker);
    Worker.prototype.terminate.call(worker);
    for (const end of [...threads]) end();
  };
  return worker;
}

/** @param threads what ends each thread of its owner */
function startWanted(
  { url, name }: WantedThread['startThread'],
  [calls, control]: readonly MessagePort[],
  threads: Set<() => void>,
): void {
  const thread = startWorker(url, name);
  const end = () => {
    threads.delete(end);
    held.delete(control!);
    control!.close();
    thread.terminate();
  };
  threads.add(end);
  held.add(control!);
  control!.onmessage = end;
  thread.addEventListener('error', ({ message }) => control!.postMessage(message));
  thread.postMessage(null, [calls!]);
}

/** A worker that was started: of the browser, or a thread of Node. */
export interface WorkerPort {
  endpoint: Comlink.Endpoint;
  /** Hears of what the worker did not catch. */
  onError(tell: (message: string) => void): void;
  terminate(): void;
}

/** What ends each thread that this window wanted itself. */
const ownThreads = new Set<() => void>();

/**
 * A thread as the port that it is called through; it serves its calls by {@link exposeThread}. The window starts it:
 * a worker of Firefox 153 that starts another one stands still for good in about one of twenty starts.
 */
export function startThread(url: string, name: string): WorkerPort {
  const calls = new MessageChannel();
  const control = new MessageChannel();
  const ports = [calls.port1, control.port1];
  for (const port of ports) held.add(port);
  const wanted = { url: new URL(url, location.href).href, name };
  const given = [calls.port2, control.port2];
  if ('document' in globalThis) startWanted(wanted, given, ownThreads);
  else self.postMessage({ startThread: wanted } satisfies WantedThread, { transfer: given });
  return {
    endpoint: calls.port1,
    onError(tell) {
      control.port1.onmessage = ({ data }: MessageEvent<string>) => tell(data);
      calls.port1.onmessageerror = () => tell(UNREADABLE);
    },
    terminate() {
      control.port1.postMessage('end');
      calls.port1.close();
      for (const port of ports) held.delete(port);
    },
  };
}

/** Calls whose errors cross as plain data, for comlink would drop their code and next step. */
export function reporting<Calls extends object>(calls: Calls): Calls {
  const reported = Object.entries(calls).map(([name, call]: [string, (...args: unknown[]) => unknown]) => [
    name,
    async (...args: unknown[]) => {
      try {
        return await call(...args);
      } catch (thrown) {
        throw errorReport(thrown);
      }
    },
  ]);
  return Object.fromEntries(reported) as Calls;
}

/** For `catch` of such a call. */
export function rethrow(thrown: ErrorReport | Error): never {
  throw thrown instanceof Error ? thrown : fromErrorReport(thrown);
}

const UNREADABLE = 'a message could not be read';

/** In a worker: offers it to the window, which hears of a message that cannot be read as of an error of the worker. */
export function exposeHere(calls: object): void {
  self.addEventListener('messageerror', unreadable);
  Comlink.expose(calls);
}

/** In a thread ({@link startThread}): offers it to its owner by the port that comes first. */
export function exposeThread(calls: object): void {
  self.addEventListener('message', ({ ports: [port] }) => {
    if (!port) return;
    held.add(port);
    port.onmessageerror = unreadable;
    Comlink.expose(calls, port);
  });
}

const unreadable = () => reportError(new Error(UNREADABLE));

/** A port to give away; what is sent back over it comes to `take`, and a message that cannot be read to `lost`. */
export function openPort<T>(take: (message: T) => void, lost: (why: string) => void = () => {}) {
  const { port1, port2 } = new MessageChannel();
  held.add(port1);
  port1.onmessage = ({ data }: MessageEvent<T>) => take(data);
  port1.onmessageerror = () => lost(UNREADABLE);
  return {
    given: port2,
    close() {
      port1.close();
      held.delete(port1);
    },
  };
}

/** Resolves in a task of its own, behind the messages that have come. */
export function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    const port = openPort(() => resolve(port.close()));
    port.given.postMessage(null);
  });
}

/** A channel to other tabs, held until it is closed. What cannot be read comes from another version: it is for others. */
export function openBroadcast<T>(name: string, take: (message: T) => void) {
  const channel = new BroadcastChannel(name);
  held.add(channel);
  // in Node it would keep the command from ending
  (channel as { unref?(): void }).unref?.();
  channel.onmessage = ({ data }: MessageEvent<T>) => take(data);
  channel.onmessageerror = () => console.warn(`${name}: ${UNREADABLE}`);
  return {
    say: (message: T) => channel.postMessage(message),
    close() {
      channel.close();
      held.delete(channel);
    },
  };
}
