/**
 * Process that something on the disk belongs to. It is identified by its number, the moment it started and its PID
 * namespace: numbers are reused, and two containers that share a folder number their processes alike. A process that is
 * invisible from here is judged by its file alone, which it touches as long as it lives.
 */
import { execFile } from 'node:child_process';
import { utimesSync } from 'node:fs';
import { readFile, readlink, stat } from 'node:fs/promises';
import process from 'node:process';
import { promisify } from 'node:util';

const TOUCH_MS = 5_000;
/** A process that has not touched its file for so long is gone, or its container is. */
const STALE_MS = 60_000;

/** Note that identifies this process as owner of its files; empty where the system does not report its start. */
export async function ownNote(): Promise<string> {
  const started = await startOf(process.pid);
  const place = await placeOfNumbers();
  return started === undefined ? '' : `${process.pid} ${started}${place === undefined ? '' : ` ${place}`}`;
}

/** The number of the process that left the note in a file, if it is still there. */
export async function livingOwner(note: string, file: string): Promise<number | undefined> {
  const [, number, started, place] = /^(\d{1,10}) (.+?)(?: (pid:\[\d+\]))?$/.exec(note) ?? [];
  if (number === undefined || started === undefined) return undefined;
  const pid = Number(number);
  if (place !== undefined && !(await isSeenFromHere(started, place))) {
    const touched = await stat(file).catch(() => undefined);
    return touched && Date.now() - touched.mtimeMs < STALE_MS ? pid : undefined;
  }
  return (await startOf(pid)) === started ? pid : undefined;
}

/** Whether the number counts here: on this machine, since it was started, in this container. */
async function isSeenFromHere(started: string, place: string): Promise<boolean> {
  const boot = (await startOf(process.pid))?.split(' ')[0];
  return boot === started.split(' ')[0] && place === (await placeOfNumbers());
}

/** The namespace of process numbers (pid_namespaces(7)); undefined where the system has none. */
function placeOfNumbers(): Promise<string | undefined> {
  return readlink('/proc/self/ns/pid').catch(() => undefined);
}

const held = new Set<string>();
let touching: NodeJS.Timeout | undefined;

/** Touches a note as long as this process lives, or until it is let go. */
export function hold(file: string): void {
  held.add(file);
  touching ??= setInterval(touch, TOUCH_MS).unref();
}

export function letGo(file: string): void {
  held.delete(file);
  if (held.size > 0) return;
  clearInterval(touching);
  touching = undefined;
}

function touch(): void {
  const now = new Date();
  for (const file of held) {
    try {
      utimesSync(file, now, now);
    } catch {
      held.delete(file); // it was taken away, and with it what it held
    }
  }
}

/** When a process started, in whatever words the system has for it; undefined when there is no such process. */
export async function startOf(pid: number): Promise<string | undefined> {
  if (process.platform === 'linux') {
    const line = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
    // the name in parentheses may hold anything; starttime is field 22, the 20th behind it (proc_pid_stat(5))
    const ticks = line?.slice(line.lastIndexOf(')') + 2).split(' ')[19];
    if (ticks === undefined) return undefined;
    return `${(await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()} ${ticks}`;
  }
  const [program, args] =
    process.platform === 'win32'
      ? ['powershell', ['-NoProfile', '-Command', `(Get-Process -Id ${pid}).StartTime.Ticks`]]
      : ['ps', ['-o', 'lstart=', '-p', String(pid)]];
  const { stdout } = await promisify(execFile)(program as string, args as string[]).catch(() => ({
    stdout: '',
  }));
  return stdout.trim() || undefined;
}
