/** The studio in the browser that is measured, called from Node. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import type { Browser, Page } from 'puppeteer-core';
import { type ErrorReport, fromErrorReport } from '../../src/errors';
import type { WorkerCalls } from '../../src/worker/calls';
import type { Outcome } from '../../src/worker/remote';
import { browserBytes, browserSeconds, watchMemory } from '../browser-memory';
import { missingPackages, startChromium } from '../browsers/launch';
import type { BuiltStudio } from '../built-studio';
import { SWIFTSHADER_ARGS } from '../setup-chromium.mjs';

/** A merge may take as long as it takes. */
const FOR_EVER = 0;

export interface Studio {
  page: Page;
  calls: WorkerCalls;
}

/**
 * A Chromium that may write folders of the disk dropped on a page of `origin`.
 * @throws Error that names what is to be installed
 */
export async function startBrowser(profile: string, origin: string): Promise<Browser> {
  const missing = missingPackages(['chromium']).join(' ');
  if (missing) throw new Error(`Chromium needs what is not installed: sudo apt-get install ${missing}`);
  mkdirSync(profile, { recursive: true });
  allowFolders(profile, origin);
  return startChromium(profile, SWIFTSHADER_ARGS, FOR_EVER);
}

/** Grants access to folders by Chromium's site settings, because nobody is there to answer the prompt. */
function allowFolders(profile: string, origin: string): void {
  const file = join(profile, 'Default', 'Preferences');
  mkdirSync(join(profile, 'Default'), { recursive: true });
  const stored = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Settings) : {};
  const allowed = { [`${origin},*`]: { setting: 1 } };
  const { profile: { content_settings: { exceptions, ...content } = {}, ...own } = {}, ...others } = stored;
  const guards = { file_system_read_guard: allowed, file_system_write_guard: allowed };
  const settings = { ...content, exceptions: { ...exceptions, ...guards } };
  writeFileSync(file, JSON.stringify({ ...others, profile: { ...own, content_settings: settings } }));
}

interface Settings {
  profile?: { content_settings?: { exceptions?: object } };
}

/** Opens the page of the studio's calls. */
export async function openStudio(browser: Browser, { callsUrl }: BuiltStudio): Promise<Studio> {
  const page = await browser.newPage();
  page.on('pageerror', (error) => console.error(error));
  await page.goto(callsUrl);
  await page.waitForFunction('window.amalgamCalls !== undefined');
  const call = async (name: string, args: unknown[]): Promise<unknown> => {
    // progress stays in the page
    const given = args.filter((arg) => typeof arg !== 'function');
    const outcome = await page.evaluate(callInPage, name, given, given.length < args.length);
    if ('error' in outcome) throw fromErrorReport(outcome.error);
    return outcome.value;
  };
  const calls = new Proxy({} as WorkerCalls, {
    get:
      (_, name) =>
      (...args: unknown[]) =>
        call(String(name), args),
  });
  return { page, calls };
}

/** Runs in the page, alone. */
async function callInPage(name: string, args: unknown[], reports: boolean): Promise<Outcome> {
  const calls = window.amalgamCalls as unknown as Record<string, (...all: unknown[]) => Promise<unknown>>;
  try {
    return { value: await calls[name]!(...args, ...(reports ? [() => undefined] : [])) };
  } catch (thrown) {
    const { code, message, hint } = thrown as ErrorReport;
    return { error: { code, message, hint } };
  }
}

export interface Watched<T> {
  result: T;
  user: number;
  system: number;
  /** Bytes at the peak, above what the browser took before. */
  memory: number;
}

/** Runs `act` in the browser and counts the processor time and memory of all its processes. */
export async function watched<T>(act: () => Promise<T>): Promise<Watched<T>> {
  const idle = browserBytes(process.pid);
  const memory = watchMemory(process.pid);
  const begun = browserSeconds(process.pid);
  try {
    const result = await act();
    const { user, system } = browserSeconds(process.pid);
    return {
      result,
      user: user - begun.user,
      system: system - begun.system,
      memory: memory.stop() - idle,
    };
  } finally {
    memory.stop();
  }
}
