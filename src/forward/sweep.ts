/**
 * One sweep: many sequences through one model, layer by layer, so that each layer's weights are read once however long
 * the text is. It goes in steps, so that sweeps of several models can go side by side and share what they read.
 */
import type { BackendBuffer } from '../backend/backend';
import { AmalgamError } from '../errors';
import { partOf } from '../models/architecture';
import type { LinearSite } from '../models/claim';
import { longAfter } from '../models/rope';
import { throwIfCancelled } from '../sources/cancel';
import { runBlock } from './block';
import { type Chunk, checkSequences, cutChunks, type Sequence } from './chunk';
import { embedChunks, perLayerRows, streamName } from './embedding';
import { type Output, openHeadPass, type Wanted, wantedRows } from './head';
import { type KvCache, widestState } from './kv-cache';
import type { Model, ModelLayer } from './model';
import type { Queue } from './queue';

/** Rows on the device while a tap looks at them: f32, row r from r · stride on, `width` wide. */
export interface TappedRows {
  buffer: BackendBuffer;
  rows: number;
  width: number;
  stride: number;
  /** Which sequence and which of its ids each stretch of rows is. */
  pieces: Chunk['pieces'];
  /** Enqueue dispatches here. */
  queue: Queue;
}

/** Looks at what passes. The rows are gone when the promise is settled. */
export interface Taps {
  /** The residual stream: layer 0 as it enters block 0, layer i after block i − 1. */
  residual?(layer: number, rows: TappedRows): void | Promise<void>;
  /** The input of the linear layers of a site, with the stored names of their weights. */
  site?(layer: number, site: LinearSite, weights: readonly string[], rows: TappedRows): void | Promise<void>;
  /** The stream behind the last block after the final norm, or the stream itself where there is none. */
  normed?(rows: TappedRows): void | Promise<void>;
}

/** Where a sweep begins when it is not at the embedding. */
export interface Entry {
  /** The first block that is run. */
  layer: number;
  /** The stream as it enters that block, [rows · hidden] per chunk, in the order a `residual` tap saw them. */
  streams: readonly Float32Array<ArrayBuffer>[];
}

export interface SweepRequest {
  sequences: readonly Sequence[];
  output: Output;
  cache?: KvCache;
  taps?: Taps;
  /** Begins in the middle, with what an earlier sweep of the same sequences saw there. */
  enter?: Entry;
  /** Most rows that go through a block at once. */
  chunkRows: number;
  signal?: AbortSignal;
}

export interface SweepResult {
  /** Per sequence the losses of ids[from …] in nats (output `loss`). */
  losses: Float64Array[];
  /** Per sequence the logits of the rows from `from` on, [rows, vocab] (output `logits`). */
  logits: Float32Array[];
}

export interface Sweep {
  readonly steps: number;
  readonly stepsDone: number;
  /** Tokens the sweep runs. */
  readonly tokens: number;
  /**
   * Does the next step: the embedding, a block, or a tile of the head. False when there is none left.
   * @throws AmalgamError `Cancelled`, and what reading weights and the engine throw
   */
  step(): Promise<boolean>;
  /**
   * Waits for the device and returns what was asked for.
   * @throws AmalgamError `NonFinite` naming the layer where NaN or infinity first appeared
   */
  result(): Promise<SweepResult>;
  /** Lets go of layers that do not stay; call it however the sweep ends. */
  close(): void;
}

/** The keys of a whole sequence lie in one buffer. @throws AmalgamError `ContextTooLong` */
function checkKeys({ operations, architecture }: Model, chunks: readonly Chunk[], cache?: KvCache): void {
  const { adapter, maxBufferBytes } = operations.queue.engine;
  const widest = widestState(architecture);
  const bytes = cache ? 0 : Math.max(0, ...chunks.map((chunk) => chunk.keyRows * widest * 4));
  if (bytes <= maxBufferBytes) return;
  throw new AmalgamError(
    'ContextTooLong',
    `The keys of a text this long take ${bytes} bytes a layer; ${adapter} allows ${maxBufferBytes}.`,
    'Use a shorter text, or a smaller window.',
  );
}

/** @throws AmalgamError `TextEmpty`, `TokenOutOfRange`, `ContextTooLong` */
export function startSweep(model: Model, request: SweepRequest): Sweep {
  const { architecture, operations: op, workspace, layers, outer } = model;
  const { hidden } = architecture;
  const { queue } = op;
  const { sequences, output, cache, taps, enter, signal } = request;
  const first = enter?.layer ?? 0;
  checkSequences(sequences, architecture, cache);
  const chunks = cutChunks(sequences, request.chunkRows, cache?.capacity, longSequences(architecture));
  checkKeys(model, chunks, cache);
  const wanted = chunks.map((chunk) => wantedRows(chunk, sequences, output));
  const heads = chunks.map((chunk, k) => openHeadPass(model, chunk, k, wanted[k]!, output));
  // without output the last block is the end
  const used = output === 'none' ? architecture.blocks.length : layers.count;
  const counts = workspace.take('counts', (architecture.blocks.length + 1) * 4);
  let done = 0;

  const tapped = (chunk: Chunk, buffer: BackendBuffer, width: number, stride: number): TappedRows => ({
    buffer,
    rows: chunk.rows,
    width,
    stride,
    pieces: chunk.pieces,
    queue,
  });
  /** The stream of every chunk is complete up to `layer`: count what is not finite, and let the taps look. */
  const arrive = async (layer: number) => {
    for (const [k, chunk] of chunks.entries()) {
      const elements = chunk.rows * hidden;
      const stream = workspace.take(streamName(k), elements * 4);
      op.countNonFinite(stream, elements, counts, layer);
      await taps?.residual?.(layer, tapped(chunk, stream, hidden, hidden));
    }
  };

  const beginStep = async () => {
    queue.engine.clear(counts);
    await model.ready(signal);
    for (const [k, chunk] of chunks.entries()) {
      queue.write(placesOf(k, chunk), 0, chunk.places);
      queue.write(groupsOf(k, chunk), 0, chunk.groups);
      queue.write(piecesOf(k, chunk), 0, chunk.runs);
    }
    // a stream that is given still needs what the layers take of the tokens themselves
    if (!enter || architecture.embedding.perLayer) await embedChunks(model, chunks, signal);
    if (enter) for (const [k, chunk] of chunks.entries()) writeStream(k, chunk, enter.streams[k]);
    await arrive(first);
  };
  const writeStream = (k: number, chunk: Chunk, stream: Float32Array<ArrayBuffer> | undefined) => {
    const elements = chunk.rows * hidden;
    if (stream?.length !== elements) {
      throw new AmalgamError(
        'Internal',
        'A sweep begins with the stream of other sequences.',
        'Please report this.',
      );
    }
    queue.write(workspace.take(streamName(k), elements * 4), 0, stream);
  };
  /** The final norm of every chunk, for the tap. */
  const norm = async () => {
    if (!taps?.normed) return;
    for (const [k, chunk] of chunks.entries()) {
      const bytes = chunk.rows * hidden * 4;
      const stream = { buffer: workspace.take(streamName(k), bytes), stride: hidden };
      const normed = { buffer: workspace.take('normed stream', bytes), stride: hidden };
      if (outer.finalNorm) op.norm(outer.finalNorm, stream, normed, chunk.rows);
      const { buffer } = outer.finalNorm ? normed : stream;
      await taps.normed(tapped(chunk, buffer, hidden, hidden));
    }
  };
  const placesOf = (k: number, chunk: Chunk) => workspace.take(`places ${k}`, chunk.places.byteLength);
  const piecesOf = (k: number, chunk: Chunk) => workspace.take(`pieces ${k}`, chunk.runs.byteLength);
  const groupsOf = (k: number, chunk: Chunk) => workspace.take(`groups ${k}`, chunk.groups.byteLength);

  const blockStep = async (layer: Extract<ModelLayer, { kind: 'block' }>) => {
    const { index } = layer.block;
    const kept = cache?.layers[index];
    for (const [k, chunk] of chunks.entries()) {
      await runBlock(layer, {
        operations: op,
        workspace,
        hidden,
        chunk,
        stream: streamName(k),
        places: placesOf(k, chunk),
        groups: groupsOf(k, chunk),
        pieces: piecesOf(k, chunk),
        ...perLayerRows(model, k, chunk.rows),
        state: ({ name, per, width }) =>
          kept?.get(name)?.buffer ??
          workspace.take(name, (per === 'position' ? chunk.keyRows : chunk.pieces.length) * width * 4),
        ...(taps?.site && {
          onSite: (site, weights, rows) =>
            taps.site!(
              index,
              site,
              weights.map((w) => w.name),
              tapped(chunk, rows.buffer, weights[0]!.inputs, rows.stride),
            ),
        }),
      });
      await queue.breathe();
    }
    await arrive(index + 1);
    if (index + 1 < architecture.blocks.length) return;
    await norm();
    for (const head of heads) head.begin();
  };

  return {
    steps: used - first + 1,
    get stepsDone() {
      return done;
    },
    tokens: chunks.reduce((sum, chunk) => sum + chunk.rows, 0),
    async step() {
      if (done > used - first) return false;
      throwIfCancelled(signal);
      if (done === 0) await beginStep();
      else {
        const index = first + done - 1;
        const layer = await layers.take(index, signal);
        if (layer.kind === 'block') await blockStep(layer);
        else for (const head of heads) await head.tile(layer);
        layers.release(index);
      }
      await queue.breathe();
      done++;
      return done <= used - first;
    },
    async result() {
      const collected = heads.map((head) => head.losses());
      const ranges = output === 'loss' ? collected.flatMap((c) => c.ranges) : [];
      const [counted, ...bytes] = await queue.read([
        { buffer: counts, byteLength: (architecture.blocks.length + 1) * 4 },
        ...ranges,
      ]);
      refuseNonFinite(new Uint32Array(counted!.buffer));
      const result: SweepResult = { losses: [], logits: [] };
      if (output === 'loss') {
        const losses = collected.map((c) => c.fold(bytes.splice(0, c.ranges.length)));
        result.losses = sequences.map(({ ids, from = ids.length }) => new Float64Array(ids.length - from));
        scatter(wanted, (k, i, s, at) => {
          result.losses[s]![at] = finite(losses[k]![i]!);
        });
      } else if (output === 'logits') {
        const { vocab } = architecture;
        result.logits = sequences.map(
          ({ ids, from = ids.length }) => new Float32Array((ids.length - from) * vocab),
        );
        scatter(wanted, (k, i, s, at) => {
          const row = heads[k]!.logits.subarray(i * vocab, (i + 1) * vocab);
          finite(row.reduce((a, b) => a + b, 0));
          result.logits[s]!.set(row, at * vocab);
        });
      }
      return result;
    },
    close: () => layers.rest(),
  };
}

/** The length above which sequences take longrope's long factors, in models that have them. */
function longSequences({ blocks }: Model['architecture']): number | undefined {
  const limits = blocks.flatMap((block) => {
    const rope = partOf(block, 'attention')?.rope;
    return (rope && longAfter(rope)) ?? [];
  });
  return limits.length > 0 ? Math.min(...limits) : undefined;
}

function scatter(
  wanted: readonly Wanted[],
  put: (chunk: number, index: number, sequence: number, at: number) => void,
): void {
  for (const [k, { sequence, at }] of wanted.entries()) {
    for (let i = 0; i < at.length; i++) put(k, i, sequence[i]!, at[i]!);
  }
}

function refuseNonFinite(counts: Uint32Array): void {
  const layer = counts.findIndex((n) => n > 0);
  if (layer < 0) return;
  throw nonFinite(layer === 0 ? 'after the embedding' : `after layer ${layer - 1}`, counts[layer]!);
}

function finite(value: number): number {
  if (Number.isFinite(value)) return value;
  throw nonFinite('in the logits', 1);
}

function nonFinite(where: string, count: number): AmalgamError {
  return new AmalgamError(
    'NonFinite',
    `NaN or infinite values first appear ${where} (${count} of them).`,
    'The weights there are damaged or a merge overflowed: look at the merge report for that layer.',
  );
}
