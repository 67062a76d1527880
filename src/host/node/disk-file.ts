import { createReadStream, statSync } from 'node:fs';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';

/** A file on the disk, of any size: `openAsBlob` of Node 20 takes one of 4 GiB or more for a shorter one. */
export class DiskFile extends File {
  readonly #path: string;
  readonly #begin: number;
  readonly #size: number;

  constructor(path: string, name: string, begin = 0, size = statSync(path).size) {
    super([], name);
    [this.#path, this.#begin, this.#size] = [path, begin, size];
  }

  override get size() {
    return this.#size;
  }

  override slice(begin = 0, end = this.#size) {
    const size = Math.max(0, Math.min(end, this.#size) - begin);
    return new DiskFile(this.#path, this.name, this.#begin + begin, size);
  }

  override stream() {
    const place = { start: this.#begin, end: this.#begin + this.#size - 1 };
    const file = this.#size === 0 ? Readable.from([]) : createReadStream(this.#path, place);
    return Readable.toWeb(file) as ReadableStream<Uint8Array<ArrayBuffer>>;
  }

  override async arrayBuffer() {
    return new Uint8Array(await buffer(this.stream())).buffer;
  }

  override async text() {
    return new TextDecoder().decode(await buffer(this.stream()));
  }
}
