/**
 * `test` for the journeys: a Chromium with WebGPU on a profile on disk (the default context keeps OPFS in a small memory),
 * started once for the journeys of a worker of the runner. Each begins with a page of a browser that has never seen the
 * studio, and fails when the page breaks its own Content-Security-Policy, asks anyone beyond this machine, or has the name
 * of a folder of this computer in any request.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import process from 'node:process';
import AxeBuilder from '@axe-core/playwright';
import {
  type BrowserContext,
  test as base,
  chromium,
  expect,
  type Locator,
  type Page,
} from '@playwright/test';
import { TABS } from '../../src/ui/state/tabs';
import { CHROMIUM_ARGS, findChromium, SWIFTSHADER_ARGS } from '../setup-chromium.mjs';
import { HUB_URL, STUDIO_URL } from './addresses';

export { expect };

/** The project's folder. */
export const ROOT = join(import.meta.dirname, '../..');
/** The sample family on disk. */
export const SAMPLES = join(ROOT, 'public/samples');

/** A JSON file. */
export const readJson = (...path: string[]) => JSON.parse(readFileSync(join(...path), 'utf8'));

interface Journey {
  /** Whether the journey has a browser to itself, on `profile`, in which the service worker is let in. */
  ownBrowser: boolean;
  profile: string;
  ownFolder: string;
}

/** Runs `use` with a new folder, which is removed afterwards. */
async function withFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'amalgam-journey-')));
  try {
    await use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** @param serviceWorkers `block` where none is looked at: keeping the app costs as much as opening it */
function launch(profile: string, serviceWorkers: 'allow' | 'block'): Promise<BrowserContext> {
  const executablePath = findChromium();
  return chromium.launchPersistentContext(profile, {
    serviceWorkers,
    baseURL: STUDIO_URL,
    acceptDownloads: true,
    args: [...CHROMIUM_ARGS, ...SWIFTSHADER_ARGS],
    ...(executablePath ? { executablePath } : {}),
  });
}

/** A new folder for the journey that runs, gone when it ends. */
export let work: string;

/** The beginning of a text of the sample, as a file in it. */
export function beginning(name: string, characters: number): string {
  const file = join(work, `${name}.txt`);
  writeFileSync(file, readFileSync(join(SAMPLES, `texts/${name}.eval.txt`), 'utf8').slice(0, characters));
  return file;
}

/** A recipe as a file in it. */
export function recipeFile(text: string, name = 'recipe.yml'): string {
  const file = join(work, name);
  writeFileSync(file, text);
  return file;
}

export const test = base.extend<Journey, { shared: () => Promise<BrowserContext> }>({
  ownFolder: [
    // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the fixture's needs from this very pattern.
    ({}, use) =>
      withFolder(async (folder) => {
        work = folder;
        await use(folder);
      }),
    { auto: true },
  ],
  ownBrowser: [false, { option: true }],
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the fixture's needs from this very pattern.
  profile: ({}, use) => withFolder(use),
  shared: [
    // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the fixture's needs from this very pattern.
    ({}, use) =>
      withFolder(async (profile) => {
        let started: Promise<BrowserContext> | undefined;
        await use(() => {
          started ??= launch(profile, 'block');
          return started;
        });
        await (await started)?.close();
      }),
    { scope: 'worker' },
  ],
  context: async ({ ownBrowser, profile, shared }, use) => {
    const context = await (ownBrowser ? launch(profile, 'allow') : shared());
    await use(context);
    if (ownBrowser) await context.close();
  },
  page: async ({ context }, use) => {
    const page = await freshPage(context);
    const violations: string[] = [];
    page.on('console', (message) => {
      if (/Content.Security.Policy|TrustedHTML|TrustedScript/i.test(message.text()))
        violations.push(message.text());
    });
    const own = new RegExp(`^${STUDIO_URL}(samples|assets)/`);
    const requests: string[] = [];
    const note = (request: { url(): string }) => {
      const url = decodeURIComponent(request.url());
      if (/^https?:/.test(url) && !own.test(url)) requests.push(url);
    };
    context.on('request', note);
    await use(page);
    context.off('request', note);
    expect(violations).toEqual([]);
    const beyond = requests.filter((url) => !url.startsWith(STUDIO_URL));
    // journeys serve hosts of their own on this machine
    expect(beyond.filter((url) => !/^(127\.0\.0\.\d+|localhost)$/.test(new URL(url).hostname))).toEqual([]);
    const names = [...(await localNames(page)), ...(await openedFolders(page))];
    expect(requests.filter((url) => names.some((name) => url.includes(name)))).toEqual([]);
  },
});

/** A page of a browser that has never seen the studio: all others are closed, and what they stored is gone. */
export async function freshPage(context: BrowserContext): Promise<Page> {
  const page = await context.newPage();
  for (const other of context.pages()) if (other !== page) await other.close();
  await context.clearPermissions();
  const session = await context.newCDPSession(page);
  await session.send('Storage.clearDataForOrigin', {
    origin: new URL(STUDIO_URL).origin,
    storageTypes: 'all',
  });
  await session.detach();
  return page;
}

/** Runs the command as it is installed, in the project's folder. */
export async function amalgam(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ code: number; stdout: string; stderr: string }> {
  const options = { cwd: ROOT, env: { ...process.env, ...env } };
  const told = await new Promise<Awaited<ReturnType<typeof amalgam>>>((resolve) => {
    execFile(process.execPath, ['src/cli/amalgam.mjs', ...args], options, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    );
  });
  // whatever has errors says once what they are
  if (/± \d/.test(told.stdout)) expect(told.stdout).toContain('±: ');
  return told;
}

/** Opens the studio as somebody sees it first, with the sample ready. */
export async function openSample(page: Page): Promise<void> {
  await page.goto('/');
  await expect(page.getByText(/^Ready:/)).toBeVisible();
}

/** Opens a place of the top bar, or a tab of Merge by its name. */
export async function show(
  page: Page,
  name: string,
  click = (target: Locator): Promise<void> => target.click(),
): Promise<void> {
  const isTab = TABS.some(({ text }) => text === name);
  if (isTab && !(await page.locator('.tabs-bar').isVisible()))
    await click(page.getByRole('link', { name: 'Merge', exact: true }));
  await click(
    isTab
      ? page.getByRole('tab', { name: new RegExp(`^${name}`) })
      : page.getByRole('navigation', { name: 'Places' }).getByRole('link', { name: new RegExp(`^${name}`) }),
  );
}

/** Chooses the method of the recipe by its id. */
export const chooseMethod = async (page: Page, id: string): Promise<void> => {
  await page.getByRole('combobox', { name: 'Merge method' }).selectOption(id);
};

/** Unfolds the settings of a contributor. */
export const unfold = (page: Page, name: string): Promise<void> =>
  page.getByRole('button', { name: `Settings of ${name}` }).click();

/** Merges what is ready. */
export async function merge(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  await expect(page.getByText(/^Merged in/).first()).toBeVisible();
}

/** Actions of a person, counted. */
export function counting() {
  let clicks = 0;
  const begun = performance.now();
  return {
    click: async (target: Locator) => {
      clicks++;
      await target.click();
    },
    clicks: () => clicks,
    /** Notes clicks and seconds so far as those of a way to merged files, for docs/studio.md. */
    measured(way: string) {
      const seconds = ((performance.now() - begun) / 1000).toFixed(1);
      test.info().annotations.push({ type: way, description: `${clicks} clicks, ${seconds} s` });
    },
  };
}

/** Merges what is ready and takes its files, by clicks that are counted. */
export async function fetchMerged(page: Page, click: (target: Locator) => Promise<void>): Promise<void> {
  await click(page.getByRole('button', { name: 'Merge', exact: true }));
  await expect(page.getByText(/^Merged in/)).toBeVisible();
  const download = page.waitForEvent('download');
  await click(page.getByRole('button', { name: 'Save files' }));
  await (await download).path();
}

/** A file that the page offers, taken by its button. */
export async function downloaded(page: Page, file: string | RegExp) {
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: typeof file === 'string' ? `Download ${file}` : file }).click();
  const taken = await download;
  const path = await taken.path();
  return { path, name: taken.suggestedFilename(), bytes: readFileSync(path) };
}

/** Where the hub can be set: it is the fake one from here on. */
export async function pointAtFakeHub(page: Page): Promise<void> {
  await page.getByText('Access token and hub').click();
  await page.getByLabel('Hub', { exact: true }).fill(HUB_URL);
  await page.getByLabel('Hub', { exact: true }).press('Enter');
}

/** Serious issues by axe within `parts`: every rule in the light theme, the colors again in the dark one. */
export async function seriousIssues(page: Page, ...parts: string[]): Promise<string[]> {
  const found: string[] = [];
  for (const colorScheme of ['light', 'dark'] as const) {
    // without motion: a color in the middle of its change has no contrast to speak of
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    const axe = new AxeBuilder({ page }).setLegacyMode(true).options({ resultTypes: ['violations'] });
    for (const part of parts) axe.include(part);
    if (colorScheme === 'dark') axe.withRules('color-contrast');
    const { violations } = await axe.analyze();
    for (const { id, impact, nodes } of violations) {
      if (impact === 'serious' || impact === 'critical')
        found.push(`${colorScheme} ${parts}: ${id} at ${nodes.map((n) => n.target.join(' ')).join(', ')}`);
    }
  }
  return found;
}

/** Names of local models in the recipe that the page saved. */
export async function localNames(page: Page): Promise<string[]> {
  if (page.isClosed() || !page.url().startsWith(STUDIO_URL)) return [];
  const text = await page.evaluate(() => localStorage.getItem('amalgam.draft'));
  const { recipe }: { recipe?: { origins?: Record<string, { kind: string }> } } = JSON.parse(text ?? '{}');
  return Object.entries(recipe?.origins ?? {}).flatMap(([name, { kind }]) =>
    kind === 'local' ? [name] : [],
  );
}

/** Names of all models that were found in folders of this computer, whatever became of the recipe. */
async function openedFolders(page: Page): Promise<string[]> {
  const folders = (await keptIn(page, 'amalgam-folders', 'folders')) as { models: string[] }[];
  return folders.flatMap(({ models }) => models);
}

/** Content of a store of the page's IndexedDB; empty where there is no such store. */
function keptIn(page: Page, database: string, store: string): Promise<unknown[]> {
  if (page.isClosed() || !page.url().startsWith(STUDIO_URL)) return Promise.resolve([]);
  return page.evaluate(
    async ([name, inside]) => {
      if (!(await indexedDB.databases()).some((known) => known.name === name)) return [];
      return new Promise<unknown[]>((resolve, reject) => {
        const opening = indexedDB.open(name);
        opening.onerror = () => reject(opening.error);
        opening.onsuccess = () => {
          const db = opening.result;
          const reading = db.transaction(inside).objectStore(inside).getAll();
          reading.onsuccess = () => {
            db.close();
            // handles of folders do not leave the page
            resolve(JSON.parse(JSON.stringify(reading.result)));
          };
        };
      });
    },
    [database, store] as const,
  );
}

/** The recipe's models are open: nothing is merged yet, or the merge from before the reload is restored. */
export async function isOpen(page: Page): Promise<void> {
  await expect(page.getByText(/^(Ready:|Merged in)/).first()).toBeVisible();
}

/** Merges an already merged recipe again, and waits for the second merge: its name has a number. */
export async function mergeAgain(page: Page): Promise<void> {
  const button = page.getByRole('button', { name: 'Merge', exact: true });
  await button.click();
  const question = page.getByText(/is merged already, as/);
  const second = page.locator('.run-status', { hasText: /Merged in.*[a-z]-\d/ });
  // none is asked where another engine merges
  await expect(question.or(second).first()).toBeVisible();
  if (await question.isVisible()) await button.click();
  await expect(second).toBeVisible();
}

/** Drops files on the page, as the disk has them. */
export async function drop(page: Page, files: readonly string[]): Promise<void> {
  const given = files.map((file) => [basename(file), readFileSync(file).toString('base64')] as const);
  const transfer = await page.evaluateHandle((all) => {
    const made = new DataTransfer();
    for (const [name, text] of all)
      made.items.add(new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], name));
    return made;
  }, given);
  await page.dispatchEvent('body', 'drop', { dataTransfer: transfer });
}
