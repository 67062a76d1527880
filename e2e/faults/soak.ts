/**
 * A hundred merges of the sample in one tab: the memory of all browser processes after the last may be at most 5 % above
 * that after the tenth. Linux only: proportional set sizes are read from /proc.
 *
 *     npm run faults:soak -- [--merges 100] [--engine cpu|webgpu]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startAppServer } from '../../src/cli/app-server';
import { ensureBuilt } from '../../src/cli/build';
import type { EngineChoice } from '../../src/compute/engine';
import { browserBytes } from '../browser-memory';
import { startChromium } from './chromium-process';

const { values } = parseArgs({
  options: { merges: { type: 'string', default: '100' }, engine: { type: 'string', default: 'cpu' } },
});
const merges = Number(values.merges);
const MOST_GROWTH = 0.05;
/** The merge whose memory the last one's is compared with: by then everything is loaded and compiled. */
const WARM = 10;

const root = fileURLToPath(new URL('../..', import.meta.url));
const samples = join(root, 'public/samples');
const server = await startAppServer(await ensureBuilt(root, () => {}), []);
const models = [];
for (const name of ['base', 'kitchen', 'workshop']) {
  models.push({ name, url: await server.serveFolder(join(samples, name)) });
}
const recipe = {
  mergeMethod: 'ties',
  baseModel: 'base',
  models: ['base+kitchen', 'workshop'].map((model) => ({ model, parameters: { weight: 1, density: 0.2 } })),
  parameters: {},
  amalgam: {},
};
const profile = mkdtempSync(join(tmpdir(), 'amalgam-soak-'));
const { page, browser, pid, close } = await startChromium(profile);
try {
  await page.goto(`${server.url}#headless`);
  await page.waitForFunction(() => window.amalgamHeadless !== undefined);
  await page.evaluate((request) => window.amalgamHeadless!.open(request), { recipe, hub: {}, models });
  const session = await browser.contexts()[0]!.newCDPSession(page);

  const memory = async (): Promise<number> => {
    // what is garbage is no leak
    await session.send('HeapProfiler.collectGarbage');
    await delay(1000);
    return browserBytes(pid);
  };
  let warm = 0;
  let last = 0;
  for (let i = 1; i <= merges; i++) {
    const outcome = await page.evaluate((request) => window.amalgamHeadless!.merge(request), {
      recipe,
      engine: values.engine as EngineChoice,
      destination: { kind: 'downloads' as const, name: `soak-${i}` },
    });
    if ('error' in outcome) throw new Error(outcome.error.message);
    // the outputs are files, not memory; but a disk is not endless
    await page.evaluate(async (name) => {
      const outputs = await (await navigator.storage.getDirectory()).getDirectoryHandle('outputs');
      await outputs.removeEntry(name, { recursive: true });
    }, `soak-${i}`);
    if (i === WARM || i === merges || i % 25 === 0) {
      last = await memory();
      if (i === WARM) warm = last;
      console.log(`after ${i} merges: ${(last / 1e6).toFixed(1)} MB in all browser processes`);
    }
  }
  const growth = last / warm - 1;
  console.log(
    `grown by ${(100 * growth).toFixed(1)} % since merge ${WARM}; at most ${100 * MOST_GROWTH} % is allowed`,
  );
  process.exitCode = growth <= MOST_GROWTH ? 0 : 1;
} finally {
  await close();
  await server.close();
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
}
