/** Token ids → the stream that enters block 0. */

import { DTYPE_CODE } from '../backend/kernels/decode';
import { embed } from '../backend/kernels/embed';
import { weightBytes } from '../formats/dtype';
import type { Chunk } from './chunk';
import { TABLE_BYTES } from './embedding-table';
import type { Model } from './model';
import type { RowBuffer } from './operations';

/** Name of a chunk's stream in the workspace. */
export const streamName = (chunk: number) => `stream ${chunk}`;

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
