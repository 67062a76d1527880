/** The weight files of a job whose report names them by their hashes: these are found while the files are read. */
import { AmalgamError } from '../errors';
import { displayName } from '../formats/names';
import { inputName } from '../inputs/input-name';
import { type HashedSource, hashedSource } from '../sources/hashed-source';
import { sha256Of } from '../sources/sha256';
import { type Leaf, TREE_PIECE_BYTES } from '../sources/tree-hash';
import type { OpenModels } from './models';
import { type Inputs, openInputs } from './weight-inputs';

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
  /** Leaves of the other files that were begun so far, by the number of their piece. */
  pieces(): ReadonlyMap<string, ReadonlyMap<number, Promise<Leaf>>>;
  /** Hashes of all files; reads the rest of them now. @throws errors of the sources, and Canceled */
  hashAll(meter: HashMeter): Promise<InputHashes>;
}

/** Bytes of pieces that stay in memory for all files together. */
const HELD_BYTES = 48 * 2 ** 20;
const LEAST_HELD = 4;

/**
 * Opens every weight file, downloading first what is on the Hub and not in the cache. What the name of a file in another
 * program's cache says of its sha256 is believed once the file was hashed.
 * @param known hashes that the same job has found before
 * @param isPlain whether unknown hashes are to be plain sha256, as versions of before wrote them
 * @throws IntegrityError, and what the store and the sources throw
 */
export async function openHashedInputs(
  plan: { inputs: readonly { folder: string; file: string; byteLength: number }[] },
  models: OpenModels,
  signal: AbortSignal,
  onDownload: (bytes: number, name: string) => void,
  meter: HashMeter,
  { known: found = new Map(), isPlain = false }: { known?: InputHashes; isPlain?: boolean } = {},
): Promise<HashedInputs> {
  const known = new Map<string, string>();
  const plain: { name: string; byteLength: number; claimed: string | undefined }[] = [];
  const unknown = new Set<string>();
  for (const { folder, file, byteLength } of plan.inputs) {
    const name = inputName(folder, file);
    const { sha256, claimedSha256: claimed } = models.file(folder, file).file;
    const hash = sha256 ?? found.get(name);
    if (hash !== undefined) known.set(name, hash);
    else if (claimed !== undefined || isPlain) plain.push({ name, byteLength, claimed });
    else unknown.add(name);
  }
  const held = Math.max(LEAST_HELD, Math.floor(HELD_BYTES / TREE_PIECE_BYTES / Math.max(1, unknown.size)));
  const hashed = new Map<string, HashedSource>();
  const inputs = await openInputs(plan, models, signal, onDownload, (source, name) => {
    if (!unknown.has(name)) return source;
    const reading = hashedSource(source, held);
    hashed.set(name, reading);
    return { byteLength: source.byteLength, read: reading.read, close: () => source.close() };
  });
  try {
    if (plain.length > 0) meter.begin(plain.reduce((sum, { byteLength }) => sum + byteLength, 0));
    for (const { name, claimed } of plain) {
      const sha256 = await sha256Of(inputs.source(name), signal, (bytes) => meter.advance(bytes, name));
      if (claimed !== undefined && sha256 !== claimed) throw otherBytes(name);
      known.set(name, sha256);
    }
  } catch (thrown) {
    inputs.close();
    throw thrown;
  }
  return {
    ...inputs,
    known,
    pieces: () => new Map([...hashed].map(([name, source]) => [name, source.leaves()])),
    async hashAll({ begin, advance }) {
      const left = [...hashed].map(([name, source]) => ({ name, source, bytes: bytesLeft(source) }));
      const bytes = left.reduce((sum, one) => sum + one.bytes, 0);
      if (bytes > 0) begin(bytes);
      const all = new Map(known);
      for (const { name, source } of left) {
        all.set(name, await source.tree(signal, (came) => advance(came, name)));
      }
      return all;
    },
  };
}

function bytesLeft({ byteLength, leaves }: HashedSource): number {
  return Math.max(0, byteLength - leaves().size * TREE_PIECE_BYTES);
}

function otherBytes(name: string): AmalgamError {
  return new AmalgamError(
    'IntegrityError',
    `${displayName(name)} in the Hugging Face cache has other bytes than its name there says: it was changed or damaged.`,
    'Remove the model from that cache (hf cache rm) and get it again.',
  );
}
