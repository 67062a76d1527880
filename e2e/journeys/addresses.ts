/**
 * Where the journeys find things. The ports are fixed because the built page's Content-Security-Policy names the fake
 * Hub and the host it redirects downloads to.
 */
export const STUDIO_PORT = 4391;
export const HUB_PORT = 4392;
export const HUB_CDN_PORT = 4393;

export const STUDIO_URL = `http://127.0.0.1:${STUDIO_PORT}/`;
export const HUB_URL = `http://127.0.0.1:${HUB_PORT}`;
export const HUB_CDN_URL = `http://127.0.0.1:${HUB_CDN_PORT}`;
