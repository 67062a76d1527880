/** Token ids → the stream that enters block 0. */
import { DTYPE_CODE } from '../compute/kernels/decode';
import { embed } from '../compute/kernels/embed';
import { weightBytes } from '../formats/dtype';
import type { Chunk } from './chunk';
import type { Model } from './model';
import type { RowBuffer } from './operations';

/** Bytes of table rows on the device at a time. */
const TABLE_BYTES = 16 << 20;
/** Rows closer together than this are read at once. */
const GAP_BYTES = 64 << 10;
/** Bytes of rows kept on the host: a generation asks for the same few rows again and again. */
const KEPT_BYTES = 32 << 20;

/** Name of a chunk's stream in the workspace. */
export const streamName = (chunk: number) => `stream ${chunk}`;

export interface EmbeddingTable {
  /** Stored rows of these ids (ascending, no id twice), side by side. */
  rows(ids: readonly number[], signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>>;
}

/** The token embedding, read row by row: of a table that may be larger than the device only what a text uses. */
export function createEmbeddingTable({
  reader,
  architecture,
}: Pick<Model, 'reader' | 'architecture'>): EmbeddingTable {
  const { token, width } = architecture.embedding;
  const { name, weight } = reader.stored(token);
  const rowBytes = width * weightBytes(weight.dtype);
  const kept = new Map<number, Uint8Array>();
  return {
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

/** Fills the stream of every chunk: embedding, projection, positions, norm, as the architecture has them. */
export async function embedChunks(
  model: Model,
  chunks: readonly Chunk[],
  signal?: AbortSignal,
): Promise<void> {
  const { architecture, operations: op, workspace, reader, outer } = model;
  const { queue } = op;
  const { embedding, hidden } = architecture;
  const { dtype } = reader.stored(embedding.token).weight;
  const rowBytes = embedding.width * weightBytes(dtype);
  const ids = [...new Set(chunks.flatMap((chunk) => [...chunk.ids]))].sort((a, b) => a - b);
  const places = new Map(ids.map((id, i) => [id, i]));
  const streams = chunks.map(
    (chunk, k): RowBuffer => ({
      buffer: workspace.take(streamName(k), chunk.rows * hidden * 4),
      stride: hidden,
    }),
  );
  const embedded = embedding.projection
    ? chunks.map(
        (chunk, k): RowBuffer => ({
          buffer: workspace.take(`embedded ${k}`, chunk.rows * embedding.width * 4),
          stride: embedding.width,
        }),
      )
    : streams;
  const indices = chunks.map((chunk, k) => {
    const buffer = workspace.take(`ids ${k}`, chunk.rows * 4);
    queue.write(
      buffer,
      0,
      chunk.ids.map((id) => places.get(id)!),
    );
    return buffer;
  });

  const step = Math.max(1, Math.floor(TABLE_BYTES / rowBytes));
  for (let first = 0; first < ids.length; first += step) {
    const part = ids.slice(first, first + step);
    const bytes = await model.table.rows(part, signal);
    const table = workspace.take('table', bytes.byteLength);
    queue.write(table, 0, bytes);
    for (const [k, { rows }] of chunks.entries()) {
      queue.run(embed, {
        params: {
          rows,
          width: embedding.width,
          stride: embedding.width,
          dtype: DTYPE_CODE[dtype],
          first,
          count: part.length,
          add: 0,
          scale: embedding.scale,
        },
        buffers: { table, ids: indices[k]!, y: embedded[k]!.buffer },
        groups: rows,
        elements: rows,
      });
    }
    await queue.breathe();
  }

  for (const [k, chunk] of chunks.entries()) {
    const { rows } = chunk;
    if (outer.projectIn) op.linear(outer.projectIn, embedded[k]!, streams[k]!, 0, rows, op.nothing);
    if (embedding.positions && outer.positions) {
      const { offset, rows: count } = embedding.positions;
      queue.write(
        indices[k]!,
        0,
        chunk.positions.map((p) => p + offset),
      );
      queue.run(embed, {
        params: {
          rows,
          width: hidden,
          stride: hidden,
          dtype: DTYPE_CODE.F32,
          first: 0,
          count,
          add: 1,
          scale: 1,
        },
        buffers: { table: outer.positions, ids: indices[k]!, y: streams[k]!.buffer },
        groups: rows,
        elements: rows,
      });
    }
    if (outer.embeddingNorm) {
      const spare = { buffer: workspace.take('spare', rows * hidden * 4), stride: hidden };
      op.norm(outer.embeddingNorm, streams[k]!, spare, rows);
      workspace.swap(streamName(k), 'spare');
    }
  }
}
