/** Memory of the browser processes below a process; Linux only, from /proc. */
import { readdirSync, readFileSync } from 'node:fs';

/** Proportional set size in bytes of every browser process below `root`. */
export function browserBytes(root: number): number {
  const parents = new Map<number, number>();
  for (const pid of readdirSync('/proc').map(Number).filter(Number.isInteger)) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      parents.set(pid, Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
    } catch {
      // the process ended while the list was read
    }
  }
  const isBelow = (pid: number): boolean => {
    for (let p: number | undefined = pid; p !== undefined && p > 1; p = parents.get(p))
      if (p === root) return true;
    return false;
  };
  let total = 0;
  for (const pid of parents.keys()) {
    if (!isBelow(pid)) continue;
    try {
      if (!/chrom/.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8'))) continue;
      const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
      total += Number(/^Pss:\s+(\d+)/m.exec(rollup)?.[1] ?? 0) * 1024;
    } catch {
      // as above
    }
  }
  return total;
}

/** Samples {@link browserBytes} until it is stopped; `stop` returns the peak. */
export function watchMemory(root: number, everyMs = 250): { stop(): number } {
  let peak = 0;
  const sample = () => {
    peak = Math.max(peak, browserBytes(root));
  };
  const timer = setInterval(sample, everyMs);
  return {
    stop() {
      clearInterval(timer);
      sample();
      return peak;
    },
  };
}
