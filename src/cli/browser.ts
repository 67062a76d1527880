import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { type BrowserContext, chromium, type Page } from 'playwright';
import { CHROMIUM_ARGS, findChromium } from '../../e2e/setup-chromium.mjs';
import { AmalgamError, type ErrorCode } from '../errors';
import type { AnyProgress, HeadlessCalls, Outcome } from './headless-calls';

/** The studio's page in a Chromium of its own. */
export interface StudioPage {
  /** Calls the page. @throws AmalgamError what the page's engine threw, WorkerDied when the page is gone. */
  call<K extends keyof HeadlessCalls>(name: K, ...args: Parameters<HeadlessCalls[K]>): Promise<ValueOf<K>>;
  onProgress(print: (progress: AnyProgress) => void): Promise<void>;
  /** Ends the browser and removes its profile. Calls under way fail. */
  close(): Promise<void>;
}

type ValueOf<K extends keyof HeadlessCalls> =
  Awaited<ReturnType<HeadlessCalls[K]>> extends Outcome<infer T> ? T : never;

/** Headless Chromium reaches a GPU on Linux through Vulkan only, and then wants it for everything. */
const LINUX_GPU_ARGS = ['--use-angle=vulkan', '--enable-features=Vulkan', '--disable-vulkan-surface'];

const START_TIMEOUT_MS = 60_000;

/**
 * Opens the headless page. Where the machine shows a GPU the browser is started for it; without one, or when that
 * gives no WebGPU adapter, Chromium chooses for itself and brings its software adapter.
 *
 * @param url the app server's address
 * @throws Usage when no Chromium is installed, WorkerDied when the page does not start.
 */
export async function openStudioPage(url: string): Promise<StudioPage> {
  const executablePath = findChromium();
  if (executablePath === undefined) {
    throw new AmalgamError(
      'Usage',
      'The headless command needs Chromium or Chrome, and none was found.',
      'Run "npm run setup", or set CHROMIUM_PATH to the program file.',
    );
  }
  if (
    process.platform === 'linux' &&
    ['/dev/nvidia0', '/dev/dri/renderD128'].some((path) => existsSync(path))
  ) {
    const page = await start(executablePath, url, LINUX_GPU_ARGS);
    const { webgpu } = await page.call('facts');
    if (webgpu.available && !webgpu.isFallback) return page;
    await page.close();
  }
  return start(executablePath, url, []);
}

async function start(executablePath: string, url: string, args: string[]): Promise<StudioPage> {
  const profile = await mkdtemp(join(tmpdir(), 'amalgam-profile-'));
  let context: BrowserContext | undefined;
  const close = async (): Promise<void> => {
    // A browser that crashed is closed already; its profile goes all the same.
    await context?.close().catch(() => undefined);
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    context = await chromium.launchPersistentContext(profile, {
      executablePath,
      args: [...CHROMIUM_ARGS, ...args],
      // The command itself takes signals, so that it can remove what it began.
      handleSIGINT: false,
      handleSIGTERM: false,
      handleSIGHUP: false,
    });
    const page = context.pages()[0] ?? (await context.newPage());
    return { ...(await startPage(page, url)), close };
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

async function startPage(page: Page, url: string): Promise<Omit<StudioPage, 'close'>> {
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  const crashed = new Promise<never>((_, reject) =>
    page.on('crash', () => reject(pageDied('the page crashed'))),
  );
  // Nobody may be waiting when it crashes.
  crashed.catch(() => undefined);

  try {
    await page.goto(`${url}#headless`, { timeout: START_TIMEOUT_MS });
    await page.waitForFunction(() => window.amalgamHeadless !== undefined, undefined, {
      timeout: START_TIMEOUT_MS,
    });
  } catch (thrown) {
    throw pageDied(complaints.join('; ') || (thrown as Error).message);
  }

  return {
    async call(name, ...args) {
      let outcome: Outcome<unknown>;
      try {
        const called = page.evaluate(
          ([method, values]) => (window.amalgamHeadless as unknown as AnyCalls)[method]!(...values),
          [name, args] as [string, unknown[]],
        );
        outcome = await Promise.race([called, crashed]);
      } catch (thrown) {
        if (thrown instanceof AmalgamError) throw thrown;
        throw pageDied(complaints.at(-1) ?? (thrown as Error).message);
      }
      if ('error' in outcome) {
        const { code, message, hint } = outcome.error;
        throw new AmalgamError(code as ErrorCode, message, hint);
      }
      return outcome.value as ValueOf<typeof name>;
    },
    async onProgress(print) {
      await page.exposeFunction('amalgamProgress', print);
    },
  };
}

type AnyCalls = Record<string, (...args: unknown[]) => Promise<Outcome<unknown>>>;

function pageDied(why: string): AmalgamError {
  return new AmalgamError(
    'WorkerDied',
    `The browser stopped before the work was done (${why}).`,
    'Run the command again. If memory is short, close other programs or use --engine cpu.',
  );
}
