import { open } from 'node:fs/promises';
import type { ByteSource } from '../sources/byte-source';
import { spareArray } from '../sources/spare-arrays';
import type { Destination, FileSink } from '../write/destination';
import { destinationError } from '../write/destination-error';
import type { OutputFolder } from './output-folder';

/** The output folder of the command as a destination of the merge. */
export function diskDestination(output: OutputFolder): Destination {
  const files: { path: string; size: number }[] = [];
  const begin = async (path: string, bytes: number): Promise<FileSink> => {
    const file = { path, size: bytes };
    const put = async (piece: Uint8Array<ArrayBuffer>) => {
      file.size = await output.append(path, file.size, pieces(piece));
    };
    await put(new Uint8Array(0));
    return {
      write: put,
      async close() {
        files.push(file);
      },
    };
  };
  return {
    create: (path) => begin(path, 0),
    commit: () => output.commit(files),
    discard: () => output.discard(),
    requireRoom: (bytes) => output.checkRoom(bytes),
    async left(path) {
      const found = await output.find(path);
      return found && diskSource(found.location, found.size, path);
    },
    remains: {
      async readJournal() {
        const found = await output.find('journal');
        if (!found) return new Uint8Array(0);
        return diskSource(found.location, found.size, 'the journal').read(0, found.size);
      },
      async appendJournal(at, line) {
        await output.appendJournal(at, pieces(line));
      },
      async adopt(path, bytes) {
        files.push({ path, size: bytes });
      },
      reopen: begin,
      async keep() {
        output.keep();
      },
    },
  };
}

async function* pieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function diskSource(location: string, byteLength: number, what: string): ByteSource {
  return {
    byteLength,
    async read(begin, end) {
      const file = await open(location);
      try {
        const bytes = spareArray(end - begin);
        const { bytesRead } = await file.read(bytes, 0, bytes.length, begin);
        if (bytesRead !== bytes.length) throw destinationError(`it ends at byte ${begin + bytesRead}`, what);
        return bytes;
      } finally {
        await file.close();
      }
    },
  };
}
