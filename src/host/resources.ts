/** Resources of a running job: engines, files, and the output it writes. */

import type { DestinationSpec } from '../reports/job';
import type { Destination } from '../write/destination';
import { openDestination } from '../write/opened-destination';

interface Resources {
  /** Closes it when the job has ended, the last one opened first. */
  keep<T extends { close(): void }>(opened: T): T;
  /** Opens where the job writes; it is discarded when the job fails. @throws what `openDestination` throws */
  output(spec: DestinationSpec): Promise<Destination>;
}

/** Runs a job. If it fails, its output is discarded; its resources are closed in any case. @throws errors of the job */
export async function withResources<T>(job: (resources: Resources) => Promise<T>): Promise<T> {
  const opened: { close(): void }[] = [];
  let destination: Destination | undefined;
  try {
    return await job({
      keep(resource) {
        opened.push(resource);
        return resource;
      },
      async output(spec) {
        destination = await openDestination(spec);
        return destination;
      },
    });
  } catch (error) {
    await destination?.discard();
    throw error;
  } finally {
    for (const resource of opened.reverse()) resource.close();
  }
}
