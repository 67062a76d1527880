/** Writes one file of the browser's own storage in a thread of its own (download-destination.ts). */
import * as Comlink from 'comlink';
import { AmalgamError, type ErrorReport, errorReport } from '../errors';
import { exposeHere } from '../platform';
import { destinationError, outputPathParts } from './destination-error';
import { openHandle, opfsSink } from './opfs-sink';

export interface Written {
  error?: ErrorReport;
  /** The memory of the piece, to be used again. */
  spent?: ArrayBuffer;
}

let name: string;
let handle: FileSystemSyncAccessHandle | undefined;
let sink: ReturnType<typeof opfsSink>;
/** After a failure nothing more is written, and everything fails as that did. */
let failed: ErrorReport | undefined;

async function outcome(act: () => Promise<void>): Promise<Written> {
  if (failed) return { error: failed };
  try {
    await act();
    return {};
  } catch (thrown) {
    failed = errorReport(thrown instanceof AmalgamError ? thrown : destinationError(thrown, name));
    return { error: failed };
  }
}

const thread = {
  open: (files: FileSystemDirectoryHandle, path: string, bytes: number) =>
    outcome(async () => {
      name = path;
      handle = await openHandle(files, outputPathParts(path));
      sink = opfsSink(path, handle, bytes, () => {});
    }),
  async write(piece: Uint8Array<ArrayBuffer>): Promise<Written> {
    const written: Written = { ...(await outcome(() => sink.write(piece))), spent: piece.buffer };
    return Comlink.transfer(written, [piece.buffer]);
  },
  flush: () => outcome(() => sink.flush!()),
  close: () => outcome(() => sink.close()),
  /** Leaves the file as it is. */
  letGo: () => handle?.close(),
};

export type WritingThread = typeof thread;

exposeHere(thread);
