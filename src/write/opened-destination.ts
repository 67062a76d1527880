import type { DestinationSpec } from '../reports/job';
import { checkedDestination } from './checked-destination';
import type { Destination } from './destination';
import { openDownloadDestination } from './download-destination';
import { openFolderDestination } from './folder-destination';
import { openServedDestination } from './served-destination';

let openServed: (url: string) => Destination = openServedDestination;

/** Has `served` destinations opened otherwise: the command in Node has its output folder at hand. */
export function openServedWith(open: (url: string) => Destination): void {
  openServed = open;
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
    case 'served':
      return checkedDestination(openServed(spec.url));
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
