/** The weight files a job reads: downloaded where they are on the Hub, opened, closed together. */

import { AmalgamError } from '../errors';
import { displayName } from '../formats/names';
import { readingFiles } from '../inputs/row-reader';
import { inputName, type ReadTensor } from '../inputs/stored-tensor';
import { readingAhead } from '../sources/read-ahead';
import { sha256Of } from '../sources/sha256';
import { type HashedSource, hashedSource, type Leaf, TREE_PIECE_BYTES } from '../sources/tree-hash';
import { hasBlob, type OpenSource } from '../store/blobs';
import { bytesToDownload, openCached } from '../store/cached-source';
import type { PassingFiles } from '../store/passing-source';
import type { OpenModels } from './models';
import type { ProgressMeter } from './progress-meter';

export interface Inputs {
  /** By {@link inputName}. */
  source(name: string): OpenSource;
  /** The file as it is stored, by {@link inputName}: what is read from it is neither shared nor hashed. */
  stored(name: string): OpenSource;
  read: ReadTensor;
  /** Of files that pass by; absent where none does. */
  passing?: PassingFiles;
  close(): void;
}

/** The progress of a job that may have to download first. */
interface DownloadMeter extends Pick<ProgressMeter, 'advance' | 'timed'> {
  begin(phase: 'downloading', bytes: number, tensors: number): void;
}

type InputFiles = readonly { folder: string; file: string }[];

/** Bytes of these files that are on the Hub and not in the cache, and have to be there. */
export async function missingBytes(inputs: InputFiles, models: OpenModels): Promise<number> {
  return models.passing ? 0 : absentBytes(inputs, models);
}

/** Bytes of these files that are on the Hub and not in the cache. */
export async function absentBytes(inputs: InputFiles, models: OpenModels): Promise<number> {
  const missing = await Promise.all(
    inputs.map(({ folder, file }) => bytesToDownload(models.file(folder, file).file)),
  );
  return missing.reduce((sum, bytes) => sum + bytes, 0);
}

/**
 * Opens every weight file a job reads, with its progress: what has to be downloaded is a phase before the others, and the
 * reading is timed. Close them.
 *
 * @param plan with the bytes to download where they are known; else they are counted
 */
export async function openForReading(
  plan: { inputs: InputFiles; bytesToDownload?: number },
  models: OpenModels,
  meter: DownloadMeter,
  signal: AbortSignal,
): Promise<Inputs> {
  const planned = models.passing ? 0 : plan.bytesToDownload;
  const bytes = planned ?? (await missingBytes(plan.inputs, models));
  if (bytes > 0) meter.begin('downloading', bytes, 0);
  const inputs = await openInputs(plan, models, signal, (came, name) => meter.advance(came, name));
  return { ...inputs, read: (...what) => meter.timed('read', () => inputs.read(...what)) };
}

/**
 * Opens every weight file, downloading first what is on the Hub and not in the cache.
 *
 * @param onDownload bytes that came (negative when a damaged piece is fetched again), and the file
 * @param share what readers get instead of a source, where several share it
 * @throws what the store and the sources throw
 */
export async function openInputs(
  plan: { inputs: InputFiles },
  models: OpenModels,
  signal: AbortSignal,
  onDownload: (bytes: number, name: string) => void,
  share: (source: OpenSource, name: string) => OpenSource = (source) => source,
): Promise<Inputs> {
  const sources = new Map<string, OpenSource>();
  const stored = new Map<string, OpenSource>();
  const passing = models.passing && (await import('../store/passing-source')).openPassing();
  const close = () => {
    for (const source of sources.values()) source.close();
  };
  try {
    for (const input of plan.inputs) {
      const { folder, file } = models.file(input.folder, input.file);
      const name = inputName(input.folder, input.file);
      let before = 0; // the store counts what it has of this file
      const onBytes = (bytes: number) => {
        onDownload(bytes - before, name);
        before = bytes;
      };
      const passes = passing && file.sha256 !== undefined && !(await hasBlob(file.sha256));
      const source = await (passes
        ? passing.open(folder, file, signal)
        : openCached(folder, file, { signal, onBytes }));
      stored.set(name, source);
      sources.set(name, readingAhead(share(source, name)));
    }
  } catch (error) {
    close();
    throw error;
  }
  return {
    source: (name) => sources.get(name)!,
    stored: (name) => stored.get(name)!,
    read: readingFiles((name) => sources.get(name)!, signal),
    ...(passing && { passing }),
    close,
  };
}

// The weight files of a job whose report names them by their hashes: these are found while the files are read.

/** Hashes by {@link inputName}: the sha256 that the Hub has for a file (checked when it was downloaded), else its tree hash. */
export type InputHashes = ReadonlyMap<string, string>;

/** Tells of bytes that are read for a hash alone. */
interface HashMeter {
  begin(bytes: number): void;
  advance(bytes: number, name: string): void;
}

export interface HashedInputs extends Inputs {
  /** Hashes known without reading all of a file. */
  readonly known: InputHashes;
  /** Leaves of the other files, as far as they were read, by the number of their piece. @throws errors of the sources */
  pieces(): Promise<ReadonlyMap<string, ReadonlyMap<number, Promise<Leaf>>>>;
  /** Takes a leaf that another thread has found. @throws AmalgamError `RunChanged` where it is another one than here */
  take(name: string, piece: number, leaf: Leaf): Promise<void>;
  /** Hashes the pieces of files that nobody has read, all or those wanted. @throws errors of the sources, and Canceled */
  hashRest(meter: HashMeter, wants?: (name: string, piece: number) => boolean): Promise<void>;
  /** Hashes of all files; reads the rest of them now. @throws errors of the sources, and Canceled */
  hashAll(meter: HashMeter): Promise<InputHashes>;
}

/**
 * Opens every weight file, downloading first what is on the Hub and not in the cache. What the name of a file in another
 * program's cache says of its sha256 is believed once the file was hashed.
 * @param found hashes that the same job has found before
 * @throws IntegrityError, and what the store and the sources throw
 */
export async function openHashedInputs(
  plan: { inputs: readonly { folder: string; file: string; byteLength: number }[] },
  models: OpenModels,
  signal: AbortSignal,
  onDownload: (bytes: number, name: string) => void,
  meter: HashMeter,
  found: InputHashes = new Map(),
): Promise<HashedInputs> {
  const known = new Map<string, string>();
  const plain: { name: string; byteLength: number; claimed: string }[] = [];
  const unknown = new Set<string>();
  for (const { folder, file, byteLength } of plan.inputs) {
    const name = inputName(folder, file);
    const { sha256, claimedSha256: claimed } = models.file(folder, file).file;
    const hash = sha256 ?? found.get(name);
    if (hash !== undefined) known.set(name, hash);
    else if (claimed !== undefined) plain.push({ name, byteLength, claimed });
    else unknown.add(name);
  }
  const hashed = new Map<string, HashedSource>();
  const inputs = await openInputs(plan, models, signal, onDownload, (source, name) => {
    if (!unknown.has(name)) return source;
    const reading = hashedSource(source);
    hashed.set(name, reading);
    return { ...reading, close: () => source.close() };
  });
  try {
    if (plain.length > 0) meter.begin(plain.reduce((sum, { byteLength }) => sum + byteLength, 0));
    for (const { name, claimed } of plain) {
      const sha256 = await sha256Of(inputs.source(name), signal, (bytes) => meter.advance(bytes, name));
      if (sha256 !== claimed) throw otherBytes(name);
      known.set(name, sha256);
    }
  } catch (thrown) {
    inputs.close();
    throw thrown;
  }
  const hashRest: HashedInputs['hashRest'] = async ({ begin, advance }, wants = () => true) => {
    const left = await Promise.all(
      [...hashed].map(async ([name, source]) => {
        const isWanted = (piece: number) => wants(name, piece);
        const leaves = await source.leaves();
        return { name, source, isWanted, bytes: bytesLeft(source, leaves, isWanted) };
      }),
    );
    const bytes = left.reduce((sum, one) => sum + one.bytes, 0);
    if (bytes > 0) begin(bytes);
    for (const { name, source, isWanted } of left) {
      await source.hashRest(signal, (came) => advance(came, name), isWanted);
    }
  };
  return {
    ...inputs,
    known,
    take: async (name, piece, leaf) => hashed.get(name)?.take(piece, leaf),
    pieces: async () =>
      new Map(
        await Promise.all([...hashed].map(async ([name, source]) => [name, await source.leaves()] as const)),
      ),
    hashRest,
    async hashAll(hashing) {
      await hashRest(hashing);
      const all = new Map(known);
      for (const [name, source] of hashed) all.set(name, await source.tree(signal));
      return all;
    },
  };
}

function bytesLeft(
  { byteLength }: HashedSource,
  leaves: ReadonlyMap<number, unknown>,
  isWanted: (piece: number) => boolean,
): number {
  let bytes = 0;
  for (let begin = 0, piece = 0; begin < byteLength; begin += TREE_PIECE_BYTES, piece++) {
    if (isWanted(piece) && !leaves.has(piece)) bytes += Math.min(TREE_PIECE_BYTES, byteLength - begin);
  }
  return bytes;
}

function otherBytes(name: string): AmalgamError {
  return new AmalgamError(
    'IntegrityError',
    `${displayName(name)} in the Hugging Face cache has other bytes than its name there says: it was changed or damaged.`,
    'Remove the model from that cache (hf cache rm) and get it again.',
  );
}
