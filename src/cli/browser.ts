import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import process from 'node:process';
import { type BrowserContext, chromium, type Page } from 'playwright';
import { CHROMIUM_ARGS, findChromium, GPU_ARGS } from '../../e2e/setup-chromium.mjs';
import { AmalgamError, type ErrorReport, fromErrorReport } from '../errors';
import { temporaryFolder } from '../host/node/temporary';
import type { WorkerCalls } from '../worker/calls';
import type { Outcome } from '../worker/remote';

/** The studio's page in a Chromium of its own. */
export interface StudioPage {
  /** The page's calls. They reject with what its worker threw, and with WorkerDied when the page is gone. */
  calls: WorkerCalls;
  /** Ends the browser and removes its profile. Calls under way fail. */
  close(): Promise<void>;
}

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
    const page = await start(executablePath, url, GPU_ARGS);
    const { webgpu } = await page.calls.info();
    if (webgpu.available && !webgpu.isFallback) return page;
    await page.close();
  }
  return start(executablePath, url, []);
}

/** Chromium's sandbox needs a user that is not root. @param uid of the process; undefined on Windows */
export const hasSandbox = (uid = process.getuid?.()): boolean => uid !== 0;

async function start(executablePath: string, url: string, args: readonly string[]): Promise<StudioPage> {
  const profile = await temporaryFolder('amalgam-profile-');
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
      chromiumSandbox: hasSandbox(),
      // The command itself takes signals, so that it can remove what it began.
      handleSIGINT: false,
      handleSIGTERM: false,
      handleSIGHUP: false,
    });
    const page = context.pages()[0] ?? (await context.newPage());
    return { calls: await openCalls(page, url), close };
  } catch (thrown) {
    await close();
    if (thrown instanceof Error && /no usable sandbox|sandbox_host/i.test(thrown.message)) {
      throw new AmalgamError(
        'WorkerDied',
        'Chromium could not set up its sandbox, which keeps data from models and servers away from your files.',
        'Allow user namespaces on this machine, or use --engine cpu, which needs no browser.',
        { cause: thrown },
      );
    }
    throw thrown;
  }
}

/**
 * Opens the headless page of a studio and hands out its calls.
 * @param url where the studio is served
 * @throws WorkerDied when the page does not start
 */
export async function openCalls(page: Page, url: string): Promise<WorkerCalls> {
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

  // only lines on a terminal: a page that is closing may lose one
  let tell: (progress: unknown) => void = () => {};
  await page.exposeFunction('amalgamProgress', (progress: unknown) => tell(progress));
  const call = async (name: string, args: unknown[]): Promise<unknown> => {
    const print = args.at(-1);
    const reports = typeof print === 'function';
    if (reports) tell = print as typeof tell;
    let outcome: Outcome;
    try {
      const request = { name, args: reports ? args.slice(0, -1) : args, reports };
      outcome = await Promise.race([page.evaluate(callInPage, request), crashed]);
    } catch (thrown) {
      if (thrown instanceof AmalgamError) throw thrown;
      throw pageDied(complaints.at(-1) ?? (thrown as Error).message);
    }
    if ('error' in outcome) throw fromErrorReport(outcome.error);
    return outcome.value;
  };
  return new Proxy({} as WorkerCalls, {
    get: (_, name) => (name === 'then' ? undefined : (...args: unknown[]) => call(String(name), args)),
  });
}

interface PageCall {
  name: string;
  args: unknown[];
  reports: boolean;
}

/** Runs in the page, alone. The tensors that a job finished come with its report, and are no line on a terminal. */
async function callInPage({ name, args, reports }: PageCall): Promise<Outcome> {
  const calls = window.amalgamHeadless as unknown as Record<string, (...all: unknown[]) => Promise<unknown>>;
  const tell = reports
    ? [
        ({ finished: _, ...line }: { finished?: unknown }) =>
          window.amalgamProgress?.(line).catch(() => undefined),
      ]
    : [];
  try {
    return { value: await calls[name]!(...args, ...tell) };
  } catch (thrown) {
    const { code, message, hint } = thrown as ErrorReport;
    return { error: { code, message, hint } };
  }
}

function pageDied(why: string): AmalgamError {
  return new AmalgamError(
    'WorkerDied',
    `The browser stopped before the work was done (${why}).`,
    'Run the command again. If memory is short, close other programs or use --engine cpu.',
  );
}
