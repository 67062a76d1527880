import { AmalgamError } from '../errors';

/** Error of every read after its signal has fired. */
export function canceled(): AmalgamError {
  return new AmalgamError('Canceled', 'Canceled.', 'Start again when you like.');
}

/** @throws Canceled when the signal has fired. */
export function throwIfCanceled(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw canceled();
}
