/** The fake worker of the interaction benchmark, in a worker as the real one; its name describes the model. */
import * as Comlink from 'comlink';
import { fixtureWorker } from '../../src/ui/worker.test.fixture';
import { serveCalls } from '../../src/worker/remote';

const said = new URLSearchParams(self.name);
const layers = Number(said.get('layers') ?? 32);
const experts = Number(said.get('experts') ?? 0);
Comlink.expose(serveCalls(fixtureWorker({ layers, experts })));
