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

function readdirOf(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return []; // the process has ended
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
 * The part of {@link browserBytes} that the browser made itself, swapped out or not. Pages of its program are left out: how
 * much of them counts depends on how many other browsers run on the machine.
 */
export function browserOwnBytes(root: number): number {
  return browsers(root).reduce((sum, pid) => {
    const rollup = readOf(`/proc/${pid}/smaps_rollup`) ?? '';
    const parts = rollup.matchAll(/^(?:Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+)/gm);
    return [...parts].reduce((all, [, kilobytes]) => all + Number(kilobytes) * 1024, sum);
  }, 0);
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

/** Processor seconds of one thread of a browser process. */
export interface ThreadSeconds {
  name: string;
  user: number;
  system: number;
}

/**
 * Samples the processor time of every thread of the browser processes below `root`; `stop` returns what each has used
 * meanwhile, those that have ended by their last sample, the busiest first.
 */
export function watchThreads(root: number, everyMs = 50): { stop(): ThreadSeconds[] } {
  const first = new Map<string, ThreadSeconds>();
  const last = new Map<string, ThreadSeconds>();
  const sample = (isFirst: boolean) => {
    for (const pid of browsers(root)) {
      const threads = readdirOf(`/proc/${pid}/task`);
      for (const thread of threads) {
        const key = `${pid}/${thread}`;
        const stat = readStat(`${pid}/task/${thread}`);
        if (!stat) continue;
        const name = readOf(`/proc/${pid}/task/${thread}/comm`)?.trim() ?? '';
        const seconds = { name, user: Number(stat[11]) / 100, system: Number(stat[12]) / 100 };
        if (isFirst) first.set(key, seconds);
        last.set(key, seconds);
      }
    }
  };
  sample(true);
  const timer = setInterval(() => sample(false), everyMs);
  return {
    stop() {
      clearInterval(timer);
      sample(false);
      return [...last]
        .map(([key, { name, user, system }]) => {
          const before = first.get(key) ?? { user: 0, system: 0 };
          return { name, user: user - before.user, system: system - before.system };
        })
        .sort((a, b) => b.user + b.system - a.user - a.system);
    },
  };
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
