/** The one dedicated worker: everything that fetches, stores or computes runs here. */
import { startThreadsWith } from '../host/threads';
import { exposeHere, startWorker } from '../platform';
import { createCalls } from './calls';
import { serveCalls } from './remote';
import threadUrl from './thread.worker.ts?worker&url';

// the command in Node has its own (host/node/start-thread.ts)
startThreadsWith(() => {
  const worker = startWorker(threadUrl, 'amalgam-thread');
  return {
    endpoint: worker,
    onError: (tell) => worker.addEventListener('error', ({ message }) => tell(message)),
    terminate: () => worker.terminate(),
  };
});
exposeHere(serveCalls(createCalls()));
