/** Rig of the fault tests: the fake Hub with the family of models, the built studio, and pages of it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright';
import { type BuiltStudio, startBuiltStudio } from '../built-studio';
import { type FakeHub, startFakeHub } from '../fake-hub';
import { type ChromiumProcess, startChromium } from './chromium-process';
import { KILL_RECIPE, killModels } from './kill-models';
import { type Attempt, type AttemptOutcome, attemptMerge } from './kill-page';

export interface Rig {
  server: BuiltStudio;
  hub: FakeHub;
}

/**
 * Bytes per second that the page can keep up with: a file is then under way long enough to meet a fault, and the bytes
 * the hub has sent have reached the page and do not wait in the system's buffers.
 */
const BYTES_PER_SECOND = 16_000_000;
/** A page opens in a second; on a machine with much other work in a minute. */
const PATIENCE_MS = 180_000;

/** Runs `act` with a hub and a studio. */
export async function withRig<T>(act: (rig: Rig) => Promise<T>): Promise<T> {
  const hub = await startFakeHub({ models: killModels(), bytesPerSecond: BYTES_PER_SECOND });
  const server = await startBuiltStudio([hub.url, hub.cdnUrl], 0, []);
  try {
    return await act({ server, hub });
  } finally {
    await server.close();
    await hub.close();
  }
}

/** Runs `act` with a profile folder and removes it afterwards. */
export async function withProfile<T>(act: (profile: string) => Promise<T>): Promise<T> {
  const profile = mkdtempSync(join(tmpdir(), 'amalgam-kill-'));
  try {
    return await act(profile);
  } finally {
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Runs `act` in a browser of its own, with the page of the studio's calls open. */
export async function withPage<T>(rig: Rig, act: (chromium: ChromiumProcess) => Promise<T>): Promise<T> {
  return withProfile(async (profile) => {
    const chromium = await startChromium(profile);
    try {
      await openPage(chromium.page, rig.server);
      return await act(chromium);
    } finally {
      await chromium.close();
    }
  });
}

/** Opens the page of the studio's calls. */
export async function openPage(page: Page, server: BuiltStudio): Promise<void> {
  await page.goto(server.callsUrl);
  await page.waitForFunction(() => window.amalgamCalls !== undefined, undefined, { timeout: PATIENCE_MS });
  // functions sent to the page were compiled with this mark on every name
  await page.evaluate('globalThis.__name = (named) => named');
}

/** Merges in the page, or resumes the interrupted merge. */
export function attempt(
  page: Page,
  hub: FakeHub,
  how: Pick<Attempt, 'kind' | 'engine' | 'moment'> & { recipe?: typeof KILL_RECIPE; name?: string },
): Promise<AttemptOutcome> {
  return page.evaluate(attemptMerge, {
    recipe: KILL_RECIPE,
    hub: hub.url,
    models: ['kill/base', 'kill/a', 'kill/b'],
    name: 'merged',
    ...how,
  });
}

/** Tree hash by shard of a merge that nothing disturbs, of each of the recipes. */
export async function undisturbed(
  rig: Rig,
  engine: Attempt['engine'],
  recipes: readonly (typeof KILL_RECIPE)[] = [KILL_RECIPE],
): Promise<Map<string, string>[]> {
  return withPage(rig, async ({ page }) => {
    const hashes = [];
    for (const [i, recipe] of recipes.entries()) {
      const how = { kind: 'downloads', engine, recipe, name: `merged-${i}` } as const;
      const { shards } = await attempt(page, rig.hub, how);
      hashes.push(new Map(shards.map(({ file, hash }) => [file, hash])));
    }
    return hashes;
  });
}

/** Numbers in [0, 1), the same for the same seed. */
export function randomNumbers(seed: number): () => number {
  let state = Math.imul(seed, 0x9e3779b1) >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}
