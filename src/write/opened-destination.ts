import type { DestinationSpec } from '../reports/job';
import { checkedDestination } from './checked-destination';
import type { Destination } from './destination';
import { openDownloadDestination } from './download-destination';
import { openFolderDestination } from './folder-destination';

let openDisk: (() => Destination) | undefined;

/** Sets what opens the output folder of the command, which alone writes to the disk. */
export function openDiskWith(open: () => Destination): void {
  openDisk = open;
}

/**
 * Opens the destination a request names. Throws what its kind throws, before anything is written.
 * @param resume keeps what an interrupted run left there
 */
export async function openDestination(spec: DestinationSpec, resume = false): Promise<Destination> {
  switch (spec.kind) {
    case 'folder':
      return checkedDestination(await openFolderDestination(spec.handle, spec.name, resume));
    case 'downloads':
      return checkedDestination(await openDownloadDestination(spec.name, resume));
    case 'disk':
      if (!openDisk) throw new Error('openDiskWith comes before the first job');
      return checkedDestination(openDisk());
    case 'nowhere':
      return openNowhere();
  }
}

/** A destination that keeps nothing: for a merge of which only the hashes are wanted. */
function openNowhere(): Destination {
  return {
    create: async () => ({ write: async () => {}, close: async () => {} }),
    commit: async () => {},
    discard: async () => {},
  };
}
