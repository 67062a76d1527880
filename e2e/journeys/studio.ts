/**
 * `test` for the journeys: every journey gets its own Chromium with WebGPU and a fresh profile on disk (the default
 * context keeps OPFS in a small memory), and fails when the page breaks its own Content-Security-Policy, asks anyone
 * beyond this machine, or has the name of a folder of this computer in any request.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test as base, chromium, expect, type Page } from '@playwright/test';
import { CHROMIUM_ARGS, findChromium, SWIFTSHADER_ARGS } from '../setup-chromium.mjs';
import { STUDIO_URL } from './addresses';

export { expect };

export const test = base.extend<{ profile: string }>({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the fixture's needs from this very pattern.
  profile: async ({}, use) => {
    const profile = await mkdtemp(join(tmpdir(), 'amalgam-journey-'));
    await use(profile);
    await rm(profile, { recursive: true, force: true });
  },
  context: async ({ profile }, use) => {
    const executablePath = findChromium();
    const context = await chromium.launchPersistentContext(profile, {
      baseURL: STUDIO_URL,
      acceptDownloads: true,
      args: [...CHROMIUM_ARGS, ...SWIFTSHADER_ARGS],
      ...(executablePath ? { executablePath } : {}),
    });
    await use(context);
    await context.close();
  },
  page: async ({ context }, use) => {
    const page = context.pages()[0] ?? (await context.newPage());
    const violations: string[] = [];
    page.on('console', (message) => {
      if (/Content.Security.Policy|TrustedHTML|TrustedScript/i.test(message.text()))
        violations.push(message.text());
    });
    const own = new RegExp(`^${STUDIO_URL}(samples|assets)/`);
    const requests: string[] = [];
    context.on('request', (request) => {
      const url = decodeURIComponent(request.url());
      if (/^https?:/.test(url) && !own.test(url)) requests.push(url);
    });
    await use(page);
    expect(violations).toEqual([]);
    const beyond = requests.filter((url) => !url.startsWith(STUDIO_URL));
    // journeys serve hosts of their own on this machine
    expect(beyond.filter((url) => !/^(127\.0\.0\.\d+|localhost)$/.test(new URL(url).hostname))).toEqual([]);
    const names = [...(await localNames(page)), ...(await openedFolders(page))];
    expect(requests.filter((url) => names.some((name) => url.includes(name)))).toEqual([]);
  },
});

/** Names of local models in the recipe that the page saved. */
export async function localNames(page: Page): Promise<string[]> {
  const drafts = (await keptIn(page, 'amalgam-recipes', 'draft')) as {
    recipe?: { origins?: Record<string, { kind: string }> };
  }[];
  return drafts.flatMap(({ recipe }) =>
    Object.entries(recipe?.origins ?? {}).flatMap(([name, { kind }]) => (kind === 'local' ? [name] : [])),
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
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  const question = page.getByRole('button', { name: 'Merge again' });
  const second = page.locator('.run-line', { hasText: /Merged in.*[a-z]-\d/ });
  // none is asked where another engine merges
  await expect(question.or(second).first()).toBeVisible();
  if (await question.isVisible()) await question.click();
  await expect(second).toBeVisible();
}
