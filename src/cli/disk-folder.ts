import { fstatSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { AmalgamError } from '../errors';
import { checkByteRange } from '../sources/byte-range';
import type { ByteSource } from '../sources/byte-source';
import type { HubCommit, ModelFolder } from '../sources/model-folder';
import { spareArray } from '../sources/spare-arrays';
import type { ListedFile } from './folder-listing';
import { claimedSha256 } from './hub-cache';

/**
 * A model folder of this machine, read by one open descriptor a file: what was hashed is what is merged.
 * @param path the name a recipe uses for it
 * @param snapshot where the folder is from, when it is in the cache of another program
 */
export function diskFolder(
  path: string,
  files: Iterable<ListedFile>,
  snapshot?: HubCommit & { license?: string },
): ModelFolder {
  return {
    path,
    origin: { kind: 'disk', ...(snapshot ? { snapshot } : {}) },
    ...(snapshot?.license === undefined ? {} : { license: snapshot.license }),
    files: [...files].map((file) => {
      let source: ByteSource | undefined;
      return {
        path: file.path,
        byteLength: file.size,
        ...(snapshot && claimedSha256(file)),
        open: () => {
          source ??= steadySource(file, `${path}/${file.path}`);
          return source;
        },
      };
    }),
  };
}

/** Open until the process ends: Node warns of a handle that is left to the collector, as after a folder that cannot be opened. */
const held = new Set<FileHandle>();

/** Reads one descriptor, and finds at every read that the file is the one that was opened first. */
function steadySource({ location, size }: ListedFile, name: string): ByteSource {
  let opened: Promise<{ handle: FileHandle; identity: string }> | undefined;
  const changed = () =>
    new AmalgamError(
      'RunChanged',
      `${name} has changed while it was read.`,
      'Let whatever writes it finish, then start again.',
    );
  // asked at every read: a turn of the event loop costs more than the call
  const identify = ({ fd }: FileHandle) => {
    const { dev, ino, size: bytes, mtimeNs, ctimeNs } = fstatSync(fd, { bigint: true });
    return `${dev} ${ino} ${bytes} ${mtimeNs} ${ctimeNs}`;
  };
  const begin = async () => {
    const handle = await open(location);
    held.add(handle);
    if ((await handle.stat()).size !== size) throw changed();
    return { handle, identity: identify(handle) };
  };
  return {
    byteLength: size,
    async read(from, to, signal) {
      checkByteRange(from, to, size, name);
      opened ??= begin();
      const { handle, identity } = await opened;
      const bytes = spareArray(to - from);
      for (let done = 0; done < bytes.length; ) {
        signal?.throwIfAborted();
        const { bytesRead } = await handle.read(bytes, done, bytes.length - done, from + done);
        if (bytesRead === 0) throw changed();
        done += bytesRead;
      }
      if (identify(handle) !== identity) throw changed();
      return bytes;
    },
  };
}
