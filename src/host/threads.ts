import type { ThreadPort } from '../backend/cpu/thread-backend';

type StartThread = () => ThreadPort;

let start: StartThread | undefined;

/** Sets how threads of the CPU backend are started here: as workers of the browser, or as threads of Node. */
export function startThreadsWith(given: StartThread): void {
  start = given;
}

/** Starts a thread of the CPU backend. */
export function startThread(): ThreadPort {
  if (!start) throw new Error('startThreadsWith comes before the first job');
  return start();
}
