import { useState } from 'react';
import { type ErrorReport, errorReport } from '../../errors';

/** Work that was asked for: what is at work, and why the last of it failed, which does not count where it was canceled. */
export function useAttempt<W extends string>() {
  const [working, setWorking] = useState<W | null>(null);
  const [error, setError] = useState<ErrorReport | null>(null);
  const attempt = async (what: W, work: () => Promise<unknown>) => {
    setWorking(what);
    setError(null);
    try {
      await work();
    } catch (thrown) {
      const report = errorReport(thrown);
      if (report.code !== 'Canceled') setError(report);
    } finally {
      setWorking(null);
    }
  };
  return { working, error, attempt };
}
