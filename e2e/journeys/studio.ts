/**
 * `test` for the journeys: every journey gets its own Chromium with WebGPU and a fresh profile on disk (the default
 * context keeps OPFS in a small memory), and fails when the page breaks its own Content-Security-Policy, asks anyone
 * beyond this machine, or asks the fake hub for a folder of this computer.
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
    const asked: string[] = [];
    context.on('request', (request) => {
      const url = decodeURIComponent(request.url());
      if (!url.startsWith(STUDIO_URL) && /^https?:/.test(url)) asked.push(url);
    });
    await use(page);
    expect(violations).toEqual([]);
    // journeys serve hosts of their own on this machine
    expect(asked.filter((url) => !/^(127\.0\.0\.\d+|localhost)$/.test(new URL(url).hostname))).toEqual([]);
    const names = asked.length > 0 ? await localNames(page) : [];
    expect(asked.filter((url) => names.some((name) => url.includes(name)))).toEqual([]);
  },
});

/** What the recipe that the page keeps calls models of this computer. */
export function localNames(page: Page): Promise<string[]> {
  if (page.isClosed() || !page.url().startsWith(STUDIO_URL)) return Promise.resolve([]);
  return page.evaluate(
    () =>
      new Promise<string[]>((resolve) => {
        const opening = indexedDB.open('amalgam-recipes');
        opening.onsuccess = () => {
          const draft = opening.result.transaction('draft').objectStore('draft').get('draft');
          draft.onsuccess = () => {
            const origins: [string, { kind: string }][] = Object.entries(draft.result?.recipe.origins ?? {});
            resolve(origins.filter(([, { kind }]) => kind === 'local').map(([name]) => name));
          };
        };
      }),
  );
}
