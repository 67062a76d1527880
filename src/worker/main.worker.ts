/** The one dedicated worker: everything that fetches, stores or computes runs here. */
import { startThreadsWith } from '../host/threads';
import { exposeHere, startThread } from '../platform';
import { createCalls } from './calls';
import { serveCalls } from './remote';
import threadUrl from './thread.worker.ts?worker&url';

// the command in Node has its own (host/node/start-thread.ts)
startThreadsWith(() => startThread(threadUrl, 'amalgam-thread'));
exposeHere(serveCalls(createCalls()));
