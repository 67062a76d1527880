/**
 * Which process something on the disk belongs to. A process is known by its number and the moment it started: the number
 * alone is given to another process sooner or later, at the latest after the machine was started anew.
 */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import process from 'node:process';
import { promisify } from 'node:util';

/** What this process leaves with what is its own; empty where the system does not say when it started. */
export async function ownNote(): Promise<string> {
  const started = await startOf(process.pid);
  return started === undefined ? '' : `${process.pid} ${started}`;
}

/** The number of the process that left the note, if it is still there. */
export async function livingOwner(note: string): Promise<number | undefined> {
  const [, number, started] = /^(\d{1,10}) (.+)$/.exec(note) ?? [];
  const pid = Number(number);
  return number !== undefined && (await startOf(pid)) === started ? pid : undefined;
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
