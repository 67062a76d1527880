import type { Backend } from './backend';

/**
 * Multiply-adds of one dispatch: a driver that sees no answer for about two seconds resets the device. The first is for
 * adapters that compute on the processor; there more than 20 contributors of a row-wise method can take twice as much.
 */
export const DISPATCH_WORK = { software: 5e8, gpu: 1e10 } as const;

/** Most multiply-adds that one dispatch should have on this engine. */
export function dispatchWork({ software }: Pick<Backend, 'software'>): number {
  return software ? DISPATCH_WORK.software : DISPATCH_WORK.gpu;
}
