/** Whether two values say the same: plain values, arrays and objects, compared to the bottom. */
export function isDeepEqual(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [of, other] = [Object.entries(a), new Map(Object.entries(b))];
  return (
    of.length === other.size &&
    of.every(([key, value]) => other.has(key) && isDeepEqual(value, other.get(key)))
  );
}

/** Gives the previous object where the new one is deeply equal to it. */
export function previousIfEqual<T>(now: T, before: T | undefined): T {
  return before !== undefined && isDeepEqual(now, before) ? before : now;
}
