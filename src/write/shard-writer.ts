import { fault } from '../errors';
import { counted } from '../formats/quantity';
import { pieceDigest } from '../sources/piece-digest';
import { giveBack, spareArray, spareCopy } from '../sources/spare-arrays';
import {
  beginLeaves,
  type HashedPart,
  type Leaf,
  type LeafHasher,
  TREE_PIECE_BYTES,
  treeHash,
} from '../sources/tree-hash';
import type { Destination, FileSink, WrittenShard } from './destination';
import type { PartialShard } from './resume-point';
import type { FilePlan } from './shard-plan';

/** A part of a file that is written: where it ends, and what is known of its hashes. */
export interface FilePart extends HashedPart {
  end: number;
}

/**
 * Gathers the bytes of a file from `at` on into pieces of its tree hash, hashes those that are whole, and writes them.
 * @param write gets a piece and its place; it may take the piece's memory
 */
export function partWriter(at: number, write: FileSink['write']) {
  const leaves: Leaf[] = [];
  let head: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  let piece = spareArray(TREE_PIECE_BYTES);
  /** Bytes [begun, end) of the file are in the piece, each at its place. */
  let begun = at;
  let end = at;
  const flush = async () => {
    if (begun === end) return;
    const bytes = piece.subarray(begun % TREE_PIECE_BYTES, ((end - 1) % TREE_PIECE_BYTES) + 1);
    const isWhole = bytes.byteLength === TREE_PIECE_BYTES;
    if (isWhole) leaves.push(await pieceDigest(bytes));
    else if (end % TREE_PIECE_BYTES === 0) head = spareCopy(bytes);
    await write(bytes, begun);
    if (piece.byteLength === 0) piece = spareArray(TREE_PIECE_BYTES);
    begun = end;
  };
  return {
    async append(bytes: Uint8Array): Promise<void> {
      for (let from = 0; from < bytes.byteLength; ) {
        const place = end % TREE_PIECE_BYTES;
        const part = bytes.subarray(from, from + TREE_PIECE_BYTES - place);
        piece.set(part, place);
        from += part.byteLength;
        end += part.byteLength;
        if (end % TREE_PIECE_BYTES === 0) await flush();
      }
    },
    /** Writes the rest. */
    async finish(): Promise<FilePart> {
      const from = begun % TREE_PIECE_BYTES;
      const tail = spareCopy(piece.subarray(from, from + end - begun));
      await flush();
      giveBack(piece.buffer);
      return { head, leaves, tail, end };
    },
  };
}

function behind(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}

/** Parts that follow each other as one. */
export async function joinParts([first, ...others]: readonly FilePart[]): Promise<FilePart> {
  const joined = { ...first!, leaves: [...first!.leaves] };
  for (const { head, leaves, tail, end } of others) {
    const between = behind(joined.tail, head);
    const endsPiece = head.length > 0 || leaves.length > 0;
    if (between.length === TREE_PIECE_BYTES) joined.leaves.push(await pieceDigest(between));
    else if (endsPiece && between.length > 0) joined.head = between;
    joined.leaves.push(...leaves);
    joined.tail = endsPiece ? tail : behind(between, tail);
    joined.end = end;
  }
  return joined;
}

/**
 * Keeps count of one shard, or a GGUF file, while its tensors are written at their places, by this thread or others: it is
 * either exactly what its header says or an error.
 *
 * Close it with {@link finish} or {@link abort}. One call at a time, `write` aside: await each before the next.
 */
export class ShardWriter {
  readonly #plan: FilePlan;
  readonly #sink: FileSink;
  readonly #hasher: LeafHasher;
  /** The first bytes of the file, and so many of its tensors, are written and counted. */
  #written = 0;
  #tensors = 0;
  #state: 'open' | 'busy' | 'closed' = 'open';

  private constructor(plan: FilePlan, sink: FileSink, hasher: LeafHasher) {
    this.#plan = plan;
    this.#sink = sink;
    this.#hasher = hasher;
  }

  /**
   * Creates the file and writes the header.
   * @throws Internal when the plan's lengths do not add up, DestinationFailed or StorageFull from the destination.
   */
  static async open(destination: Destination, plan: FilePlan): Promise<ShardWriter> {
    const planned = plan.tensors.reduce((sum, { byteLength }) => sum + byteLength, plan.header.byteLength);
    if (planned !== plan.byteLength) {
      throw fault(
        `The plan of ${plan.file} says ${counted(plan.byteLength, 'byte')}, but its parts have ${planned}.`,
      );
    }
    const writer = new ShardWriter(plan, await destination.create(plan.file), beginLeaves());
    await writer.#exclusively(async () => {
      await writer.#hasher.update(plan.header);
      await writer.#sink.write(plan.header.slice(), 0);
      writer.#written = plan.header.byteLength;
    });
    return writer;
  }

  /**
   * Goes on with a shard that an interrupted run left.
   * @param sink of the file with the bytes of `partial`
   */
  static resume(plan: FilePlan, sink: FileSink, partial: PartialShard): ShardWriter {
    const writer = new ShardWriter(plan, sink, partial.hasher);
    writer.#written = partial.bytes;
    writer.#tensors = partial.tensors;
    return writer;
  }

  /** By what other threads open the file. */
  get place() {
    return this.#sink.place;
  }

  /** Where the next part begins. */
  get written(): number {
    return this.#written;
  }

  /** Writes bytes of a tensor at their place. @throws the destination's errors as they are, Internal once it is closed */
  async write(bytes: Uint8Array<ArrayBuffer>, at: number): Promise<void> {
    if (this.#state === 'closed') throw fault(`The shard ${this.#plan.file} is closed.`);
    await this.#sink.write(bytes, at);
  }

  /**
   * Counts the next tensors, which are written.
   * @throws Internal when their part of the file is not what the plan says
   */
  async take(part: FilePart, tensors: number): Promise<void> {
    await this.#exclusively(async () => {
      const next = this.#plan.tensors.slice(this.#tensors, this.#tensors + tensors);
      const planned = next.reduce((sum, { byteLength }) => sum + byteLength, this.#written);
      if (next.length < tensors) throw fault(`${this.#plan.file} is full, yet more tensors came.`);
      if (part.end !== planned) {
        const [begin, came] = [this.#written, part.end - this.#written];
        const names = next.map(({ name }) => name).join(', ');
        throw fault(`${names} have ${counted(planned - begin, 'byte')} by plan, but ${came} came.`);
      }
      await this.#hasher.take(part);
      this.#written = part.end;
      this.#tensors += tensors;
    });
  }

  /**
   * Sends everything written so far to the disk.
   * @returns how many bytes of the file are counted, and their tree hash once they are on the disk: more may be written
   *   meanwhile. It rejects with the destination's errors.
   */
  async safePoint(): Promise<{ bytes: number; durable: Promise<string> }> {
    return this.#exclusively(async () => {
      const leaves = this.#hasher.leaves();
      const durable = Promise.all([leaves, this.#sink.flush?.()]).then(([all]) => treeHash(all));
      durable.catch(() => {}); // reported to who awaits it
      return { bytes: this.#written, durable };
    });
  }

  /**
   * Closes the file.
   * @throws Internal when tensors are missing; errors of the destination unchanged.
   */
  async finish(): Promise<WrittenShard> {
    return this.#exclusively(async () => {
      // one without bytes has nothing to come
      const missing = this.#plan.tensors.slice(this.#tensors).find(({ byteLength }) => byteLength > 0);
      if (missing) throw fault(`${missing.name} has not come.`);
      const leaves = await this.#hasher.leaves();
      await this.#sink.close(leaves, this.#written);
      this.#state = 'closed';
      return { file: this.#plan.file, bytes: this.#written, hash: await treeHash(leaves) };
    });
  }

  /** Writes no more. The unfinished file goes when its destination is discarded. Safe at any time, and twice. */
  abort(): void {
    this.#state = 'closed';
  }

  /** Rejects calls after a failure, because the content of the file is then unknown. */
  async #exclusively<T>(act: () => Promise<T>): Promise<T> {
    if (this.#state !== 'open') throw fault(`The shard ${this.#plan.file} is ${this.#state}.`);
    this.#state = 'busy';
    try {
      const result = await act();
      // `abort` may have come in between; then the shard stays closed.
      if (this.#state === 'busy') this.#state = 'open';
      return result;
    } catch (thrown) {
      this.abort();
      throw thrown;
    }
  }
}
