/** Token ids → the stream that enters block 0. */

import { DTYPE_CODE } from '../backend/kernels/encoding';
import { embed } from '../backend/kernels/rows';
import { weightBytes } from '../formats/dtype';
import type { PerLayerInputs } from '../models/architecture';
import type { Chunk } from './chunk';
import { type EmbeddingTable, TABLE_BYTES } from './embedding-table';
import type { Model } from './model';
import type { RowBuffer } from './operations';

/** Name of a chunk's stream in the workspace. */
export const streamName = (chunk: number) => `stream ${chunk}`;

const stride = ({ layers, width }: PerLayerInputs) => layers * width;

/** Rows of the layers' shares of a chunk, [rows, layers · width]; nothing for models without. */
export function perLayerRows(
  { architecture, workspace }: Model,
  chunk: number,
  rows: number,
): { perLayer?: RowBuffer } {
  const { perLayer } = architecture.embedding;
  if (!perLayer) return {};
  const width = stride(perLayer);
  return { perLayer: { buffer: workspace.take(`per layer ${chunk}`, rows * width * 4), stride: width } };
}

/** Buffer of the embedded rows that entered the first block, for parts that read them again. */
export function embeddedRows({ architecture, workspace }: Model, chunk: number, rows: number): RowBuffer {
  const { hidden } = architecture;
  return { buffer: workspace.take(`embedded stream ${chunk}`, rows * hidden * 4), stride: hidden };
}

/** Copies the stream of a chunk for parts that read it again. */
export function keepEmbedded(model: Model, chunk: number, rows: number): void {
  const { operations: op, workspace } = model;
  const { buffer, stride: width } = embeddedRows(model, chunk, rows);
  op.queue.engine.clear(buffer);
  op.add(workspace.take(streamName(chunk), rows * width * 4), buffer, 1, rows * width);
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

  /** Rows of a table, times a factor, into or on top of rows. */
  const look = async (
    table: EmbeddingTable,
    tensor: string,
    width: number,
    scale: number,
    to: readonly RowBuffer[],
    add: boolean,
  ) => {
    const { dtype } = reader.stored(tensor).weight;
    const step = Math.max(1, Math.floor(TABLE_BYTES / (width * weightBytes(dtype))));
    for (let first = 0; first < ids.length; first += step) {
      const part = ids.slice(first, first + step);
      const bytes = await table.rows(part, signal);
      const buffer = workspace.take('table', bytes.byteLength);
      queue.write(buffer, 0, bytes);
      for (const [k, { rows }] of chunks.entries()) {
        queue.run(embed, {
          params: {
            rows,
            width,
            stride: to[k]!.stride,
            dtype: DTYPE_CODE[dtype],
            first,
            count: part.length,
            add: add ? 1 : 0,
            scale,
          },
          buffers: { table: buffer, ids: indices[k]!, y: to[k]!.buffer },
        });
      }
      await queue.breathe();
    }
  };
  await look(model.table, embedding.token, embedding.width, embedding.scale, embedded, false);

  const { perLayer } = embedding;
  if (perLayer && outer.perLayer && model.perLayerTable) {
    const { width, layers, table, scale } = perLayer;
    const shares = chunks.map((chunk, k) => perLayerRows(model, k, chunk.rows).perLayer!);
    for (const [k, { rows }] of chunks.entries()) {
      const projected = {
        buffer: workspace.take('per layer projected', rows * stride(perLayer) * 4),
        stride: stride(perLayer),
      };
      await op.linear([outer.perLayer.projection], streams[k]!, projected, rows, op.nothing);
      op.norm(outer.perLayer.norm, projected, shares[k]!, rows, { begin: 0, groups: layers, stride: width });
    }
    await look(model.perLayerTable, table, stride(perLayer), scale, shares, true);
  }

  for (const [k, chunk] of chunks.entries()) {
    const { rows } = chunk;
    if (outer.projectIn) await op.linear([outer.projectIn], embedded[k]!, streams[k]!, rows, op.nothing);
    if (embedding.positions && outer.positions) {
      const { offset, rows: table, types } = embedding.positions;
      queue.write(
        indices[k]!,
        0,
        chunk.positions.map((p, i) => p + offset + table * chunk.types[i]!),
      );
      queue.run(embed, {
        params: {
          rows,
          width: hidden,
          stride: hidden,
          dtype: DTYPE_CODE.F32,
          first: 0,
          count: table * (types?.rows ?? 1),
          add: 1,
          scale: 1,
        },
        buffers: { table: outer.positions, ids: indices[k]!, y: streams[k]!.buffer },
      });
    }
    if (outer.embeddingNorm) {
      const spare = { buffer: workspace.take('spare', rows * hidden * 4), stride: hidden };
      op.norm(outer.embeddingNorm, streams[k]!, spare, rows);
      workspace.swap(streamName(k), 'spare');
    }
  }
}
