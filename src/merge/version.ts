import { homepage, version } from '../../package.json';

/** Amalgam's own version, as written into reports, cards and weight files. */
export const AMALGAM_VERSION: string = version;

/** Address of the hosted studio, which every card leads to; empty where there is none. */
export const studioAddress = (): string => homepage;
