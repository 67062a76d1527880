import { fault } from '../errors';
import { counted } from '../formats/quantity';
import { giveBack, spareArray } from '../sources/spare-arrays';
import { beginLeaves, type LeafHasher, treeHash } from '../sources/tree-hash';
import type { Destination, FileSink, WrittenShard } from './destination';
import type { PartialShard } from './resume-point';
import type { FilePlan } from './shard-plan';

/** Small pieces are gathered to writes of this size: a picked folder is slow to take many little ones. */
const WRITE_BYTES = 8 * 2 ** 20;

/**
 * Writes one shard, or a GGUF file, front to back: the planned header, then the tensors' bytes in the planned order. It
 * keeps count of every tensor, so a shard is either exactly what its header says or an error.
 *
 * Close it with {@link finish} or {@link abort}. One call at a time: await each before the next.
 */
export class ShardWriter {
  readonly #plan: FilePlan;
  readonly #sink: FileSink;
  readonly #hasher: LeafHasher;
  /** Write buffer, filled up to `#buffered` bytes. */
  #buffer = spareArray(WRITE_BYTES);
  #buffered = 0;
  #written = 0;
  /** Index into the plan's tensors of the current one, and its bytes written so far. */
  #tensor = 0;
  #filled = 0;
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
    const writer = new ShardWriter(plan, await destination.create(plan.file, plan.byteLength), beginLeaves());
    await writer.#exclusively(() => writer.#put(plan.header));
    writer.#skipFullTensors();
    return writer;
  }

  /**
   * Goes on with a shard that an interrupted run left.
   * @param sink stands after the bytes of `partial`
   */
  static resume(plan: FilePlan, sink: FileSink, partial: PartialShard): ShardWriter {
    const writer = new ShardWriter(plan, sink, partial.hasher);
    writer.#written = partial.bytes;
    writer.#tensor = partial.tensors;
    writer.#skipFullTensors();
    return writer;
  }

  /**
   * Sends everything appended so far to the disk. Only between two tensors.
   * @returns the length of the file, and the tree hash of its bytes once they are on the disk: more may be appended
   *   meanwhile. It rejects with the destination's errors.
   * @throws Internal in the middle of a tensor; the destination's errors as they are.
   */
  async safePoint(): Promise<{ bytes: number; durable: Promise<string> }> {
    return this.#exclusively(async () => {
      if (this.#filled > 0) throw fault(`${this.#plan.file} stands in the middle of a tensor.`);
      await this.#flush();
      const leaves = this.#hasher.leaves();
      const durable = Promise.all([leaves, this.#sink.flush?.()]).then(([all]) => treeHash(all));
      durable.catch(() => {}); // reported to who awaits it
      return { bytes: this.#written, durable };
    });
  }

  /**
   * Appends bytes of the current tensor: the first in the plan that is not yet full. The array may be reused once the
   * promise resolves.
   * @throws Internal when the bytes reach beyond the tensor's planned length; the destination's errors as they are.
   */
  async append(bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    await this.#exclusively(async () => {
      if (bytes.byteLength === 0) return;
      const tensor = this.#plan.tensors[this.#tensor];
      if (!tensor) throw fault(`${this.#plan.file} is full, yet ${bytes.byteLength} more bytes came.`);
      if (this.#filled + bytes.byteLength > tensor.byteLength) {
        const came = this.#filled + bytes.byteLength;
        throw fault(`${tensor.name} has ${counted(tensor.byteLength, 'byte')} by plan, but ${came} came.`);
      }
      await this.#put(bytes);
      this.#filled += bytes.byteLength;
      this.#skipFullTensors();
    });
  }

  /**
   * Writes the rest of the buffer and closes the file.
   * @throws Internal when a tensor has fewer bytes than planned; errors of the destination unchanged.
   */
  async finish(): Promise<WrittenShard> {
    return this.#exclusively(async () => {
      const missing = this.#plan.tensors[this.#tensor];
      if (missing) {
        throw fault(
          `${missing.name} has ${counted(missing.byteLength, 'byte')} by plan, but only ${this.#filled} came.`,
        );
      }
      await this.#flush();
      const leaves = await this.#hasher.leaves();
      await this.#sink.close(leaves);
      this.#end();
      return { file: this.#plan.file, bytes: this.#written, hash: await treeHash(leaves) };
    });
  }

  /** Writes no more. The unfinished file goes when its destination is discarded. Safe at any time, and twice. */
  abort(): void {
    this.#end();
  }

  #end(): void {
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
      this.#end();
      throw thrown;
    }
  }

  async #put(bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    for (let begin = 0; begin < bytes.byteLength; ) {
      const part = bytes.subarray(begin, begin + WRITE_BYTES - this.#buffered);
      this.#buffer.set(part, this.#buffered);
      this.#buffered += part.byteLength;
      begin += part.byteLength;
      if (this.#buffered === WRITE_BYTES) await this.#flush();
    }
  }

  async #flush(): Promise<void> {
    if (this.#buffered === 0) return;
    const piece = this.#buffer.subarray(0, this.#buffered);
    await this.#hasher.update(piece);
    this.#written += this.#buffered;
    this.#buffered = 0;
    await this.#sink.write(piece);
    giveBack(piece.buffer);
    this.#buffer = spareArray(WRITE_BYTES);
  }

  #skipFullTensors(): void {
    for (;;) {
      const tensor = this.#plan.tensors[this.#tensor];
      if (!tensor || this.#filled < tensor.byteLength) return;
      this.#tensor++;
      this.#filled = 0;
    }
  }
}
