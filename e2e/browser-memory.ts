/** Memory of the browser processes below a process; Linux only, from /proc. */
import { readdirSync, readFileSync } from 'node:fs';

/** Every browser process below `root`. */
function browsers(root: number): number[] {
  const parents = new Map<number, number>();
  for (const pid of readdirSync('/proc').map(Number).filter(Number.isInteger)) {
    const stat = readStat(pid);
    if (stat) parents.set(pid, Number(stat[1]));
  }
  const isBelow = (pid: number): boolean => {
    for (let p: number | undefined = pid; p !== undefined && p > 1; p = parents.get(p))
      if (p === root) return true;
    return false;
  };
  return [...parents.keys()].filter(
    (pid) => isBelow(pid) && /chrom|firefox/.test(readOf(`/proc/${pid}/cmdline`) ?? ''),
  );
}

/** A file of a process, or undefined when the process ended while it was read. */
function readOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** The fields of /proc/PID/stat from the state on, which is number 0. */
function readStat(pid: number | string): string[] | undefined {
  const stat = readOf(`/proc/${pid}/stat`);
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/** Proportional set size in bytes of every browser process below `root`. */
export function browserBytes(root: number): number {
  return browsers(root).reduce((sum, pid) => {
    const rollup = readOf(`/proc/${pid}/smaps_rollup`) ?? '';
    return sum + Number(/^Pss:\s+(\d+)/m.exec(rollup)?.[1] ?? 0) * 1024;
  }, 0);
}

/**
 * The part of {@link browserBytes} that the processes made themselves, swapped out or not: of the browser's own process, which
 * keeps the names of stored files, and of all others, which run the page. Pages of the program are left out: how much of them
 * counts depends on how many other browsers run on the machine.
 */
export function browserOwnBytes(root: number): { browser: number; page: number } {
  const own = { browser: 0, page: 0 };
  for (const pid of browsers(root)) {
    const rollup = readOf(`/proc/${pid}/smaps_rollup`) ?? '';
    const kind = /--type=/.test(readOf(`/proc/${pid}/cmdline`) ?? '') ? 'page' : 'browser';
    for (const [, kilobytes] of rollup.matchAll(/^(?:Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+)/gm))
      own[kind] += Number(kilobytes) * 1024;
  }
  return own;
}

/** Open files, pipes and sockets of every browser process below `root`. */
export function browserFiles(root: number): number {
  return browsers(root).reduce((sum, pid) => {
    try {
      return sum + readdirSync(`/proc/${pid}/fd`).length;
    } catch {
      return sum; // it ended meanwhile
    }
  }, 0);
}

/** Seconds of processor time that the browser processes below `root` have used, at 100 ticks a second. */
export function browserSeconds(root: number): { user: number; system: number } {
  let [user, system] = [0, 0];
  for (const pid of browsers(root)) {
    const stat = readStat(pid);
    user += Number(stat?.[11] ?? 0) / 100;
    system += Number(stat?.[12] ?? 0) / 100;
  }
  return { user, system };
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
