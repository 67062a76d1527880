/** Programs that are timed: a Node program with all that it takes, any other by the clock. */
import { spawn } from 'node:child_process';
import process from 'node:process';
import type { Readable } from 'node:stream';

export interface Spent {
  /** By the clock, from the start to the exit. */
  seconds: number;
  /** Processor time in seconds, of all threads. */
  user: number;
  system: number;
  /** Largest resident set in bytes. */
  peakBytes: number;
}

/**
 * Loaded before the program: at exit it writes the used resources to a pipe. Its threads load it too, and write nothing. Linux
 * says of its own peak (VmHWM) what `maxRSS` does not: that one begins at the peak of the process that started this one.
 */
const TELL = `data:text/javascript,${encodeURIComponent(`
import { existsSync, readFileSync, writeSync } from 'node:fs';
import process from 'node:process';
import { isMainThread } from 'node:worker_threads';
const peak = () =>
  existsSync('/proc/self/status') && /VmHWM:\\s*(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'));
const tell = () => {
  const used = process.resourceUsage();
  writeSync(3, JSON.stringify({ ...used, maxRSS: Number(peak()?.[1] ?? used.maxRSS) }));
};
if (isMainThread) process.once('exit', tell);`)}`;

/** Characters shown of a failed program's output. */
const SAID = 2000;

/** Runs a Node program to its end. @param args its file and arguments @throws Error with what it said when it fails */
export async function timeNode(args: readonly string[], cwd: string): Promise<Spent> {
  let told = '';
  const seconds = await timed(process.execPath, ['--import', TELL, ...args], cwd, (piece) => (told += piece));
  const { userCPUTime, systemCPUTime, maxRSS } = JSON.parse(told) as NodeJS.ResourceUsage;
  // microseconds, kilobytes
  return { seconds, user: userCPUTime / 1e6, system: systemCPUTime / 1e6, peakBytes: maxRSS * 1024 };
}

/** Runs a program to its end. @returns seconds by the clock @throws Error with what it said when it fails */
export function timeProgram(program: string, args: readonly string[], cwd: string): Promise<number> {
  return timed(program, args, cwd, () => undefined);
}

async function timed(
  program: string,
  args: readonly string[],
  cwd: string,
  tell: (piece: string) => void,
): Promise<number> {
  const begin = performance.now();
  const child = spawn(program, args, { cwd, stdio: ['ignore', 'pipe', 'pipe', 'pipe'] });
  let said = '';
  const hear = (piece: Buffer) => {
    said = (said + piece.toString()).slice(-SAID);
  };
  child.stdout?.on('data', hear);
  child.stderr?.on('data', hear);
  (child.stdio[3] as Readable).on('data', (piece: Buffer) => tell(piece.toString()));
  let seconds = 0;
  child.once('exit', () => {
    seconds = (performance.now() - begin) / 1000;
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (code !== 0) throw new Error(`${program} ended with ${code}: … ${said.trim()}`);
  return seconds;
}
