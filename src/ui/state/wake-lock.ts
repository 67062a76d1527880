/**
 * Keeps the screen on and asks before the tab closes, for as long as a merge runs. Browsers without wake locks, and
 * refusals (low battery), only mean that the screen may go dark: the merge goes on.
 */
export function stayAwake(): () => void {
  const ask = (event: BeforeUnloadEvent) => event.preventDefault();
  addEventListener('beforeunload', ask);
  let released = false;
  let lock: WakeLockSentinel | undefined;
  navigator.wakeLock?.request('screen').then(
    (held) => {
      if (released) void held.release();
      else lock = held;
    },
    () => undefined,
  );
  return () => {
    released = true;
    removeEventListener('beforeunload', ask);
    void lock?.release();
  };
}
