/** The pretended engine of the interaction benchmark, in a worker as the real one: 32 layers. */
import * as Comlink from 'comlink';
import { errorFacts } from '../../src/errors';
import { fixtureEngine } from '../../src/ui/engine-fixture';
import type { Outcome, RemoteWorker } from '../../src/worker/api';

const engine = new Map(Object.entries(fixtureEngine({ layers: 32 })));

const remote: RemoteWorker = {
  async call(method, args, port): Promise<Outcome> {
    try {
      const run = engine.get(method) as (...all: unknown[]) => Promise<unknown>;
      const onProgress = (progress: unknown) => port?.postMessage(progress);
      return { value: await run(...args, ...(port ? [onProgress] : [])) };
    } catch (thrown) {
      return { error: errorFacts(thrown) };
    }
  },
};

Comlink.expose(remote);
