import type { ThreadPort } from '../backend/cpu/thread-backend';

type StartThread = () => ThreadPort;

let start: StartThread | undefined;
/** Threads that were started and are not ended. */
const running = new Set<ThreadPort>();

/** Sets how threads of the CPU backend are started here: as workers of the browser, or as threads of Node. */
export function startThreadsWith(given: StartThread): void {
  start = given;
}

/** Starts a thread of the CPU backend. */
export function startThread(): ThreadPort {
  if (!start) throw new Error('startThreadsWith comes before the first job');
  const port = start();
  running.add(port);
  const { terminate } = port;
  port.terminate = () => {
    running.delete(port);
    terminate.call(port);
  };
  return port;
}

/** Ends every thread in the middle of its work, which fails: for a job that is canceled. */
export function endThreads(): void {
  for (const port of [...running]) {
    port.terminate();
    port.onerror?.({ message: 'it was canceled' } as ErrorEvent);
  }
}
