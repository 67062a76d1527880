import { connectWorker } from '../worker/client';
import { headlessCalls } from './headless';

/** The page's half of the headless command on WebGPU: the same worker as a person's tab, called from Node. */
export function exposeHeadless(): void {
  // only a line on a terminal: a page that is closing may lose it
  window.amalgamHeadless = headlessCalls(connectWorker(), (progress) =>
    window.amalgamProgress?.(progress).catch(() => undefined),
  );
}
