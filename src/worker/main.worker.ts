/** The one dedicated worker: everything that fetches, stores or computes runs here. */
import * as Comlink from 'comlink';
import { startThreadsWith } from '../host/threads';
import { trustedWorkerUrl } from '../trusted-worker-url';
import { createCalls } from './calls';
import { serveCalls } from './remote';
import threadUrl from './thread.worker.ts?worker&url';

// the command in Node has its own (host/node/start-thread.ts)
startThreadsWith(
  () => new Worker(trustedWorkerUrl(threadUrl), { type: 'module', name: 'amalgam-cpu-thread' }),
);
Comlink.expose(serveCalls(createCalls()));
