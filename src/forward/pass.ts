/**
 * One pass: many sequences through one model, layer by layer, so that each layer's weights are read once however long
 * the text is. It goes in steps, so that passes of several models can go side by side and share what they read.
 */

import type { BackendBuffer } from '../backend/backend';
import type { LogitSums, Scores } from '../backend/sampler';
import { AmalgamError } from '../errors';
import { counted } from '../formats/quantity';
import { partOf } from '../models/architecture';
import type { LinearSite } from '../models/claim';
import { longAfter } from '../models/rope';
import { throwIfCanceled } from '../sources/cancellation';
import { runBlock } from './block';
import { type Chunk, checkSequences, cutChunks, type Sequence } from './chunk';
import { embedChunks, embeddedRows, keepEmbedded, perLayerRows, streamName } from './embedding';
import { type Drawn, type Draws, type Output, openHeadPass, type Wanted, wantedRows } from './head';
import { copiedRows, copyState, type KvCache, widestState } from './kv-cache';
import type { Model, ModelLayer } from './model';
import { finite, refuseNonFinite } from './non-finite';
import { blockStates, requireOneStream } from './parts/kinds';
import type { BlockWeights, StateShape } from './parts/part';
import { beginPlanes, joinPlanes, planeRows } from './planes';
import type { DeviceRows } from './queue';

/** Rows on the device while a tap looks at them. */
export interface TappedRows extends DeviceRows {
  /** Sequence and ids of each stretch of rows. */
  pieces: Chunk['pieces'];
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

/** Start of a pass that does not begin at the embedding. */
export interface Entry {
  /** The first block that is run. */
  layer: number;
  /** The stream as it enters that block, [rows · hidden] per chunk, in the order a `residual` tap saw them. */
  streams: readonly Float32Array<ArrayBuffer>[];
  /** Other weights for that block. */
  weights?(own: BlockWeights): BlockWeights;
}

export interface PassRequest {
  sequences: readonly Sequence[];
  output: Output;
  /** What output `draw` asks for. */
  draws?: Draws;
  cache?: KvCache;
  taps?: Taps;
  /** Begins in the middle, with what an earlier pass of the same sequences saw there. */
  enter?: Entry;
  /** Most rows that go through a block at once. */
  chunkRows: number;
  signal?: AbortSignal;
}

export interface PassResult {
  /** Per sequence the losses of ids[from …], or of what it asks for, in nats (output `loss`). */
  losses: Float64Array[];
  /** For each of them 1 where the model has no token more probable. */
  greedy: Uint8Array[];
  /** Per sequence the logits of the rows from `from` on, [rows, vocab] (output `logits`). */
  logits: Float32Array[];
  /** Sums over the logits on the device, by sequence and row. */
  sums: LogitSums[][];
  /** Per sequence a token, or what the host draws it from where the device could not tell two apart (output `draw`). */
  drawn: (Drawn | Scores)[];
}

export interface Pass {
  readonly steps: number;
  readonly stepsDone: number;
  /** Tokens the pass runs. */
  readonly tokens: number;
  /**
   * Does the next step: the embedding, a block, or a tile of the head. False when there is none left.
   * @throws AmalgamError `Canceled`, and what reading weights and the engine throw
   */
  step(): Promise<boolean>;
  /**
   * Waits for the device and returns what was asked for.
   * @throws AmalgamError `NonFinite` naming the layer where NaN or infinity first appeared
   */
  result(): Promise<PassResult>;
  /** Lets go of layers that do not stay; call it however the pass ends. */
  close(): void;
}

/** The keys of a whole sequence lie in one buffer. @throws AmalgamError `ContextTooLong` */
export function checkKeys(
  { operations, architecture }: Model,
  chunks: readonly Chunk[],
  cache?: KvCache,
): void {
  const { adapter, maxBufferBytes } = operations.queue.engine;
  const widest = widestState(architecture);
  const bytes = cache ? 0 : Math.max(0, ...chunks.map((chunk) => chunk.keyRows * widest * 4));
  if (bytes <= maxBufferBytes) return;
  throw new AmalgamError(
    'ContextTooLong',
    `The keys of a text this long take ${counted(bytes, 'byte')} a layer; ${adapter} allows ${maxBufferBytes}.`,
    'Use a shorter text, or a smaller window.',
  );
}

/** @throws AmalgamError `TextEmpty`, `TokenOutOfRange`, `ContextTooLong` */
export function startPass(model: Model, request: PassRequest): Pass {
  const { architecture, operations: op, workspace, layers, outer } = model;
  const { hidden } = architecture;
  const { queue } = op;
  const { sequences, output, cache, taps, enter, signal } = request;
  const first = enter?.layer ?? 0;
  const { keepsEmbedded, donors } = model.shared;
  if (enter) requireOneStream(architecture, 'begin in the middle');
  checkSequences(sequences, architecture, cache);
  // what sees both sides goes whole
  const longest = architecture.masked ? Math.max(0, ...sequences.map(({ ids }) => ids.length)) : 0;
  const chunks = cutChunks(
    sequences,
    Math.max(request.chunkRows, longest),
    cache?.capacity,
    longSequences(architecture),
    mostKeyRows(model),
  );
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

  /** The chunk that a chunk's keys begin with. */
  const beginnings: number[] = [];
  for (const [k, { goesOn }] of chunks.entries()) beginnings.push(goesOn ? beginnings[k - 1]! : k);
  /** Buffer of a layer's state of the tokens: in the cache, or until the chunk has passed, or until all layers have. */
  const stateOf = (k: number, chunk: Chunk, index: number, shape: StateShape) => {
    const { name, per, width, of: layer = index } = shape;
    const kept = cache?.layers[layer]?.get(name)?.buffer;
    if (kept) return kept;
    const rows = per === 'position' ? chunk.keyRows : chunk.slots;
    const room = donors.has(layer) ? `${name} of layer ${layer}, chunk ${beginnings[k]}` : name;
    return workspace.take(room, rows * width * 4);
  };

  const beginStep = async () => {
    queue.engine.clear(counts);
    await model.ready(signal);
    for (const [k, chunk] of chunks.entries()) {
      queue.write(placesOf(k, chunk), 0, chunk.places);
      queue.write(groupsOf(k, chunk), 0, chunk.groups);
      queue.write(piecesOf(k, chunk), 0, chunk.runs);
      for (const [per, { from, to }] of Object.entries(copiedRows(chunk.copies))) {
        if (from.length === 0) continue;
        queue.write(workspace.take(`${per} copied ${k}`, from.byteLength), 0, from);
        queue.write(workspace.take(`${per} copies ${k}`, to.byteLength), 0, to);
      }
    }
    // a stream that is given still needs what the layers take of the tokens themselves
    if (!enter || architecture.embedding.perLayer || keepsEmbedded) await embedChunks(model, chunks, signal);
    for (const [k, chunk] of chunks.entries()) {
      if (architecture.planes) await beginPlanes(model, k, placeOf(k, chunk));
      if (keepsEmbedded) keepEmbedded(model, k, chunk.rows);
    }
    if (enter) for (const [k, chunk] of chunks.entries()) writeStream(k, chunk, enter.streams[k]);
    await arrive(first);
  };
  const placeOf = (k: number, chunk: Chunk) => ({
    operations: op,
    workspace,
    chunk,
    places: placesOf(k, chunk),
  });
  const writeStream = (k: number, chunk: Chunk, stream: Float32Array<ArrayBuffer> | undefined) => {
    const elements = chunk.rows * hidden;
    if (stream?.length !== elements) {
      throw new AmalgamError(
        'Internal',
        'A pass begins with the stream of other sequences.',
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
    for (const [k, chunk] of chunks.entries()) {
      const state = (shape: StateShape) => stateOf(k, chunk, index, shape);
      for (const shape of chunk.copies.length > 0 ? blockStates(layer.block) : []) {
        copyState(model, k, chunk.copies, shape, state(shape));
        await queue.breathe();
      }
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
        ...planeRows(model, k, chunk.rows),
        ...(keepsEmbedded && { embedded: embeddedRows(model, k, chunk.rows) }),
        state,
        ...(taps?.site && {
          onSite: (site, linears, rows) =>
            taps.site!(
              index,
              site,
              linears.map((linear) => layer.linear(linear).name),
              tapped(chunk, rows.buffer, linears[0]!.inputs, rows.stride),
            ),
        }),
      });
      await queue.breathe();
    }
    await arrive(index + 1);
    if (index + 1 < architecture.blocks.length) return;
    if (architecture.planes) {
      for (const [k, chunk] of chunks.entries()) await joinPlanes(model, k, placeOf(k, chunk));
    }
    await norm();
    for (const head of heads) await head.begin();
  };

  const layerStep = async (index: number) => {
    const layer = await layers.take(index, signal);
    if (layer.kind === 'block')
      await blockStep(enter?.weights && index === first ? { ...layer, ...enter.weights(layer) } : layer);
    else for (const head of heads) await head.tile(layer);
    layers.release(index);
  };

  const drawResult = async (): Promise<PassResult> => {
    const result: PassResult = { losses: [], greedy: [], logits: [], sums: [], drawn: [] };
    const own = heads.map((head, k) => (wanted[k]!.rows.length > 0 ? head.draw(request.draws!) : undefined));
    const bytes = await queue.read(own.flatMap((rows) => rows?.range ?? []));
    for (const [k, rows] of own.entries()) {
      if (!rows) continue;
      const words = new Uint32Array(bytes.shift()!.buffer);
      for (const [i, sequence] of wanted[k]!.sequence.entries()) {
        result.drawn[sequence] = await rows.token(words[i]!, i);
      }
    }
    return result;
  };

  return {
    steps: used - first + 1,
    get stepsDone() {
      return done;
    },
    tokens: chunks.reduce((sum, chunk) => sum + chunk.rows, 0),
    async step() {
      if (done > used - first) return false;
      throwIfCanceled(signal);
      await queue.heeding(signal, async () => {
        await (done === 0 ? beginStep() : layerStep(first + done - 1));
        await queue.breathe();
      });
      done++;
      return done <= used - first;
    },
    async result() {
      if (output === 'draw') return drawResult();
      const collected = heads.map((head) => head.sums());
      const [counted, ...bytes] = await queue.read([
        { buffer: counts, byteLength: (architecture.blocks.length + 1) * 4 },
        ...collected.flatMap((c) => c.ranges),
      ]);
      refuseNonFinite(new Uint32Array(counted!.buffer));
      const sums = collected.map((c) => bytes.splice(0, c.ranges.length));
      const result: PassResult = { losses: [], greedy: [], logits: [], sums: [], drawn: [] };
      if (output === 'loss') {
        const folded = collected.map((c, k) => c.losses(sums[k]!));
        const counted = sequences.map(
          ({ ids, from = ids.length, asks }) => asks?.length ?? ids.length - from,
        );
        result.losses = counted.map((count) => new Float64Array(count));
        result.greedy = counted.map((count) => new Uint8Array(count));
        scatter(wanted, (k, i, s, at) => {
          result.losses[s]![at] = finite(folded[k]!.losses[i]!);
          result.greedy[s]![at] = folded[k]!.greedy[i]!;
        });
      } else if (output === 'logits') {
        const { vocab } = architecture;
        result.logits = sequences.map(({ ids, from = ids.length }) =>
          ids.length - from === 1 ? new Float32Array(0) : new Float32Array((ids.length - from) * vocab),
        );
        result.sums = sequences.map(() => []);
        const begins = heads.map((head) => head.segments());
        scatter(wanted, (k, i, s, at) => {
          const values = collected[k]!.partials(sums[k]!, i);
          for (const value of values) finite(value);
          result.sums[s]![at] = { begins: begins[k]!, values };
          const row = heads[k]!.logits(i);
          if (result.logits[s]!.length === 0) result.logits[s] = row;
          else result.logits[s]!.set(row, at * vocab);
        });
      }
      return result;
    },
    close: () => layers.rest(),
  };
}

/** All steps of a pass, then its result; it is closed however it ends. */
export async function wholePass(
  pass: Pass,
  onStep?: (stepsDone: number, steps: number) => void,
): Promise<PassResult> {
  try {
    while (await pass.step()) onStep?.(pass.stepsDone, pass.steps);
    return await pass.result();
  } finally {
    pass.close();
  }
}

/** Rows of keys that fit a buffer. */
export function mostKeyRows({ operations, architecture }: Model): number {
  return Math.floor(operations.queue.engine.maxBufferBytes / (4 * Math.max(1, widestState(architecture))));
}

/** The length above which sequences take longrope's long factors, in models that have them. */
export function longSequences({ blocks }: Model['architecture']): number | undefined {
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
