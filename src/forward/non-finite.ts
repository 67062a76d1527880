/** NaN and infinities on the way end a pass, with the place where they appear first. */
import { AmalgamError } from '../errors';

/** @throws AmalgamError `NonFinite` naming the first layer with a count */
export function refuseNonFinite(counts: Uint32Array): void {
  const layer = counts.findIndex((n) => n > 0);
  if (layer >= 0) throw nonFiniteAt(layer, counts[layer]!);
}

/** @throws AmalgamError `NonFinite` for a number out of the logits that is none */
export function finite(value: number): number {
  if (Number.isFinite(value)) return value;
  throw nonFinite('in the logits', 1);
}

/** @param layer 0 is ahead of the first block, one more than there are blocks behind the head */
export function nonFiniteAt(layer: number, count: number, blocks = Number.POSITIVE_INFINITY): AmalgamError {
  if (layer > blocks) return nonFinite('in the logits', count);
  return nonFinite(layer === 0 ? 'after the embedding' : `after layer ${layer - 1}`, count);
}

function nonFinite(where: string, count: number): AmalgamError {
  return new AmalgamError(
    'NonFinite',
    `NaN or infinite values first appear ${where} (${count} of them).`,
    'The weights there are damaged or a merge overflowed: look at the merge report for that layer.',
  );
}
