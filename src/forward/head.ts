/** The stream after the last block → losses or logits, a tile of the vocabulary at a time. */
import type { BackendBuffer, BufferRange } from '../backend/backend';
import {
  capLogits,
  drawnWords,
  drawToken,
  LOG_SUM_SEGMENT,
  logSum,
  NOTHING_DRAWN,
} from '../backend/kernels/activation';
import { gatherRows } from '../backend/kernels/rows';
import type { Random, Sampling, Scores } from '../backend/sampler';
import type { Chunk, Sequence } from './chunk';
import { streamName } from './embedding';
import type { HeadTile, Model } from './model';
import { finite, refuseNonFinite } from './non-finite';
import type { RowBuffer } from './operations';

/** Bytes of logits on the device at a time. */
export const LOGIT_BYTES = 32 << 20;

/** Output of a forward pass. `draw`: a token behind each sequence, of whose logits one row is wanted. */
export type Output = 'loss' | 'logits' | 'draw' | 'none';

/** How tokens are drawn, with the random number of each sequence. */
export interface Draws extends Sampling {
  randoms: readonly Random[];
}

/** A token that was drawn on the device; its probability is at temperature 1, among all, within 0.15 %. */
export interface Drawn {
  id: number;
  probability: number;
}

/** Rows of a chunk that lead to output, with the sequence and the place in its result they belong to. */
export interface Wanted {
  rows: number[];
  sequence: number[];
  at: number[];
  targets: number[];
}

/** Of every wanted row: −ln p of its target, and 1 where no token is more probable. */
interface Folded {
  losses: Float64Array;
  greedy: Uint8Array;
}

/** The wanted rows of a chunk (see `Sequence.from`). */
export function wantedRows(chunk: Chunk, sequences: readonly Sequence[], output: Output): Wanted {
  const wanted: Wanted = { rows: [], sequence: [], at: [], targets: [] };
  if (output === 'none') return wanted;
  for (const { sequence, row, begin, count } of chunk.pieces) {
    const { ids, from = ids.length, asks = [] } = sequences[sequence]!;
    for (const [i, { at, id }] of output === 'loss' ? asks.entries() : []) {
      if (at < begin || at >= begin + count) continue;
      wanted.rows.push(row + at - begin);
      wanted.sequence.push(sequence);
      wanted.at.push(i);
      wanted.targets.push(id);
    }
    if (asks.length > 0) continue;
    // the loss of an id is read off the row before it
    const shift = output === 'loss' ? 1 : 0;
    const first = Math.max(begin, from - shift);
    const end = Math.min(begin + count, ids.length - shift);
    for (let i = first; i < end; i++) {
      wanted.rows.push(row + i - begin);
      wanted.sequence.push(sequence);
      wanted.at.push(i + shift - from);
      wanted.targets.push(output === 'loss' ? ids[i + 1]! : 0);
    }
  }
  return wanted;
}

/** Collects the head's results for one chunk. */
interface HeadPass {
  /** Final norm and projection of the wanted rows. */
  begin(): Promise<void>;
  /** Adds a tile of the head. */
  tile(tile: HeadTile): Promise<void>;
  /** Buffers to read for losses and partial sums, and what to make of their bytes. */
  sums(): {
    ranges: { buffer: BackendBuffer; byteLength: number }[];
    losses(bytes: Uint8Array<ArrayBuffer>[]): Folded;
    /** Of a row, [segments, 2]: {@link HeadPass.segments}. */
    partials(bytes: Uint8Array<ArrayBuffer>[], row: number): Float32Array;
  };
  /** First column of every segment that is summed by itself, ascending. */
  segments(): number[];
  /** Logits of a wanted row, [vocab]: a view where they came in one piece. */
  logits(row: number): Float32Array;
  /** Enqueues the drawing of a token from every wanted row; `random` by sequence. */
  draw(draws: Draws): DrawnRows;
}

/** Tokens drawn from the wanted rows of a chunk. */
interface DrawnRows {
  /** A word a row: see shaders/activation/draw-token.wgsl. */
  range: BufferRange;
  /**
   * The token of a row, or its logits where the device drew none.
   * @throws AmalgamError `NonFinite`
   */
  token(word: number, row: number): Promise<Drawn | Scores>;
}

export function openHeadPass(
  model: Model,
  chunk: Chunk,
  index: number,
  wanted: Wanted,
  output: Output,
): HeadPass {
  const { architecture, operations: op, workspace, outer } = model;
  const { hidden, vocab, embedding, final } = architecture;
  const { queue } = op;
  const n = wanted.rows.length;
  const slices: { column: number; columns: number; values: Float32Array }[] = [];
  const segmentsOf = (columns: number) => Math.ceil(columns / LOG_SUM_SEGMENT);
  /** Partial sums of each dispatch of log-sum. */
  const parts: SumPart[] = [];
  let rows: RowBuffer | undefined;
  let sumsUsed = 0;
  const targets = () => workspace.take(`targets ${index}`, n * 4);
  const picked = () => workspace.take(`picked ${index}`, n * 4);
  // a part shorter than a segment takes a whole one: at most one a tile and one a slice of it
  const headTiles = model.layers.count - model.architecture.blocks.length;
  const sums = () => workspace.take(`sums ${index}`, n * 8 * (2 * segmentsOf(vocab) + headTiles));

  const whole = (): RowBuffer => ({
    buffer: workspace.take(`logits ${index}`, n * vocab * 4),
    stride: vocab,
  });
  const capAll = ({ buffer: x }: RowBuffer, elements: number) => {
    if (final.divisor === 1 && final.softcap === undefined) return;
    const params = { elements, factor: 1 / final.divisor, cap: final.softcap ?? 0 };
    queue.run(capLogits, { params, buffers: { x } });
  };
  /** Sums over the segments of columns, of e^(factor · (x − largest)). */
  const sumUp = (
    { buffer: logits, stride }: RowBuffer,
    first_column: number,
    columns: number,
    to: BackendBuffer,
    { begin = 0, factor = 1 },
  ) =>
    queue.run(logSum, {
      params: { rows: n, columns, stride, first_column, sums_begin: begin, factor },
      buffers: { logits, targets: targets(), sums: to, picked: picked() },
    });

  const slice = async (tile: HeadTile, first: number, columns: number, bias?: BackendBuffer) => {
    const isDrawn = output === 'draw';
    const y = isDrawn ? whole() : { buffer: workspace.take('logits', n * columns * 4), stride: columns };
    const column = tile.first + first;
    const begin = isDrawn ? column : 0;
    for (const [k, { weights: buffer, layout, dtype, scale }] of tile.summands.entries()) {
      const weights = { buffer, layout, dtype, inputs: embedding.width, first, outputs: columns };
      const at = { begin, scale, add: k > 0 };
      if (scale !== 0) await op.product({ ...weights, ...(bias && k === 0 && { bias }) }, rows!, y, n, at);
    }
    if (isDrawn) return queue.breathe();
    capAll(y, n * columns);
    const segments = segmentsOf(columns);
    sumUp(y, column, columns, sums(), { begin: sumsUsed });
    parts.push({ begin: sumsUsed, segments, column });
    sumsUsed += n * segments * 2;
    if (output !== 'logits') return queue.breathe();
    const [bytes] = await queue.read([{ buffer: y.buffer, byteLength: n * columns * 4 }]);
    slices.push({ column, columns, values: new Float32Array(bytes!.buffer) });
  };

  return {
    segments: () =>
      parts.flatMap(({ segments, column }) =>
        Array.from({ length: segments }, (_, s) => column + s * LOG_SUM_SEGMENT),
      ),
    logits(row) {
      const pieces = slices.map(({ columns, values }) => values.subarray(row * columns, (row + 1) * columns));
      if (pieces.length === 1) return pieces[0]!;
      const all = new Float32Array(vocab);
      for (const [i, { column }] of slices.entries()) all.set(pieces[i]!, column);
      return all;
    },
    async begin() {
      if (n === 0) return;
      const picks = workspace.take(`picks ${index}`, n * 4);
      queue.write(picks, 0, Uint32Array.from(wanted.rows));
      queue.write(targets(), 0, Uint32Array.from(wanted.targets));
      const isAll = n === chunk.rows && wanted.rows.every((row, i) => row === i);
      const room = (name: string, width: number): RowBuffer => ({
        buffer: workspace.take(name, n * width * 4),
        stride: width,
      });
      const { finalNorm, transform, projectOut } = outer;
      const last = (name: string, isLast: boolean) => (isLast ? `final ${index}` : name);
      const stream = workspace.take(streamName(index), chunk.rows * hidden * 4);
      const isTaken = finalNorm && !transform && !projectOut && op.takesNorm(finalNorm, n);
      if (isAll) rows = { buffer: stream, stride: hidden };
      else {
        rows = room(last('gathered', isTaken || (!finalNorm && !transform && !projectOut)), hidden);
        queue.run(gatherRows, {
          params: { rows: n, width: hidden },
          buffers: { x: stream, picks, y: rows.buffer },
        });
      }
      if (isTaken) rows.norm = finalNorm;
      else if (finalNorm) {
        const y = room(last('final normed', !transform && !projectOut), hidden);
        op.norm(finalNorm, rows, y, n);
        rows = y;
      }
      if (transform) {
        const [made, active] = [room('transformed', hidden), room('transformed and activated', hidden)];
        await op.linear([transform.linear], rows, made, n, op.nothing);
        const { activation } = final.transform!;
        op.activate({ inner: hidden, gated: false, activation }, made, active, n);
        const y = room(last('transformed and normed', !projectOut), hidden);
        op.norm(transform.norm, active, y, n);
        rows = y;
      }
      if (projectOut) {
        const y = room(`final ${index}`, embedding.width);
        await op.linear([projectOut], rows, y, n, op.nothing);
        rows = y;
      }
    },
    async tile(tile) {
      if (n === 0) return;
      const ofColumn = n * embedding.width;
      const stepWithin = (columns: number) =>
        Math.max(1, Math.floor(columns / LOG_SUM_SEGMENT)) * LOG_SUM_SEGMENT;
      const most = stepWithin(Math.min(LOGIT_BYTES / (n * 4), queue.dispatchWork / ofColumn));
      // as large as it is planned, whatever this device does in a moment
      if (output !== 'draw') workspace.take('logits', n * Math.min(most, tile.outputs) * 4);
      const bias = outer.headBias && workspace.take('logit bias', tile.outputs * 4);
      if (bias) queue.write(bias, 0, outer.headBias!.subarray(tile.first, tile.first + tile.outputs));
      for (let first = 0; first < tile.outputs; ) {
        const step = Math.min(most, stepWithin(queue.workUnderWay / ofColumn), tile.outputs - first);
        await queue.breathe(step * ofColumn);
        await slice(tile, first, step, bias);
        first += step;
      }
    },
    draw({ temperature, topP, randoms }) {
      const y = whole();
      const segments = segmentsOf(vocab);
      const random = workspace.take(`random ${index}`, n * 8);
      const drawn = workspace.take(`drawn ${index}`, n * 4);
      const words = drawnWords(vocab);
      queue.write(random, 0, Uint32Array.from(wanted.sequence.flatMap((s) => randoms[s]!)));
      capAll(y, n * vocab);
      sumUp(y, 0, vocab, sums(), {});
      let warm = sums();
      if (temperature !== 0 && temperature !== 1) {
        warm = workspace.take(`warm sums ${index}`, n * 8 * segments);
        sumUp(y, 0, vocab, warm, { factor: 1 / temperature });
      }
      const layers = architecture.blocks.length + 1;
      const counts = workspace.take('counts', layers * 4);
      queue.run(drawToken, {
        params: {
          ...{ rows: n, vocab, segments, layers, top_p: topP, ...words.params },
          inverse: temperature === 0 ? 0 : 1 / temperature,
        },
        buffers: {
          ...{ logits: y.buffer, sums: sums(), warm, random, drawn },
          counts,
        },
      });
      let read: Promise<Uint8Array<ArrayBuffer>[]> | undefined;
      return {
        range: { buffer: drawn, byteLength: n * 4 },
        async token(word, row) {
          if (word !== NOTHING_DRAWN) return words.token(word);
          read ??= queue.read([
            { buffer: counts, byteLength: layers * 4 },
            { buffer: y.buffer, byteLength: n * vocab * 4 },
            { buffer: sums(), byteLength: n * 8 * segments },
          ]);
          const [counted, ...floats] = await read;
          refuseNonFinite(new Uint32Array(counted!.buffer));
          const [logits, all] = floats.map((bytes) => new Float32Array(bytes.buffer));
          const values = all!.subarray(2 * row * segments, 2 * (row + 1) * segments);
          values.forEach(finite);
          const begins = Array.from({ length: segments }, (_, s) => s * LOG_SUM_SEGMENT);
          return {
            logits: logits!.subarray(row * vocab, (row + 1) * vocab),
            sums: { begins, values },
          };
        },
      };
    },
    sums: () => ({
      ranges:
        n === 0
          ? []
          : [
              { buffer: sums(), byteLength: Math.max(4, sumsUsed * 4) },
              { buffer: picked(), byteLength: n * 4 },
            ],
      losses: ([sumBytes, pickedBytes]) =>
        n === 0
          ? { losses: new Float64Array(0), greedy: new Uint8Array(0) }
          : foldLosses(n, parts, new Float32Array(sumBytes!.buffer), new Float32Array(pickedBytes!.buffer)),
      partials: ([sumBytes], row) => {
        const all = new Float32Array(sumBytes!.buffer);
        const of = parts.flatMap(({ begin, segments }) => [
          ...all.subarray(begin + 2 * row * segments, begin + 2 * (row + 1) * segments),
        ]);
        return Float32Array.from(of);
      },
    }),
  };
}

/** Partial sums of a dispatch of log-sum, [rows, segments, 2], of the columns from `column` on. */
interface SumPart {
  begin: number;
  segments: number;
  column: number;
}

/** −ln softmax of the picked logits: partial sums (max, Σ e^(x − max)) are put together in f64. */
function foldLosses(n: number, parts: readonly SumPart[], sums: Float32Array, picked: Float32Array): Folded {
  const greedy = new Uint8Array(n);
  const losses = Float64Array.from({ length: n }, (_, r) => {
    let top = Number.NEGATIVE_INFINITY;
    for (const { begin, segments } of parts) {
      for (let s = 0; s < segments; s++) {
        const value = sums[begin + 2 * (r * segments + s)]!;
        if (!(value <= top)) top = value;
      }
    }
    let total = 0;
    for (const { begin, segments } of parts) {
      for (let s = 0; s < segments; s++) {
        const at = begin + 2 * (r * segments + s);
        total += sums[at + 1]! * Math.exp(sums[at]! - top);
      }
    }
    greedy[r] = picked[r]! >= top ? 1 : 0;
    return top + Math.log(total) - picked[r]!;
  });
  return { losses, greedy };
}
