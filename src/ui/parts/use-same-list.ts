import { useRef } from 'react';

/** The list given before where it has the same members, so that what depends on it is not computed again. */
export function useSameList<T>(list: readonly T[]): readonly T[] {
  const before = useRef(list);
  const same = list.length === before.current.length && list.every((entry, i) => entry === before.current[i]);
  if (!same) before.current = list;
  return before.current;
}
