import { useRef } from 'react';
import { sameItems } from '../../merge/prediction/same-items';

/** The list given before where it has the same members, so that what depends on it is not computed again. */
export function useSameList<T>(list: readonly T[]): readonly T[] {
  const before = useRef(list);
  if (!sameItems(list, before.current)) before.current = list;
  return before.current;
}
