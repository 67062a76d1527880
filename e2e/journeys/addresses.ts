/**
 * Where the journeys find things. The ports are fixed because the built page's Content-Security-Policy names the fake
 * Hub and the host it redirects downloads to; `JOURNEY_PORT` moves all three where they are taken.
 */
import process from 'node:process';

export const STUDIO_PORT = Number(process.env.JOURNEY_PORT ?? 4391);
export const HUB_PORT = STUDIO_PORT + 1;
export const HUB_CDN_PORT = STUDIO_PORT + 2;

/** The built studio, below the project's folder: a place for each port, so that two runs do not build over each other. */
export const STUDIO_DIST = process.env.JOURNEY_PORT ? `test-results/dist-${STUDIO_PORT}` : 'dist-journeys';

export const STUDIO_URL = `http://127.0.0.1:${STUDIO_PORT}/`;
export const HUB_URL = `http://127.0.0.1:${HUB_PORT}`;
export const HUB_CDN_URL = `http://127.0.0.1:${HUB_CDN_PORT}`;

/** The store of another region: the same server by another name. */
export const HUB_EU_URL = `http://localhost:${HUB_CDN_PORT}`;

/** Whom the built studio is to the fake hub, where people sign in. */
export const CLIENT_ID = 'amalgam-journeys';
