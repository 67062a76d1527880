/** Perplexity of a merge on a text while its settings change, from the first measurement on. Pure. */
import { signedChange } from './conclusion';
import { type LossBlock, margin, meanLoss, pairedDifference } from './paired-error';

export interface Course {
  /** The last perplexity, and the same with its own error. */
  value: string;
  title: string;
  /** Changes of the mean loss since the first measurement, in nats; half the 95 % interval of the last; that of its perplexity in words, before there is a change its own error. */
  places: readonly number[];
  half: number;
  change: string;
  /** Ends of what is drawn. */
  least: number;
  most: number;
}

const EMPTY: Course = {
  ...{ value: '–', title: 'not measured yet', places: [], half: 0, change: '', least: 0, most: 0 },
};

/** @param measured losses on the same tokens, in blocks, the oldest first */
export function courseOf(measured: readonly (readonly LossBlock[])[]): Course {
  const [first, last] = [measured[0], measured.at(-1)];
  if (!first || !last) return EMPTY;
  const apart = measured.map((blocks) => pairedDifference([blocks], [first]));
  const places = apart.map((own) => own?.mean ?? 0);
  const loss = meanLoss([last]);
  const [value, own] = [Math.exp(loss.mean), margin(loss)];
  const whole = value.toFixed(4);
  const title = own === null ? whole : `${whole} ± ${(own * value).toFixed(4)} by itself (95 %)`;
  const latest = apart.at(-1);
  const half = (latest && margin(latest)) ?? 0;
  const alone = own === null ? '' : `±\u00a0${(own * value).toFixed(2)}`;
  const change = latest && measured.length > 1 ? signedChange(latest) : alone;
  const [least, most] = [Math.min(...places) - half, Math.max(...places) + half];
  return { value: value.toFixed(2), title, places, half, change, least, most };
}
