import { useCallback, useEffect, useRef, useState } from 'react';
import { type ErrorReport, errorReport } from '../../errors';
import { sameItems } from '../../merge/prediction/same-items';

/**
 * Work that was asked for: what is at work, and why the last of it failed, which does not count where it was canceled. Its
 * signal fires when `cancel` is called, other work begins, or the component goes.
 */
export function useAttempt<W extends string>() {
  const [working, setWorking] = useState<W | null>(null);
  const [error, setError] = useState<ErrorReport | null>(null);
  const stop = useRef<AbortController>(null);
  const cancel = useCallback(() => stop.current?.abort(), []);
  useEffect(() => cancel, [cancel]);
  const attempt = useCallback(
    async (what: W, work: (signal: AbortSignal) => Promise<unknown>) => {
      cancel();
      const own = new AbortController();
      stop.current = own;
      setWorking(what);
      setError(null);
      try {
        await work(own.signal);
      } catch (thrown) {
        const report = errorReport(thrown);
        if (report.code !== 'Canceled' && !own.signal.aborted) setError(report);
      } finally {
        if (stop.current === own) {
          stop.current = null;
          setWorking(null);
        }
      }
    },
    [cancel],
  );
  return { working, error, attempt, cancel };
}

/** A slider that has not moved for so long rests. */
export const REST_MS = 200;

/**
 * A value as it was when it last stood still for so many milliseconds: for what need not follow a slider step by step.
 * @param ms 0: the value itself
 */
export function useDebounced<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return ms === 0 ? value : settled;
}

/** The list given before where it has the same members, so that what depends on it is not computed again. */
export function useSameList<T>(list: readonly T[]): readonly T[] {
  const before = useRef(list);
  if (!sameItems(list, before.current)) before.current = list;
  return before.current;
}
