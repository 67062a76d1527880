/** What a merge method is called where there is little room. */
import type { MergeMethod } from '../../merge/method';

/** The name of a method, without what it does: `TIES` of `TIES — trim, elect sign, merge`. */
export function methodName({ title }: Pick<MergeMethod, 'title'>): string {
  return title.split(' — ')[0] ?? title;
}
