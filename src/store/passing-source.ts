/**
 * Files on the Hub that pass by: read by ranges and stored nowhere. What is read comes in chunks, of which some stay in memory
 * for who reads the same or the next bytes soon. Every chunk has its sha256 when it first comes, so that one that is read again is
 * seen to be the same; a file whose chunks come in order is seen to have the Hub's.
 */
import { AmalgamError } from '../errors';
import { hex } from '../formats/hashes';
import type { MergeReport } from '../reports/merge';
import { checkByteRange } from '../sources/byte-source';
import { throwIfCanceled } from '../sources/cancellation';
import type { ModelFile, ModelFolder } from '../sources/model-folder';
import { pieceDigest } from '../sources/piece-digest';
import { beginSha256, type Sha256 } from '../sources/sha256';
import { spareArray } from '../sources/spare-arrays';
import type { OpenSource } from './blobs';
import { checkAhead, fileTitle } from './cached-source';

/** Hosts count requests: as large as those of a download. */
export const CHUNK_BYTES = 16 * 2 ** 20;
/** Bytes of chunks in memory, beside those under way. */
export const HELD_BYTES = 512 * 2 ** 20;
/** Requests under way before one is begun ahead of its reader. */
const AT_ONCE = 3;

export interface PassingFiles {
  /** The file as a source, which fetches with the signal. */
  open(folder: ModelFolder, file: ModelFile, signal: AbortSignal): Promise<OpenSource>;
  passed(): Passed;
  /** @throws AmalgamError `IntegrityError` where a file that passed whole has another sha256 */
  requireSound(): Promise<void>;
}

type Passed = NonNullable<MergeReport['passed']>;

interface Chunk {
  bytes: Promise<Uint8Array<ArrayBuffer>>;
  /** Bytes of it that were read, each time. */
  read: number;
  isHere: boolean;
}

/** A hash of the chunks in their order, as far as they came. */
interface RunningHash {
  sha256: Sha256;
  next: number;
}

export function openPassing(chunkBytes = CHUNK_BYTES, heldBytes = HELD_BYTES): PassingFiles {
  const mostHeld = Math.max(2, Math.floor(heldBytes / chunkBytes));
  /** The chunk used last comes last. */
  const held = new Map<string, Chunk>();
  const passed: Passed = { bytes: 0, again: 0, checked: 0, files: 0 };
  /** Work on the hashes of the files. */
  const hashes = new Map<string, Promise<void>>();
  let underWay = 0;
  let fault: AmalgamError | undefined;

  const letGo = () => {
    const here = [...held].filter(([, { isHere }]) => isHere);
    // what was read to its end first
    const order = [...here.filter(isReadWhole), ...here.filter((one) => !isReadWhole(one))];
    for (const [key] of order.slice(0, Math.max(0, here.length - mostHeld))) held.delete(key);
  };
  const isReadWhole = ([, { read }]: [string, Chunk]) => read >= chunkBytes;

  const open: PassingFiles['open'] = async (folder, file, signal) => {
    const { byteLength, sha256 } = file;
    const title = fileTitle(folder, file);
    const count = Math.ceil(byteLength / chunkBytes);
    const keyOf = (index: number) => `${sha256} ${index}`;
    const digests = new Map<number, string>();
    let running: RunningHash | undefined = { sha256: await beginSha256(), next: 0 };
    const source = file.open();
    passed.files++;

    const check = async (index: number, bytes: Uint8Array<ArrayBuffer>) => {
      await checkAhead(folder, file, index * chunkBytes, bytes);
      const digest = hex(await pieceDigest(bytes));
      const before = digests.get(index);
      if (before !== undefined && before !== digest)
        throw altered(title, 'bytes that were read before came as others');
      digests.set(index, digest);
    };
    /** Takes the chunks that are here and follow; a gap that nobody holds any more ends it. */
    const hashOn = async () => {
      const hashing = running;
      while (hashing && hashing.next < count) {
        const chunk = held.get(keyOf(hashing.next));
        // one that came before its turn and is not held any more is not waited for
        if (!chunk && digests.has(hashing.next)) running = undefined;
        if (!chunk?.isHere) return;
        hashing.next++;
        hashing.sha256.update(await chunk.bytes);
      }
      if (!hashing) return;
      running = undefined;
      if (hashing.sha256.digest() === sha256) passed.checked++;
      else fault ??= altered(title, 'its sha256 is not the one that the hub lists');
    };
    const fetchChunk = async (index: number) => {
      const [begin, end] = [index * chunkBytes, Math.min((index + 1) * chunkBytes, byteLength)];
      const bytes = new Uint8Array(end - begin);
      let got = 0;
      underWay++;
      try {
        const sink = {
          take(part: Uint8Array) {
            bytes.set(part, got);
            got += part.length;
          },
          goBack() {
            got = 0;
            return begin;
          },
        };
        await source.stream!(begin, end, sink, signal);
      } finally {
        underWay--;
      }
      passed.bytes += bytes.length;
      if (digests.has(index)) passed.again += bytes.length;
      await check(index, bytes);
      return bytes;
    };
    const chunkOf = (index: number): Chunk => {
      const key = keyOf(index);
      const known = held.get(key);
      if (known) {
        held.delete(key);
        held.set(key, known);
        return known;
      }
      const chunk: Chunk = { bytes: fetchChunk(index), read: 0, isHere: false };
      held.set(key, chunk);
      chunk.bytes.then(
        () => {
          chunk.isHere = true;
          const hashed = (hashes.get(title) ?? Promise.resolve()).then(hashOn);
          hashes.set(title, hashed.then(letGo));
        },
        () => held.delete(key), // reported to who reads it
      );
      return chunk;
    };
    return {
      byteLength,
      async read(begin, end, given) {
        checkByteRange(begin, end, byteLength, title);
        const out = spareArray(end - begin);
        const first = Math.floor(begin / chunkBytes);
        const last = Math.ceil(end / chunkBytes);
        const wanted = Array.from({ length: last - first }, (_, i) => chunkOf(first + i));
        if (last < count && underWay < AT_ONCE) chunkOf(last).bytes.catch(() => undefined);
        // all of them are awaited below, one may fail before its turn
        for (const { bytes } of wanted) bytes.catch(() => undefined);
        for (const [i, chunk] of wanted.entries()) {
          const at = (first + i) * chunkBytes;
          const bytes = await chunk.bytes;
          const part = bytes.subarray(Math.max(0, begin - at), Math.min(bytes.length, end - at));
          out.set(part, Math.max(0, at - begin));
          chunk.read += part.length;
        }
        await hashes.get(title);
        throwIfCanceled(given);
        if (fault) throw fault;
        return out;
      },
      close() {
        for (let index = 0; index < count; index++) held.delete(keyOf(index));
      },
    };
  };
  return {
    open,
    passed: () => ({ ...passed }),
    async requireSound() {
      await Promise.all(hashes.values());
      if (fault) throw fault;
    },
  };
}

function altered(title: string, what: string): AmalgamError {
  return new AmalgamError(
    'IntegrityError',
    `${title} arrived altered: ${what}.`,
    'Start again. If it happens again, keep the inputs: what comes altered is then fetched again; or try another network.',
  );
}
