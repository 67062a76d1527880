/**
 * `test` for the journeys: every journey gets its own Chromium with WebGPU and a fresh profile on disk (the default
 * context keeps OPFS in a small memory), and fails when the page breaks its own Content-Security-Policy.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test as base, chromium, expect } from '@playwright/test';
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
    await use(page);
    expect(violations).toEqual([]);
  },
});
