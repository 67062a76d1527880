/**
 * Injects faults and counts what they cost: torn and lost writes and a full disk under a stand-in for the browser's
 * storage, a hub that answers wrongly, and in Chromium a quota that ends in the middle and crashes of the GPU process.
 * A fault is survived when what was wanted is there in the end with the right hash; a byte is lost when something that
 * counts as whole has another one.
 *
 *     npm run faults:inject -- [--browser 10] [--seed 1]
 */
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import type { Page } from 'playwright';
import { startChromium } from './chromium-process';
import { hubFaults, powerCuts, type Tally, tally, withFullDisk } from './inject-storage';
import { type Attempt, storedState } from './kill-page';
import {
  attempt,
  openPage,
  type Rig,
  randomNumbers,
  undisturbed,
  withPage,
  withProfile,
  withRig,
} from './rig';

/** Bytes that the three models and the merge of them take, with what the cache writes beside them. */
const ROOM_BYTES = 100_000_000;

/** Merges with room for a part of it; then with all the room it wants. */
async function fullQuota(rig: Rig, reference: ReadonlyMap<string, string>, share: number): Promise<Tally> {
  return withPage(rig, async ({ page }) => {
    const session = await page.context().newCDPSession(page);
    const { origin } = new URL(rig.server.url);
    const usage = await page.evaluate(async () => (await navigator.storage.estimate()).usage ?? 0);
    await session.send('Storage.overrideQuotaForOrigin', {
      origin,
      quotaSize: Math.round(usage + share * ROOM_BYTES),
    });
    const how = { kind: 'downloads', engine: 'cpu' } as const;
    const refusal = await attempt(page, rig.hub, how).then(
      () => undefined,
      (thrown: Error) => thrown.message,
    );
    if (refusal !== undefined && !refusal.includes('StorageFull')) throw new Error(refusal);
    await session.send('Storage.overrideQuotaForOrigin', { origin });
    return tallyOf(page, rig, reference, how, refusal === undefined);
  });
}

/**
 * Clears the site's storage in the middle of a download or a merge, as a user can in the browser's settings: the
 * merge must end in words, and go well when the browser is started again.
 */
async function clearedStorage(
  rig: Rig,
  reference: ReadonlyMap<string, string>,
  share: number,
): Promise<Tally> {
  const how = { kind: 'downloads', engine: 'cpu' } as const;
  return withProfile(async (profile) => {
    const first = await startChromium(profile);
    try {
      await openPage(first.page, rig.server);
      const session = await first.page.context().newCDPSession(first.page);
      const { origin } = new URL(rig.server.url);
      await first.page.exposeFunction('amalgamMoment', () =>
        session.send('Storage.clearDataForOrigin', { origin, storageTypes: 'file_systems' }),
      );
      const phase = share < 0.5 ? 'downloading' : 'merging';
      const moment = { phase, share: (2 * share) % 1 } as const;
      const refusal = await attempt(first.page, rig.hub, { ...how, moment }).then(
        () => undefined,
        (thrown: Error) => thrown.message,
      );
      if (refusal !== undefined && !/was cleared while|in use|no longer there/.test(refusal))
        throw new Error(refusal);
    } finally {
      await first.kill();
    }
    const second = await startChromium(profile);
    try {
      await openPage(second.page, rig.server);
      const { outputs } = await second.page.evaluate(storedState);
      return await tallyOf(second.page, rig, reference, how, outputs.length > 0);
    } finally {
      await second.close();
    }
  });
}

/** Kills the GPU process in the middle of a merge, which goes on by itself or after a reload. */
async function gpuCrash(rig: Rig, reference: ReadonlyMap<string, string>, share: number): Promise<Tally> {
  return withPage(rig, async ({ page, browser }) => {
    const session = await browser.newBrowserCDPSession();
    await page.exposeFunction('amalgamMoment', () => session.send('Browser.crashGpuProcess'));
    const how = { kind: 'downloads', engine: 'webgpu' } as const;
    const isOver = await attempt(page, rig.hub, { ...how, moment: { phase: 'merging', share } }).then(
      () => true,
      () => false,
    );
    return tallyOf(page, rig, reference, how, isOver);
  });
}

/** Looks at what counts as whole, goes on after a reload unless all is done, and looks again. */
async function tallyOf(
  page: Page,
  rig: Rig,
  reference: ReadonlyMap<string, string>,
  how: Pick<Attempt, 'kind' | 'engine'>,
  isOver: boolean,
): Promise<Tally> {
  const lost = async () => {
    const { blobs, outputs } = await page.evaluate(storedState);
    const wrong = outputs.filter(
      ({ path, hash }) => path.endsWith('.safetensors') && reference.get(path.split('/').at(-1)!) !== hash,
    );
    const shards = outputs.length - wrong.length;
    return { files: wrong.length + blobs.filter((b) => b.actual !== b.sha256).length, shards };
  };
  const before = await lost();
  if (!isOver) {
    await page.reload();
    await openPage(page, rig.server);
    await attempt(page, rig.hub, how);
  }
  const after = await lost();
  const survived = after.files === 0 && after.shards >= reference.size;
  return { injected: 1, survived: survived ? 1 : 0, lost: before.files + after.files };
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { values } = parseArgs({
    options: { browser: { type: 'string', default: '10' }, seed: { type: 'string', default: '1' } },
  });
  const all: Tally[] = [];
  const say = (what: string, { injected, survived, lost }: Tally) => {
    console.log(`${what}: ${injected} faults injected, ${survived} survived, ${lost} lost`);
    all.push({ injected, survived, lost });
  };
  say('power cut at every operation of a download, unflushed writes lost, kept or torn', await powerCuts());
  say('disk full at any size, as exception, short count or −8', await withFullDisk());
  say('wrong answers of the hub', await hubFaults());
  const count = Number(values.browser);
  const random = randomNumbers(Number(values.seed));
  const moments = Array.from({ length: count }, random);
  await withRig(async (rig) => {
    for (const [what, engine, inject] of [
      ['quota of the browser reached', 'cpu', fullQuota],
      ['crash of the GPU process', 'webgpu', gpuCrash],
      ['storage cleared by the person', 'cpu', clearedStorage],
    ] as const) {
      const [reference] = await undisturbed(rig, engine);
      const tallies: Tally[] = [];
      for (const share of moments) tallies.push(await inject(rig, reference!, share));
      say(what, tally(tallies));
    }
  });
  const { injected, survived, lost } = tally(all);
  process.exit(injected === survived && lost === 0 ? 0 : 1);
}
