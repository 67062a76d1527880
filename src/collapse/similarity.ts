/**
 * How much of the original is left: the shallower model is really run, and what leaves its final norm is compared with
 * what leaves the original's. Layers below the first change are the original's; they are run once for all candidates.
 */
import { AmalgamError } from '../errors';
import type { Sequence } from '../forward/chunk';
import type { Entry } from '../forward/pass';
import type { Runner } from '../forward/runner';
import { groupSequences } from './calibration';
import type { PassOptions } from './depth-measures';
import { dot, joinRows, readRows } from './tapped-rows';

/** Streams of the original that are kept for candidates to begin with. */
const KEPT_BYTES = 512 * 2 ** 20;

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
 * @param range the layers at which candidates will first differ: streams are kept for as many of them as there is room
 *   for, the lowest always among them; none where even one would be too much
 * @throws what `Pass.step` and `Pass.result` throw
 */
export async function runReference(
  runner: Runner,
  sequences: readonly Sequence[],
  range: { lowest: number; highest: number },
  { signal, onStep }: PassOptions = {},
): Promise<Reference> {
  const { hidden } = runner.architecture;
  const bytes = sequences.reduce((sum, { ids }) => sum + ids.length, 0) * hidden * 4;
  const room = Math.floor(KEPT_BYTES / bytes);
  const every = room > 0 ? Math.ceil((range.highest - range.lowest + 1) / room) : Number.POSITIVE_INFINITY;
  const isKept = (layer: number) =>
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
            if (!isKept(layer)) return;
            const kept = entries.get(layer) ?? [];
            entries.set(layer, kept);
            kept.push(await readRows(rows));
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

/** The highest kept layer that is not above `from`. */
function entryAt(entries: ReadonlyMap<number, Float32Array<ArrayBuffer>[]>, from: number): Entry | undefined {
  const layer = Math.max(...[...entries.keys()].filter((kept) => kept <= from));
  return Number.isFinite(layer) ? { layer, streams: entries.get(layer)! } : undefined;
}

/** 1 where both are zero, 0 where one is. */
function cosine(a: Float32Array, b: Float32Array, at: number, length: number): number {
  const sizes = [dot(a, at, a, at, length), dot(b, at, b, at, length)] as const;
  if (sizes[0] === 0 || sizes[1] === 0) return sizes[0] === sizes[1] ? 1 : 0;
  const value = dot(a, at, b, at, length) / Math.sqrt(sizes[0] * sizes[1]);
  return Math.max(-1, Math.min(1, value));
}
