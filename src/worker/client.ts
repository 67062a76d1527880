/**
 * The engine as the window sees it: its calls, run in the one dedicated worker. Failures arrive as
 * AmalgamError with their code; a worker that dies rejects every call in flight (comlink alone leaves them pending). One that
 * stands still can be replaced: the next one opens the same models and goes on with the calls in flight.
 */
import * as Comlink from 'comlink';
import { AmalgamError } from '../errors';
import { onYield, untilEnded } from '../host/run-lock';
import { folderIn, startWorker, storageRoot } from '../platform';
import type { InterruptedRun, MergeRequest } from '../reports/merge';
import type { ModelInfo } from '../reports/models';
import { canceled } from '../sources/cancellation';
import type { WorkerCalls } from './calls';
import workerUrl from './main.worker.ts?worker&url';
import { callRemote, type Outcome, proxyOf, type RemoteWorker, reports } from './remote';

/** Calls that last as long as the page: no jobs. */
const ENDLESS: ReadonlySet<keyof WorkerCalls> = new Set(['follow', 'hubWaits']);
/** Calls whose effect stays in the worker, and has to be there again in another. */
const REPEATED: ReadonlySet<keyof WorkerCalls> = new Set([
  'setHub',
  'openSample',
  'openLocal',
  'openHub',
  'openDisk',
  'openDataset',
  'addCalibrationText',
]);

interface Call {
  name: keyof WorkerCalls;
  args: unknown[];
}

/** A call that is not answered yet. */
interface Flight extends Call {
  resolve(outcome: Outcome): void;
  reject(error: unknown): void;
  /** Lets go of what it holds, whether it was answered or not. */
  close(): void;
}

export interface Engine extends WorkerCalls {
  /**
   * Ends the worker at once, whatever it does, and starts another once a merge of the first has let go. Jobs in flight begin again with what they have finished,
   * or end as `Canceled`; other calls are made again.
   * @returns whether a sign-in was lost with it: the page never sees its token
   */
  restart(jobs: 'again' | 'cancel'): Promise<{ signedOut: boolean }>;
  /** Calls `stop` whenever another tab wants to take over the merge of this one. */
  onYield(stop: () => void): void;
}

/** @param start starts a worker of this name that runs a {@link RemoteWorker}; default: the engine's own */
export function connectWorker(
  start: (name: string) => Worker = (name) => startWorker(workerUrl, name),
): Engine {
  // like no other tab's: its locks are known by it
  const workerName = `amalgam-engine ${Date.now()} ${Math.random()}`;
  let worker = start(workerName);
  let remote = Comlink.wrap<RemoteWorker>(worker);
  let died: AmalgamError | null = null;
  const flights = new Set<Flight>();
  const repeated: Call[] = [];
  let signedIn = false;
  /** Promise that settles once the worker before is gone, then one once the new worker has its state. */
  let ready: Promise<unknown> | undefined;

  const die = (message: string, hint: string) => {
    died = new AmalgamError('WorkerDied', message, hint);
    for (const { reject } of flights) reject(died);
  };
  const watchDeath = () =>
    worker.addEventListener('error', ({ message, target }) => {
      if (target !== worker) return;
      const why = message || 'its worker could not be started';
      die(`The engine stopped: ${why}.`, 'Reload the page. Downloads that finished are kept.');
    });
  watchDeath();
  const dieWithoutStorage = () => {
    worker.terminate();
    die(
      'The browser’s storage for this site was cleared while it was in use.',
      'Close this tab and open Amalgam again; where a file is still in use then, restart the browser.',
    );
  };
  // WebKit may retain a page that the user leaves, with its worker and locks, to show it again: no other page could
  // merge then. So a worker at work ends with the page, and a page that comes back without it begins anew.
  addEventListener('pagehide', () => {
    if ([...flights].every(({ name }) => ENDLESS.has(name))) return;
    worker.terminate();
    die('The page was left while it worked.', 'Reload the page. Downloads that finished are kept.');
  });
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted && died) location.reload();
  });

  const isJob = ({ name, args }: Call) => reports(args) && !ENDLESS.has(name);
  const send = (flight: Flight) => {
    const lost = (why: string) =>
      die(`The engine stopped: ${why}.`, 'Reload the page. Downloads that finished are kept.');
    const { outcome, close } = callRemote(remote, flight.name, flight.args, lost);
    const endWatch = isJob(flight) ? watchStorage(dieWithoutStorage) : () => undefined;
    flight.close = () => {
      endWatch();
      close();
    };
    outcome.then(flight.resolve, flight.reject);
  };
  const call = (name: keyof WorkerCalls, args: unknown[]): Promise<Outcome> => {
    if (died) return Promise.reject(died);
    const flight: Flight = { name, args, resolve() {}, reject() {}, close() {} };
    return new Promise<Outcome>((resolve, reject) => {
      Object.assign(flight, { resolve, reject });
      flights.add(flight);
      send(flight);
    }).finally(() => {
      flights.delete(flight);
      flight.close();
    });
  };
  const record = ({ name, args }: Call, outcome: Outcome): Outcome => {
    if ('error' in outcome) return outcome;
    // a branch of the hub moves, the commit it was opened at stays
    const data = args.filter((arg) => !(arg instanceof AbortSignal));
    const again = name === 'openHub' ? [(outcome.value as ModelInfo).ref] : data;
    if (REPEATED.has(name)) repeated.push({ name, args: again });
    if (name === 'setHub' || name === 'finishSignIn') signedIn = name === 'finishSignIn';
    return outcome;
  };
  /** The request; with `resume` where an interrupted merge lies at its destination. */
  const resumed = async (request: MergeRequest): Promise<MergeRequest> => {
    const { destination } = request;
    const outcome = await call('interrupted', []);
    const left = 'value' in outcome ? (outcome.value as InterruptedRun[]) : [];
    const isLeft = 'name' in destination && left.some((run) => destination.name === run.destination.name);
    return { ...request, resume: request.resume || request.recommended !== undefined || isLeft };
  };

  const calls = proxyOf<WorkerCalls>(async (name, args) => {
    while (ready) await ready;
    return record({ name, args }, await call(name, args));
  });
  const restart = async (jobs: 'again' | 'cancel') => {
    worker.terminate();
    if ([...flights].some(({ name }) => name === 'merge')) {
      ready = untilEnded(workerName);
      await ready;
      // one that a second restart has begun meanwhile
      worker.terminate();
    }
    const open = [...flights];
    for (const flight of open) {
      flight.close();
      if (isJob(flight) && jobs === 'cancel') flight.reject(canceled());
    }
    worker = start(workerName);
    remote = Comlink.wrap<RemoteWorker>(worker);
    died = null;
    watchDeath();
    const signedOut = signedIn;
    signedIn = false;
    // a model that cannot be opened again is closed, and its use reports that
    const opening = repeated.map(({ name, args }) => call(name, args));
    ready = Promise.allSettled(opening);
    await ready;
    ready = undefined;
    for (const flight of open) {
      if (!flights.has(flight)) continue;
      if (flight.name === 'merge') flight.args[0] = await resumed(flight.args[0] as MergeRequest);
      send(flight);
    }
    return { signedOut };
  };
  const own = { restart, onYield };
  return new Proxy(calls, {
    get: (target, name) => Reflect.get(name in own ? own : target, name),
  }) as Engine;
}

// Watches, from the page, whether the site's storage is cleared while a job runs. A worker that holds a file open then
// waits in its next write for ever (Chromium 156), without an error.

/** An empty folder that is there until everything goes. */
const MARK = 'in-use';
const LOOK_MS = 2000;

/**
 * Calls `onCleared` once when the storage is cleared.
 * @returns ends the watch
 */
export function watchStorage(onCleared: () => void): () => void {
  let isOver = false;
  const look = async (root: FileSystemDirectoryHandle) => {
    while (!isOver) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      const isThere = await folderIn(root, MARK).then(
        () => true,
        (thrown: unknown) => !(thrown instanceof DOMException && thrown.name === 'NotFoundError'),
      );
      if (isThere || isOver) continue;
      isOver = true;
      onCleared();
    }
  };
  const watch = async () => {
    const root = await storageRoot();
    await folderIn(root, MARK, true);
    await look(root);
  };
  // a browser without storage, or a private window that refuses it: nothing can be cleared there
  watch().catch(() => undefined);
  return () => {
    isOver = true;
  };
}
