import { AmalgamError } from '../errors';

/** What every read throws once its signal has fired. */
export function cancelled(): AmalgamError {
  return new AmalgamError('Cancelled', 'Canceled.', 'Start again when you like.');
}

/** @throws Cancelled when the signal has fired. */
export function throwIfCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw cancelled();
}
