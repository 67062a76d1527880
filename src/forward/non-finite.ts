/** NaN and infinities on the way end a pass, with the place where they appear first. */
import { AmalgamError } from '../errors';

/** @throws AmalgamError `NonFinite` naming the first layer with a count */
export function refuseNonFinite(counts: Uint32Array): void {
  const layer = counts.findIndex((n) => n > 0);
  if (layer < 0) return;
  throw nonFinite(layer === 0 ? 'after the embedding' : `after layer ${layer - 1}`, counts[layer]!);
}

/** @throws AmalgamError `NonFinite` for a number out of the logits that is none */
export function finite(value: number): number {
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
