import type { Endpoint } from 'comlink';
import type { ThreadPort } from '../backend/cpu/thread-backend';

/** A thread that merges (src/merge/run/serve-thread.ts). */
export interface MergePort {
  endpoint: Endpoint;
  onError(tell: (message: string) => void): void;
  terminate(): void;
}

let start: (() => ThreadPort) | undefined;
let startMerge: (() => MergePort) | undefined;
/** What ends each thread that was started and is not ended, in the middle of its work. */
const running = new Set<() => void>();

/** Sets how threads are started here, as workers of the browser or threads of Node: of the CPU backend, and such that merge. */
export function startThreadsWith(given: () => ThreadPort, givenMerge?: () => MergePort): void {
  start = given;
  startMerge = givenMerge;
}

/** Whether a merge can have threads here. */
export const hasMergeThreads = () => startMerge !== undefined;

/** Starts a thread that merges. */
export function startMergeThread(): MergePort {
  if (!startMerge) throw new Error('startThreadsWith comes before the first job');
  const { endpoint, onError, terminate } = startMerge();
  const tells: ((message: string) => void)[] = [];
  const end = () => {
    running.delete(end);
    terminate();
    for (const tell of tells) tell('it was ended');
  };
  running.add(end);
  return {
    endpoint,
    onError(tell) {
      tells.push(tell);
      onError(tell);
    },
    terminate: end,
  };
}

/** Starts a thread of the CPU backend. */
export function startThread(): ThreadPort {
  if (!start) throw new Error('startThreadsWith comes before the first job');
  const port = start();
  const { terminate } = port;
  const end = () => {
    port.terminate();
    port.onerror?.({ message: 'it was canceled' } as ErrorEvent);
  };
  running.add(end);
  port.terminate = () => {
    running.delete(end);
    terminate.call(port);
  };
  return port;
}

/** Ends every thread in the middle of its work, which fails: for a job that is canceled. */
export function endThreads(): void {
  for (const end of [...running]) end();
}
