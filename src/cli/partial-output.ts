import { execFile } from 'node:child_process';
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { AmalgamError } from '../errors';

/** In an output folder that is not finished: the journal of its run, and which process writes it. */
export const JOURNAL = '.amalgam-run.jsonl';
export const OWNER = '.amalgam-run.pid';

/**
 * The folder that an interrupted run left, the newest when there are several; undefined when there is none.
 * @param stems what its path begins with, up to eight hexadecimal digits
 */
export async function findPartial(stems: readonly string[]): Promise<string | undefined> {
  const found: { folder: string; at: number }[] = [];
  for (const stem of stems) {
    const siblings = await readdir(dirname(stem)).catch((): string[] => []);
    for (const name of siblings) {
      const prefix = basename(stem);
      if (!name.startsWith(prefix) || !/^[0-9a-f]{8}$/.test(name.slice(prefix.length))) continue;
      const folder = join(dirname(stem), name);
      const journal = await stat(join(folder, JOURNAL)).catch(() => undefined);
      if (journal?.isFile()) found.push({ folder, at: journal.mtimeMs });
    }
  }
  return found.sort((a, b) => b.at - a.at)[0]?.folder;
}

/**
 * Notes that this process writes the folder. A process is known by its number and the moment it started: the number
 * alone is given to another process sooner or later, at the latest after the machine was started anew.
 * @throws Busy when another one does that is still alive
 */
export async function claimPartial(folder: string): Promise<void> {
  const file = join(folder, OWNER);
  const [, number, started] = /^(\d{1,10}) (.+)$/.exec(await readFile(file, 'utf8').catch(() => '')) ?? [];
  const owner = Number(number);
  if (number !== undefined && owner !== process.pid && (await startOf(owner)) === started) {
    throw new AmalgamError(
      'Busy',
      `The process ${owner}, another Amalgam, is still writing ${basename(folder)}.`,
      'Wait until it is finished, or end it.',
    );
  }
  await rm(file, { force: true });
  const own = await startOf(process.pid);
  if (own !== undefined) await writeFile(file, `${process.pid} ${own}`, { flag: 'wx' });
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
