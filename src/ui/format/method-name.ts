/** Short names of merge methods. */
import type { MergeMethod } from '../../merge/method';

/** The name of a method without its explanation: `TIES` of `TIES — trim, elect sign, merge`. */
export function methodName({ title }: Pick<MergeMethod, 'title'>): string {
  return title.split(' — ')[0] ?? title;
}
