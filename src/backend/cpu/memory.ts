/** The CPU engine's buffers: ranges of one WebAssembly memory, so that kernels in WebAssembly reach them without a copy. */

const PAGE = 65_536;
const MOST_PAGES = 65_536;
/** Addresses are multiples of this, and a buffer may be read and written up to its next multiple. */
const ALIGN = 64;

/** Where a buffer lies. */
export interface Range {
  readonly address: number;
  readonly byteLength: number;
}

/** One growing memory with a list of free ranges in the order of their addresses. Memory that is freed is used again. */
export class CpuMemory {
  /** Kernels may use the first page as scratch; it is never given away. */
  readonly memory = new WebAssembly.Memory({ initial: 1, maximum: MOST_PAGES });
  private readonly free: { begin: number; end: number }[] = [];

  /** A zeroed range of `byteLength` bytes. @throws RangeError when there is no memory left */
  take(byteLength: number): Range {
    const size = Math.ceil(byteLength / ALIGN) * ALIGN;
    let at = this.free.findIndex(({ begin, end }) => end - begin >= size);
    if (at < 0) at = this.grow(size);
    const range = this.free[at]!;
    const address = range.begin;
    range.begin += size;
    if (range.begin === range.end) this.free.splice(at, 1);
    new Uint8Array(this.memory.buffer, address, size).fill(0);
    return { address, byteLength };
  }

  give({ address, byteLength }: Range): void {
    const end = address + Math.ceil(byteLength / ALIGN) * ALIGN;
    const next = this.free.findIndex(({ begin }) => begin > address);
    const at = next < 0 ? this.free.length : next;
    this.free.splice(at, 0, { begin: address, end });
    this.join(at);
    this.join(at - 1);
  }

  /** The range's bytes. Growing the memory detaches earlier views, so nobody keeps one. */
  bytes({ address, byteLength }: Range): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.memory.buffer, address, byteLength);
  }

  /** Adds pages for `size` bytes to the free ranges; returns the index of the last range. @throws RangeError */
  private grow(size: number): number {
    const end = this.memory.buffer.byteLength;
    const last = this.free.at(-1);
    const there = last?.end === end ? end - last.begin : 0;
    this.memory.grow(Math.ceil((size - there) / PAGE));
    this.free.push({ begin: end, end: this.memory.buffer.byteLength });
    this.join(this.free.length - 2);
    return this.free.length - 1;
  }

  /** Joins free range `at` with the one behind it where they touch. */
  private join(at: number): void {
    const a = this.free[at];
    const b = this.free[at + 1];
    if (!a || !b || a.end !== b.begin) return;
    a.end = b.end;
    this.free.splice(at + 1, 1);
  }
}
