/** The one dedicated worker: everything that fetches, stores or computes runs here. */
import { startThreadsWith } from '../host/threads';
import { exposeHere, startWorker } from '../platform';
import { createCalls } from './calls';
import mergeUrl from './merge.worker.ts?worker&url';
import { serveCalls } from './remote';
import threadUrl from './thread.worker.ts?worker&url';

// the command in Node has its own (host/node/start-thread.ts)
startThreadsWith(
  () => startWorker(threadUrl, 'amalgam-cpu-thread'),
  () => {
    const worker = startWorker(mergeUrl, 'amalgam-merge-thread');
    return {
      endpoint: worker,
      onError: (tell) => worker.addEventListener('error', ({ message }) => tell(message)),
      terminate: () => worker.terminate(),
    };
  },
);
exposeHere(serveCalls(createCalls()));
