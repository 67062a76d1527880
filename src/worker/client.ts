/**
 * The engine as the window sees it: the methods of WorkerApi, run in the one dedicated worker. Failures arrive as
 * AmalgamError with their code; a worker that dies rejects every call in flight (comlink alone leaves them pending).
 */
import * as Comlink from 'comlink';
import { AmalgamError } from '../errors';
import { watchStorage } from '../store/storage-watch';
import { trustedWorkerUrl } from '../trusted-worker-url';
import type { Outcome, RemoteWorker, WorkerApi } from './api';
import workerUrl from './main.worker.ts?worker&url';

export type WorkerClient = WorkerApi & { close(): void };

/** @param worker runs a {@link RemoteWorker}; default: the engine's own, started here */
export function connectWorker(worker: Worker = startWorker()): WorkerClient {
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
  const orDied = (request: Promise<Outcome>): Promise<Outcome> =>
    new Promise<Outcome>((resolve, reject) => {
      if (died) return reject(died);
      inFlight.add(reject);
      request.then(resolve, reject).finally(() => inFlight.delete(reject));
    });

  const call = async <K extends keyof WorkerApi>(
    method: K,
    args: unknown[],
    port?: MessagePort,
  ): Promise<Awaited<ReturnType<WorkerApi[K]>>> => {
    const request = port
      ? remote.call(method, args, Comlink.transfer(port, [port]))
      : remote.call(method, args);
    const outcome = await orDied(request);
    if ('error' in outcome) {
      const { code, message, hint } = outcome.error;
      throw new AmalgamError(code, message, hint);
    }
    return outcome.value as Awaited<ReturnType<WorkerApi[K]>>;
  };

  const callWithProgress = async <K extends keyof WorkerApi, P>(
    method: K,
    request: unknown,
    onProgress: (progress: P) => void,
  ): Promise<Awaited<ReturnType<WorkerApi[K]>>> => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = ({ data }: MessageEvent<P>) => onProgress(data);
    const endWatch = watchStorage(dieWithoutStorage);
    try {
      return await call(method, [request], port2);
    } finally {
      endWatch();
      port1.close();
    }
  };

  return {
    facts: () => call('facts', []),
    openSample: () => call('openSample', []),
    openLocal: (files) => call('openLocal', [files]),
    openHub: (idOrUrl) => call('openHub', [idOrUrl]),
    openServed: (ref, url) => call('openServed', [ref, url]),
    setHub: (hub) => call('setHub', [hub]),
    searchHub: (query) => call('searchHub', [query]),
    plan: (recipe) => call('plan', [recipe]),
    merge: (request, onProgress) => callWithProgress('merge', request, onProgress),
    profile: (request, onProgress) => callWithProgress('profile', request, onProgress),
    verify: (request, onProgress) => callWithProgress('verify', request, onProgress),
    verifyTensor: (request, onProgress) => callWithProgress('verifyTensor', request, onProgress),
    evaluate: (request, onProgress) => callWithProgress('evaluate', request, onProgress),
    evaluateMany: (request, onProgress) => callWithProgress('evaluateMany', request, onProgress),
    generate: (request, onProgress) => callWithProgress('generate', request, onProgress),
    compare: (request, onProgress) => callWithProgress('compare', request, onProgress),
    extractLora: (request, onProgress) => callWithProgress('extractLora', request, onProgress),
    measureDepth: (request, onProgress) => callWithProgress('measureDepth', request, onProgress),
    collapse: (request, onProgress) => callWithProgress('collapse', request, onProgress),
    openDataset: (idOrUrl) => call('openDataset', [idOrUrl]),
    datasetColumns: (ref, path) => call('datasetColumns', [ref, path]),
    readDataset: (request, onProgress) => callWithProgress('readDataset', request, onProgress),
    sampleTexts: () => call('sampleTexts', []),
    calibrationTexts: () => call('calibrationTexts', []),
    addCalibrationText: (name, text) => call('addCalibrationText', [name, text]),
    importance: (request, onProgress) => callWithProgress('importance', request, onProgress),
    beginSignIn: (request) => call('beginSignIn', [request]),
    finishSignIn: (answer) => call('finishSignIn', [answer]),
    hubAccount: () => call('hubAccount', []),
    pushTarget: (repo, source) => call('pushTarget', [repo, source]),
    push: (request, onProgress) => callWithProgress('push', request, onProgress),
    cancel: () => call('cancel', []),
    interrupted: () => call('interrupted', []),
    discardInterrupted: (destination) => call('discardInterrupted', [destination]),
    follow(onRun) {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = ({ data }: MessageEvent<Parameters<typeof onRun>[0]>) => onRun(data);
      return call('follow', [], port2);
    },
    hubWaits(onWaits) {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = ({ data }: MessageEvent<Parameters<typeof onWaits>[0]>) => onWaits(data);
      return call('hubWaits', [], port2);
    },
    takeOver: () => call('takeOver', []),
    outputFile: (name, file) => call('outputFile', [name, file]),
    cache: () => call('cache', []),
    deleteCached: (kind, id) => call('deleteCached', [kind, id]),
    close() {
      remote[Comlink.releaseProxy]();
      worker.terminate();
    },
  };
}

function startWorker(): Worker {
  return new Worker(trustedWorkerUrl(workerUrl), { type: 'module', name: 'amalgam-engine' });
}
