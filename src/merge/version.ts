import { version } from '../../package.json';

/** Amalgam's own version, as written into reports, cards and weight files. */
export const AMALGAM_VERSION: string = version;
