/** Products by weights that threads of a browser share, in an isolated page. */
import * as Comlink from 'comlink';
import { expect, test } from 'vitest';
import { startWorker } from '../platform';
import type { SharedWeightsRig } from './shared-weights.test.worker';
import rigUrl from './shared-weights.test.worker?worker&url';

test('threads of an isolated page compute products together, with the bits of one', async () => {
  expect(crossOriginIsolated).toBe(true);
  const worker = startWorker(rigUrl, 'shared weights');
  const { isShared, started, different } = await Comlink.wrap<SharedWeightsRig>(worker).products(50);
  worker.terminate();
  expect({ isShared, different }).toEqual({ isShared: true, different: 1 });
  expect(started).toBe(Math.min(8, navigator.hardwareConcurrency) - 1);
});
