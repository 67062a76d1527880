/**
 * Measures of the layers of a running model: the change of the residual stream from one to the next, and the similarity
 * of a shallower model to the original.
 */

import { AmalgamError } from '../../errors';
import type { Sequence } from '../../forward/chunk';
import type { Entry } from '../../forward/pass';
import { readRows } from '../../forward/queue';
import type { Runner } from '../../forward/runner';
import type { LayerMeasure } from './report';

/** Streams of all depths that are held at a time. */
const STREAM_BYTES = 2 ** 30;

interface PassOptions {
  signal?: AbortSignal;
  /** After each step of a pass. */
  onStep?(): void;
}

/** Sequences that are measured together, and the steps it takes. */
function groupsOf(runner: Runner, sequences: readonly Sequence[]): Sequence[][] {
  const { hidden, blocks } = runner.architecture;
  const rows = Math.floor(STREAM_BYTES / (4 * hidden * (blocks.length + 1)));
  return groupSequences(sequences, Math.min(rows, runner.rowsPerPass));
}

/** Steps that {@link measureLayers} reports. */
export function measureSteps(runner: Runner, sequences: readonly Sequence[]): number {
  return groupsOf(runner, sequences).length * (runner.architecture.blocks.length + 1);
}

/**
 * Runs the model over the sequences and compares x_0 … x_L, token by token, in f64. Men et al. 2024 (ShortGPT) for the
 * influence, Gromov et al. 2024 (PruneMe) for the distances; where a vector is zero the cosine counts as ½ for the
 * influence, as in ShortGPT's code, and as 0 for the distances. x_L is taken before the final norm, unlike transformers' last hidden state.
 *
 * @param window length of a whole window: only those count for the last tokens, where there are any
 * @throws what `Pass.step` and `Pass.result` throw
 */
export async function measureLayers(
  runner: Runner,
  sequences: readonly Sequence[],
  window: number,
  { signal, onStep }: PassOptions = {},
): Promise<LayerMeasure> {
  const { hidden, blocks } = runner.architecture;
  const depths = blocks.length + 1;
  const influence = new Float64Array(blocks.length);
  const last = new Float64Array(depths * depths);
  const isWhole = sequences.some(({ ids }) => ids.length === window)
    ? (length: number) => length === window
    : () => true;
  let tokens = 0;
  let lasts = 0;
  for (const group of groupsOf(runner, sequences)) {
    const pieces: Float32Array[][] = Array.from({ length: depths }, () => []);
    await runner.pass(
      {
        sequences: group,
        output: 'none',
        taps: {
          async residual(layer, rows) {
            pieces[layer]!.push(await readRows(rows));
          },
        },
        ...(signal && { signal }),
      },
      onStep,
    );
    const streams = pieces.map(joinRows);
    let row = 0;
    for (const { ids } of group) {
      for (let t = 0; t < ids.length; t++, row++) {
        const counts = t === ids.length - 1 && isWhole(ids.length);
        addToken(streams, row, hidden, influence, counts ? last : undefined);
        tokens++;
        if (counts) lasts++;
      }
    }
  }
  return {
    influence: [...influence].map((sum) => sum / tokens),
    distance: Array.from({ length: depths }, (_, i) =>
      Array.from({ length: depths }, (__, j) => last[Math.min(i, j) * depths + Math.max(i, j)]! / lasts),
    ),
  };
}

/** Adds one token's figures: its influences, and its distances where it is a last one; pairs i < j only. */
function addToken(
  streams: readonly Float32Array[],
  row: number,
  hidden: number,
  influence: Float64Array,
  last: Float64Array | undefined,
): void {
  const depths = streams.length;
  const at = row * hidden;
  const norms = streams.map((x) => Math.sqrt(dot(x, at, x, at, hidden)));
  for (let i = 0; i < depths; i++) {
    const end = last ? depths : Math.min(i + 2, depths);
    for (let j = i + 1; j < end; j++) {
      const size = norms[i]! * norms[j]!;
      const product = dot(streams[i]!, at, streams[j]!, at, hidden);
      const cosine = size > 0 ? Math.max(-1, Math.min(1, product / size)) : undefined;
      if (last) last[i * depths + j]! += Math.acos(cosine ?? 0) / Math.PI;
      if (j === i + 1) influence[i]! += 1 - (cosine ?? 0.5);
    }
  }
}

// ---------------------------------------------------------------- similarity

/** Most bytes of the original's streams that are held for candidates to begin with. */
const HELD_BYTES = 512 * 2 ** 20;

/** Final hidden states of the original, and the layers at which a candidate may begin. */
export interface Reference {
  groups: {
    sequences: Sequence[];
    /** The stream behind the final norm, [tokens · hidden]. */
    normed: Float32Array;
    /** Layer → the stream that enters it, per chunk. */
    entries: Map<number, Float32Array<ArrayBuffer>[]>;
  }[];
}

/**
 * Runs the original over the sequences.
 *
 * @param range the layers at which candidates will first differ: streams are held for as many of them as fit, the
 *   lowest first; none where even one would be too much
 * @throws errors of `Pass.step` and `Pass.result`
 */
export async function runReference(
  runner: Runner,
  sequences: readonly Sequence[],
  range: { lowest: number; highest: number },
  { signal, onStep }: PassOptions = {},
): Promise<Reference> {
  const { hidden } = runner.architecture;
  const bytes = sequences.reduce((sum, { ids }) => sum + ids.length, 0) * hidden * 4;
  const room = Math.floor(HELD_BYTES / bytes);
  const every = room > 0 ? Math.ceil((range.highest - range.lowest + 1) / room) : Number.POSITIVE_INFINITY;
  const isHeld = (layer: number) =>
    room > 0 && layer >= range.lowest && layer <= range.highest && (layer - range.lowest) % every === 0;
  const groups: Reference['groups'] = [];
  for (const group of groupSequences(sequences, runner.rowsPerPass)) {
    const entries = new Map<number, Float32Array<ArrayBuffer>[]>();
    const normed: Float32Array[] = [];
    await runner.pass(
      {
        sequences: group,
        output: 'none',
        taps: {
          async residual(layer, rows) {
            if (!isHeld(layer)) return;
            const streams = entries.get(layer) ?? [];
            entries.set(layer, streams);
            streams.push(await readRows(rows));
          },
          async normed(rows) {
            normed.push(await readRows(rows));
          },
        },
        ...(signal && { signal }),
      },
      onStep,
    );
    groups.push({ sequences: group, normed: joinRows(normed), entries });
  }
  return { groups };
}

/**
 * Cosine of the candidate's and the original's final-norm outputs, all tokens of a sequence as one vector (LaCo's
 * similarity), for each sequence.
 *
 * @param runner the candidate, its layers renumbered
 * @param from its layers below are the original's
 * @returns null where the candidate's numbers are not finite
 */
export async function similarityTo(
  reference: Reference,
  runner: Runner,
  from: number,
  { signal, onStep }: PassOptions = {},
): Promise<number[] | null> {
  const { hidden } = runner.architecture;
  const similarities: number[] = [];
  for (const group of reference.groups) {
    const pieces: Float32Array[] = [];
    const enter = entryAt(group.entries, Math.min(from, runner.architecture.blocks.length - 1));
    try {
      await runner.pass(
        {
          sequences: group.sequences,
          output: 'none',
          taps: {
            async normed(rows) {
              pieces.push(await readRows(rows));
            },
          },
          ...(enter && { enter }),
          ...(signal && { signal }),
        },
        onStep,
      );
    } catch (thrown) {
      if (thrown instanceof AmalgamError && thrown.code === 'NonFinite') return null;
      throw thrown;
    }
    const normed = joinRows(pieces);
    let row = 0;
    for (const { ids } of group.sequences) {
      const [at, length] = [row * hidden, ids.length * hidden];
      similarities.push(cosine(group.normed, normed, at, length));
      row += ids.length;
    }
  }
  return similarities;
}

/** The highest layer with a held stream that is not above `from`. */
function entryAt(entries: ReadonlyMap<number, Float32Array<ArrayBuffer>[]>, from: number): Entry | undefined {
  const layer = Math.max(...[...entries.keys()].filter((held) => held <= from));
  return Number.isFinite(layer) ? { layer, streams: entries.get(layer)! } : undefined;
}

/** 1 where both are zero, 0 where one is. */
function cosine(a: Float32Array, b: Float32Array, at: number, length: number): number {
  const sizes = [dot(a, at, a, at, length), dot(b, at, b, at, length)] as const;
  if (sizes[0] === 0 || sizes[1] === 0) return sizes[0] === sizes[1] ? 1 : 0;
  const value = dot(a, at, b, at, length) / Math.sqrt(sizes[0] * sizes[1]);
  return Math.max(-1, Math.min(1, value));
}

/** Consecutive sequences of at most `rows` tokens together, one at least. */
export function groupSequences(sequences: readonly Sequence[], rows: number): Sequence[][] {
  const groups: Sequence[][] = [];
  let used = Number.POSITIVE_INFINITY;
  for (const sequence of sequences) {
    const { length } = sequence.ids;
    if (used + length > rows) {
      groups.push([]);
      used = 0;
    }
    groups.at(-1)!.push(sequence);
    used += length;
  }
  return groups;
}

/** Pieces put one behind the other. */
function joinRows(pieces: readonly Float32Array[]): Float32Array<ArrayBuffer> {
  const out = new Float32Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    out.set(piece, at);
    at += piece.length;
  }
  return out;
}

/** ⟨a, b⟩ of two stretches, in f64. */
function dot(a: Float32Array, aBegin: number, b: Float32Array, bBegin: number, length: number): number {
  let sum = 0;
  for (let i = 0; i < length; i++) sum += a[aBegin + i]! * b[bBegin + i]!;
  return sum;
}
