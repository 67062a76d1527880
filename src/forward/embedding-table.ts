/** The token embedding, read row by row: of a table that may be larger than the device only what a text uses. */
import { weightBytes } from '../formats/dtype';
import type { WeightReader } from './device-weights';

/** Bytes of table rows on the device at a time. */
export const TABLE_BYTES = 16 << 20;

/** Rows closer together than this are read at once. */
const GAP_BYTES = 64 << 10;

/** Bytes of rows cached on the host: a generation asks for the same few rows again and again. */
const KEPT_BYTES = 32 << 20;

export interface EmbeddingTable {
  /** Lets go of the rows on the host: they have changed. */
  forget(): void;
  /** Stored rows of these ids (ascending, no id twice), side by side. */
  rows(ids: readonly number[], signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>>;
}

/** @param tensor [·, width] */
export function createEmbeddingTable(reader: WeightReader, tensor: string, width: number): EmbeddingTable {
  const { name, weight } = reader.stored(tensor);
  const rowBytes = width * weightBytes(weight.dtype);
  const kept = new Map<number, Uint8Array>();
  return {
    forget: () => kept.clear(),
    async rows(ids, signal) {
      const out = new Uint8Array(ids.length * rowBytes);
      const put = (i: number, row: Uint8Array) => out.set(row, i * rowBytes);
      for (let i = 0; i < ids.length; ) {
        const row = kept.get(ids[i]!);
        if (row) {
          put(i++, row);
          continue;
        }
        let end = i + 1;
        const near = (j: number) =>
          (ids[j]! - ids[j - 1]!) * rowBytes <= GAP_BYTES && (ids[j]! - ids[i]!) * rowBytes < TABLE_BYTES;
        while (end < ids.length && !kept.has(ids[end]!) && near(end)) end++;
        const first = ids[i]!;
        const bytes = await reader.source.read(
          name,
          first * rowBytes,
          (ids[end - 1]! + 1) * rowBytes,
          signal,
        );
        for (; i < end; i++) {
          const at = (ids[i]! - first) * rowBytes;
          const found = bytes.slice(at, at + rowBytes);
          put(i, found);
          if ((kept.size + 1) * rowBytes <= KEPT_BYTES) kept.set(ids[i]!, found);
        }
      }
      return out;
    },
  };
}
