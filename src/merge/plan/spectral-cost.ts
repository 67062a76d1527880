import { formatAbout } from '../../formats/quantity';
import type { Problems } from '../../inputs/problems';
import type { MergeMethod } from '../method';
import type { TensorPlan } from './plan';

/** Seconds of one core per (rows + columns) · directions², as measured with 128 to 512 directions. */
const PER_DIRECTIONS = 2.5e-8;
/** Directions that are looked for in a matrix where the method has no word on it. */
const USUAL = 256;
/** What takes less is not worth a note. */
const LEAST_SECONDS = 60;

/** Notes how long the singular directions of a plan take; returns the memory they need on the host. */
export function spectralBytes(
  { compute }: MergeMethod,
  tensors: readonly TensorPlan[],
  problems: Problems,
): number {
  let [seconds, bytes, matrices] = [0, 0, 0];
  for (const { shape, role, copy, models, parameters } of tensors) {
    const isKnots = compute.kind === 'delta' && compute.preset(parameters).space === 'knots';
    if (copy || shape.length !== 2 || role.kind !== 'linear' || !(isKnots || compute.kind === 'spectral'))
      continue;
    const [rows, cols] = shape as [number, number];
    const ranks = models.map(({ view }) =>
      view.onBase && !view.lowRank?.magnitude ? (view.lowRank?.rank ?? 0) : USUAL,
    );
    const found = ranks.reduce((sum, rank) => sum + Math.min(rank, Number(parameters.rank ?? USUAL)), 0);
    const directions = Math.min(found, rows, isKnots ? USUAL : cols);
    matrices++;
    seconds += PER_DIRECTIONS * (rows + cols) * directions ** 2;
    const spaces = isKnots ? 4 * (models.length + 1) * directions * cols : 0;
    bytes = Math.max(bytes, 24 * (rows + cols) * directions + spaces);
  }
  if (seconds >= LEAST_SECONDS) {
    problems.note(
      'SingularDirections',
      `Singular directions of ${matrices} matrices take ${formatAbout(seconds)} of one core.`,
      compute.kind === 'spectral' ? 'A lower rank takes less.' : undefined,
    );
  }
  return bytes;
}
