/** Runs the download destination where it lives in the product: in a dedicated worker. */
import * as Comlink from 'comlink';
import { type ErrorReport, errorReport } from '../errors';
import type { Destination, FileSink } from './destination';
import { openDownloadDestination } from './download-destination';

let destination: Destination;
let sink: FileSink;
let length = 0;

/** Errors cross as plain data. */
async function outcome(act: () => Promise<unknown>): Promise<ErrorReport | 'ok'> {
  return act().then(
    () => 'ok' as const,
    (thrown) => errorReport(thrown),
  );
}

const rig = {
  open: (name: string, resume = false) =>
    outcome(async () => {
      destination = await openDownloadDestination(name, resume);
    }),
  requireRoom: (bytes: number) => outcome(() => destination.requireRoom!(bytes)),
  create: (path: string) =>
    outcome(async () => {
      sink = await destination.create(path);
      length = 0;
    }),
  reopen: (path: string, bytes: number) =>
    outcome(async () => {
      sink = await destination.remains!.reopen!(path, bytes);
      length = bytes;
    }),
  /** Appends. */
  write: (bytes: Uint8Array<ArrayBuffer>) =>
    outcome(async () => {
      await sink.write(bytes, length);
      length += bytes.byteLength;
    }),
  place: () => sink.place?.kind,
  flush: () => outcome(() => sink.flush!()),
  close: () => outcome(() => sink.close([], length)),
  keep: () => outcome(() => destination.remains!.keep()),
  commit: () => outcome(() => destination.commit()),
  discard: () => outcome(() => destination.discard()),
  /** From now on writes go wrong the way they do in a private window that is full: a wrong count, no exception. */
  breakWrites: () => {
    FileSystemSyncAccessHandle.prototype.write = () => 4294967288;
  },
};

export type Rig = typeof rig;

Comlink.expose(rig);
