/** How the residual stream turns from layer to layer: block influence, and angular distances between all depths. */

import type { Sequence } from '../forward/chunk';
import type { Runner } from '../forward/runner';
import type { DepthMeasure } from '../reports/collapse';
import { groupSequences } from './calibration';
import { dot, joinRows, readRows } from './tapped-rows';

/** Streams of all depths that are held at a time. */
const STREAM_BYTES = 2 ** 30;

export interface PassOptions {
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

/** Steps that {@link measureDepth} reports. */
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
export async function measureDepth(
  runner: Runner,
  sequences: readonly Sequence[],
  window: number,
  { signal, onStep }: PassOptions = {},
): Promise<DepthMeasure> {
  const { hidden, blocks } = runner.architecture;
  const depths = blocks.length + 1;
  const influence = new Float64Array(blocks.length);
  const all = new Float64Array(depths * depths);
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
        addToken(streams, row, hidden, influence, all, counts ? last : undefined);
        tokens++;
        if (counts) lasts++;
      }
    }
  }
  const map = (sums: Float64Array, count: number) =>
    Array.from({ length: depths }, (_, i) =>
      Array.from({ length: depths }, (__, j) => sums[Math.min(i, j) * depths + Math.max(i, j)]! / count),
    );
  return {
    influence: [...influence].map((sum) => sum / tokens),
    distance: { lastToken: map(last, lasts), allTokens: map(all, tokens) },
  };
}

/** Adds one token's figures; pairs i < j only. */
function addToken(
  streams: readonly Float32Array[],
  row: number,
  hidden: number,
  influence: Float64Array,
  all: Float64Array,
  last: Float64Array | undefined,
): void {
  const depths = streams.length;
  const at = row * hidden;
  const norms = streams.map((x) => Math.sqrt(dot(x, at, x, at, hidden)));
  for (let i = 0; i < depths; i++) {
    for (let j = i + 1; j < depths; j++) {
      const size = norms[i]! * norms[j]!;
      const product = dot(streams[i]!, at, streams[j]!, at, hidden);
      const cosine = size > 0 ? Math.max(-1, Math.min(1, product / size)) : undefined;
      const distance = Math.acos(cosine ?? 0) / Math.PI;
      all[i * depths + j]! += distance;
      if (last) last[i * depths + j]! += distance;
      if (j === i + 1) influence[i]! += 1 - (cosine ?? 0.5);
    }
  }
}
