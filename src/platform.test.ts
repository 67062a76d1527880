import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  bytesOf,
  contentOf,
  entriesOf,
  exposeHere,
  exposeThread,
  holdLock,
  openBroadcast,
  openPort,
  piecesOf,
  removeFrom,
  startThread,
  startWorker,
  syncAccess,
} from './platform';
import { memoryLocks } from './store/memory-storage';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const never = () => new Promise<never>(() => undefined);
const fails = (name: string) => async () => {
  throw new DOMException('', name);
};
/** A file handle whose call gives these answers, one after the other. */
function answering(call: string, ...answers: (() => Promise<unknown>)[]) {
  const asked = vi.fn(() => answers[Math.min(asked.mock.calls.length, answers.length) - 1]!());
  return { file: { [call]: asked } as unknown as FileSystemFileHandle, asked };
}

describe('R64: a call of the browser', () => {
  it('without an answer is made again', async () => {
    const { file, asked } = answering('getFile', never, async () => 'the file');
    const content = contentOf(file);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await content).toBe('the file');
    expect(asked).toHaveBeenCalledTimes(2);
  });

  it('that is never answered ends in words', async () => {
    const { file, asked } = answering('getFile', never);
    const content = expect(contentOf(file)).rejects.toMatchObject({ code: 'StorageFailed' });
    await vi.advanceTimersByTimeAsync(60_000);
    await content;
    expect(asked).toHaveBeenCalledTimes(3);
  });

  it('that fails passingly is made again, and any other failure is the caller’s', async () => {
    const { file } = answering('getFile', fails('UnknownError'), async () => 'the file');
    const content = contentOf(file);
    await vi.advanceTimersByTimeAsync(100);
    expect(await content).toBe('the file');
    await expect(contentOf(answering('getFile', fails('NotFoundError')).file)).rejects.toMatchObject({
      name: 'NotFoundError',
    });
  });

  it('leaves no file open whose handle comes too late', async () => {
    const close = vi.fn();
    let come = (_: unknown) => {};
    const late = () =>
      new Promise((resolve) => {
        come = resolve;
      });
    const { file } = answering('createSyncAccessHandle', late, async () => 'the second');
    const opened = syncAccess(file);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await opened).toBe('the second');
    come({ close });
    await vi.advanceTimersByTimeAsync(1);
    expect(close).toHaveBeenCalledTimes(1);
  });

  it('waits for a file that somebody who goes away has open, and not for ever', async () => {
    const { file } = answering(
      'createSyncAccessHandle',
      fails('NoModificationAllowedError'),
      fails('NoModificationAllowedError'),
      async () => 'a handle',
    );
    const opened = syncAccess(file);
    await vi.advanceTimersByTimeAsync(1000);
    expect(await opened).toBe('a handle');
    const kept = answering('createSyncAccessHandle', fails('NoModificationAllowedError'));
    const refused = expect(syncAccess(kept.file)).rejects.toMatchObject({
      name: 'NoModificationAllowedError',
    });
    await vi.advanceTimersByTimeAsync(6000);
    await refused;
    const folder = {
      removeEntry: fails('NoModificationAllowedError'),
    } as unknown as FileSystemDirectoryHandle;
    await expect(removeFrom(folder, 'a')).rejects.toMatchObject({ name: 'NoModificationAllowedError' });
  });

  it('lists a folder anew where the listing stops', async () => {
    let listings = 0;
    const folder = {
      async *entries() {
        yield ['a', {}];
        if (++listings === 1) await never();
        yield ['b', {}];
      },
    } as unknown as FileSystemDirectoryHandle;
    const entries = entriesOf(folder);
    await vi.advanceTimersByTimeAsync(10_000);
    expect((await entries).map(([name]) => name)).toEqual(['a', 'b']);
  });
});

it('reading ends a stream of which no more is wanted, and hands on its failure', async () => {
  const cancel = vi.fn();
  const pull = (controller: ReadableStreamDefaultController<number>) => controller.enqueue(1);
  for await (const piece of piecesOf(new ReadableStream<number>({ pull, cancel }))) if (piece === 1) break;
  expect(cancel).toHaveBeenCalledTimes(1);
  const failing = new ReadableStream<number>({ pull: () => Promise.reject(new Error('broken')) });
  await expect(piecesOf(failing).next()).rejects.toThrow('broken');
  expect([...(await bytesOf(new Blob([Uint8Array.of(1, 2)])))]).toEqual([1, 2]);
});

describe('R65: where the browser has no locks', () => {
  beforeEach(() => {
    vi.useRealTimers();
    vi.stubGlobal('navigator', { locks: memoryLocks() });
  });

  it('they are held in this tab: one at a time, in the order they were asked for', async () => {
    const order: number[] = [];
    const release = (await holdLock('a'))!;
    expect((await navigator.locks.query()).held).toEqual([{ name: 'a' }]);
    const second = navigator.locks.request('a', () => void order.push(2));
    const third = navigator.locks.request('a', () => void order.push(3));
    expect(await navigator.locks.request('a', { ifAvailable: true }, (lock) => lock)).toBe(null);
    release();
    await Promise.all([second, third]);
    expect(order).toEqual([2, 3]);
    (await holdLock('a'))!();
  });

  it('who waits with a signal may leave, and what comes behind gets its turn', async () => {
    const release = (await holdLock('a'))!;
    const act = vi.fn();
    const leaving = navigator.locks.request('a', { signal: AbortSignal.abort() }, act);
    await expect(leaving).rejects.toMatchObject({ name: 'AbortError' });
    const stop = new AbortController();
    const waiting = navigator.locks.request('a', { signal: stop.signal }, act);
    stop.abort();
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
    const last = navigator.locks.request('a', () => 'mine');
    release();
    expect(await last).toBe('mine');
    expect(act).not.toHaveBeenCalled();
  });
});

describe('R64: a message that cannot be read is told of', () => {
  /** A port, channel, worker or worker's global scope: `fail` is what the browser does with such a message. */
  class Endpoint extends EventTarget {
    onmessageerror: (() => void) | null = null;
    postMessage = vi.fn();
    start = vi.fn();
    close = vi.fn();
    fail() {
      this.onmessageerror?.();
      this.dispatchEvent(new Event('messageerror'));
    }
  }
  const made: Endpoint[] = [];
  const told = vi.fn();
  beforeEach(() => {
    made.length = 0;
    told.mockClear();
    class Made extends Endpoint {
      constructor() {
        super();
        made.push(this);
      }
    }
    const scope = new Made();
    for (const name of ['Worker', 'BroadcastChannel']) vi.stubGlobal(name, Made);
    class Channel {
      port1 = new Made();
      port2 = new Endpoint();
    }
    class Failure extends Event {
      constructor(
        type: string,
        readonly init: { message: string },
      ) {
        super(type);
      }
    }
    vi.stubGlobal('MessageChannel', Channel);
    vi.stubGlobal('ErrorEvent', Failure);
    vi.stubGlobal('self', scope);
    vi.stubGlobal('addEventListener', scope.addEventListener.bind(scope));
    vi.stubGlobal('location', new URL('https://studio.example/'));
    vi.stubGlobal('reportError', ({ message }: Error) => told(message));
    vi.spyOn(console, 'warn').mockImplementation(told);
  });

  it.each<[string, () => void]>([
    ['a port that is given away', () => void openPort(() => undefined, told)],
    ['other tabs', () => void openBroadcast('tabs', () => undefined)],
    ['a thread, at its owner', () => startThread('thread.js', 'thread').onError(told)],
    ['a worker, in it', () => exposeHere({})],
    [
      'a worker, at the window',
      () =>
        startWorker('worker.js', 'worker').addEventListener('error', (event) =>
          told((event as unknown as { init: ErrorEventInit }).init.message),
        ),
    ],
    [
      'a thread, in it',
      () => {
        exposeThread({});
        const port = new Endpoint();
        made.push(port);
        made[0]!.dispatchEvent(Object.assign(new Event('message'), { ports: [port] }));
      },
    ],
  ])('%s', (_, open) => {
    open();
    for (const endpoint of made) endpoint.fail();
    expect(told).toHaveBeenCalledOnce();
    expect(told.mock.calls[0]![0]).toContain('a message could not be read');
  });
});
