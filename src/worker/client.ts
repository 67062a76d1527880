/**
 * The engine as the window sees it: its calls, run in the one dedicated worker. Failures arrive as
 * AmalgamError with their code; a worker that dies rejects every call in flight (comlink alone leaves them pending).
 */
import * as Comlink from 'comlink';
import { AmalgamError } from '../errors';
import { watchStorage } from '../store/storage-watch';
import { trustedWorkerUrl } from '../trusted-worker-url';
import type { WorkerCalls } from './calls';
import workerUrl from './main.worker.ts?worker&url';
import { type Outcome, proxyOf, type RemoteWorker } from './remote';

/** Calls that last as long as the page: no jobs. */
const ENDLESS: ReadonlySet<keyof WorkerCalls> = new Set(['follow', 'hubWaits']);

/** @param worker runs a {@link RemoteWorker}; default: the engine's own, started here */
export function connectWorker(worker: Worker = startWorker()): WorkerCalls {
  const remote = Comlink.wrap<RemoteWorker>(worker);
  let died: AmalgamError | null = null;
  // not one promise that every call races: it would keep what each of them ever answered
  const inFlight = new Set<(error: AmalgamError) => void>();
  const die = (message: string, hint: string) => {
    died = new AmalgamError('WorkerDied', message, hint);
    for (const reject of inFlight) reject(died);
  };
  worker.addEventListener('error', (event) =>
    die(
      `The engine stopped: ${event.message || 'its worker could not be started'}.`,
      'Reload the page. Downloads that finished are kept.',
    ),
  );
  const dieWithoutStorage = () => {
    worker.terminate();
    die(
      'The browser’s storage for this site was cleared while it was in use.',
      'Close this tab and open Amalgam again; where a file is still in use then, restart the browser.',
    );
  };
  // WebKit may keep a page that somebody leaves, with its worker and all that it has locked, to show it again: no other page
  // could merge then. So a worker at work ends with the page, and a page that comes back without it begins anew.
  let working = 0;
  addEventListener('pagehide', () => {
    if (working === 0) return;
    worker.terminate();
    die('The page was left while it worked.', 'Reload the page. Downloads that finished are kept.');
  });
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted && died) location.reload();
  });
  const orDied = (request: Promise<Outcome>): Promise<Outcome> =>
    new Promise<Outcome>((resolve, reject) => {
      if (died) return reject(died);
      inFlight.add(reject);
      request.then(resolve, reject).finally(() => inFlight.delete(reject));
    });

  return proxyOf<WorkerCalls>(remote, (request, name, reports) => {
    if (ENDLESS.has(name)) return orDied(request);
    const endWatch = reports ? watchStorage(dieWithoutStorage) : () => undefined;
    working++;
    return orDied(request).finally(() => {
      working--;
      endWatch();
    });
  });
}

function startWorker(): Worker {
  return new Worker(trustedWorkerUrl(workerUrl), { type: 'module', name: 'amalgam-engine' });
}
