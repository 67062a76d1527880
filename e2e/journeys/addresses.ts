/**
 * Where the journeys find things. The ports are fixed because the built page's Content-Security-Policy names the fake
 * hubs, one for each worker of the runner, and the hosts they redirect downloads to; `JOURNEY_PORT` moves all where they
 * are taken.
 */
import process from 'node:process';

/** Journeys at once: one waits for its page more than it computes. */
export const WORKERS = 3;

export const STUDIO_PORT = Number(process.env.JOURNEY_PORT ?? 4391);
const hubPort = (worker: number) => STUDIO_PORT + 1 + 2 * worker;

export const HUB_PORT = hubPort(Number(process.env.TEST_PARALLEL_INDEX ?? 0));
export const HUB_CDN_PORT = HUB_PORT + 1;

/** The built studio, below the project's folder: a place for each port, so that two runs do not build over each other. */
export const STUDIO_DIST = process.env.JOURNEY_PORT ? `test-results/dist-${STUDIO_PORT}` : 'dist-journeys';

export const STUDIO_URL = `http://127.0.0.1:${STUDIO_PORT}/`;
export const HUB_URL = `http://127.0.0.1:${HUB_PORT}`;

/** Origins of all hubs: each, its download host, and the store of another region, which is the same server by another name. */
export const HUB_ORIGINS = Array.from({ length: WORKERS }, (_, worker) => hubPort(worker)).flatMap((port) => [
  `http://127.0.0.1:${port}`,
  `http://127.0.0.1:${port + 1}`,
  `http://localhost:${port + 1}`,
]);

/** Whom the built studio is to the fake hub, where people sign in. */
export const CLIENT_ID = 'amalgam-journeys';
