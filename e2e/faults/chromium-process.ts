/** A Chromium of our own that can be killed like a power cut kills it: with SIGKILL, every process at once. Linux and macOS. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { type Browser, chromium, type Page } from 'playwright';
import { CHROMIUM_ARGS, findChromium, SWIFTSHADER_ARGS } from '../setup-chromium.mjs';

export interface ChromiumProcess {
  browser: Browser;
  page: Page;
  pid: number;
  /** SIGKILL to every process of the browser; resolves when they are gone. */
  kill(): Promise<void>;
  close(): Promise<void>;
}

const START_MS = 60_000;

/** Starts a browser on a profile folder, which outlives it, and opens an empty page. */
export async function startChromium(profile: string, args: string[] = []): Promise<ChromiumProcess> {
  const executable = findChromium();
  if (!executable) throw new Error('no Chromium; see npm run setup');
  const portFile = join(profile, 'DevToolsActivePort');
  rmSync(portFile, { force: true });
  const child = spawn(
    executable,
    [
      '--headless=new',
      '--no-sandbox',
      // where it is small, as in a container, a page dies of it
      '--disable-dev-shm-usage',
      ...CHROMIUM_ARGS,
      ...SWIFTSHADER_ARGS,
      `--user-data-dir=${profile}`,
      '--remote-debugging-port=0',
      ...args,
      'about:blank',
    ],
    // a group of its own, so that one signal reaches the GPU process and the renderers too
    { detached: true, stdio: 'ignore' },
  );
  const pid = child.pid!;
  // a test that is itself interrupted leaves no browser behind
  const onExit = () => {
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // it is gone already
    }
  };
  process.once('exit', onExit);
  child.once('exit', () => process.off('exit', onExit));
  try {
    const port = await portOf(portFile, child);
    const browser = await chromium.connectOverCDP(`http://127.0.0.1:${port}`, { timeout: START_MS });
    const context = browser.contexts()[0]!;
    const page = context.pages()[0] ?? (await context.newPage());
    return {
      browser,
      page,
      pid,
      kill: () => killGroup(child),
      async close() {
        const session = await browser.newBrowserCDPSession();
        await session.send('Browser.close').catch(() => undefined);
        await exited(child, 5000);
        await killGroup(child);
      },
    };
  } catch (thrown) {
    await killGroup(child);
    throw thrown;
  }
}

async function portOf(file: string, child: ChildProcess): Promise<number> {
  for (let waited = 0; waited < START_MS; waited += 50) {
    if (child.exitCode !== null) throw new Error(`Chromium ended with ${child.exitCode}`);
    const port = existsSync(file) ? Number(readFileSync(file, 'utf8').split('\n')[0]) : 0;
    if (port > 0) return port;
    await delay(50);
  }
  throw new Error('Chromium does not answer');
}

/** Kills the group and waits until its leader is gone; the dead of the rest may linger until somebody reaps them. */
async function killGroup(child: ChildProcess): Promise<void> {
  for (let tried = 0; tried < 3; tried++) {
    try {
      process.kill(-child.pid!, 'SIGKILL');
    } catch {
      return; // nobody is left
    }
    await exited(child, 30_000);
    await delay(50);
  }
}

async function exited(child: ChildProcess, patienceMs: number): Promise<void> {
  for (let waited = 0; waited < patienceMs; waited += 20) {
    if (child.exitCode !== null || child.signalCode !== null) return;
    await delay(20);
  }
}
