/** The one dedicated worker: everything that fetches, stores or computes runs here. */
import * as Comlink from 'comlink';
import { errorFacts } from '../errors';
import type { Outcome, RemoteWorker } from './api';
import { createSession } from './session';

const session = createSession();

const remote: RemoteWorker = {
  async call(method, args, port): Promise<Outcome> {
    try {
      const run = session[method] as (...all: unknown[]) => Promise<unknown>;
      const onProgress = (progress: unknown) => port?.postMessage(progress);
      return { value: await run(...args, ...(port ? [onProgress] : [])) };
    } catch (thrown) {
      return { error: errorFacts(thrown) };
    } finally {
      port?.close();
    }
  },
};

Comlink.expose(remote);
