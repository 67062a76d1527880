/**
 * Threads beside this one, as workers of the browser or threads of Node. All are alike: each merges units of an output, or
 * runs kernels for an engine of its owner, as its owner calls it.
 */
import * as Comlink from 'comlink';
import { AmalgamError, type ErrorReport, errorReport, fromErrorReport } from '../errors';

/** A worker that was started. */
export interface WorkerPort {
  endpoint: Comlink.Endpoint;
  onError(tell: (message: string) => void): void;
  terminate(): void;
}

let start: (() => WorkerPort) | undefined;
/** What ends each thread that was started and is not ended, in the middle of its work. */
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

/** Starts a thread that serves such calls ({@link reporting}). */
export function openThread<Calls>(): Thread<Calls> {
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
  running.add(terminate);
  port.onError(stop);
  return {
    ask: (act) =>
      new Promise((resolve, reject) => {
        if (stopped) return reject(stopped);
        waiting.add(reject);
        void act(calls)
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
