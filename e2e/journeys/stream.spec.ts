/** Inputs that pass by: read from the Hub by ranges through the merge into the output, and stored nowhere. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once as event } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { JOURNAL } from '../../src/cli/partial-output';
import { type FakeHub, sampleModels, startFakeHub } from '../fake-hub';
import { killModels } from '../faults/kill-models';
import { HUB_CDN_PORT, HUB_PORT } from './addresses';
import {
  amalgam,
  downloaded,
  expect,
  merge,
  mergeAgain,
  openSample,
  pointAtFakeHub,
  ROOT,
  recipeFile,
  test,
  work,
} from './studio';

const models = killModels();
let hub: FakeHub;
test.beforeEach(async () => {
  hub = await startFakeHub({ models });
});
test.afterEach(() => hub.close());

const sizeOf = (name: string) => {
  const files = models.find(({ id }) => id === name)!.files as Record<string, Uint8Array>;
  return files['model.safetensors']!.length;
};
const INPUTS = ['kill/base', 'kill/a', 'kill/b'].reduce((sum, name) => sum + sizeOf(name), 0);

function recipe(more = ''): string {
  return recipeFile(
    `merge_method: ties
base_model: kill/base
models:
- {model: kill/a, parameters: {weight: 0.7, density: 0.5}}
- {model: kill/b, parameters: {weight: 0.7, density: 0.5}}
amalgam: {shard_bytes: 5000000}
${more}`,
  );
}

/** sha256 of every file of weights. */
const weights = (folder: string) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.safetensors'))
    .map((name) => [
      name,
      createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex'),
    ]);

/** Bytes of weights that the hub sent since the last call. */
function sent(): number {
  const cdn = hub.requests.filter(({ server, path }) => server === 'cdn' && path.includes('.safetensors'));
  hub.requests.length = 0;
  return cdn.reduce((sum, request) => sum + request.sent, 0);
}

/** Bytes in a folder and all below it. */
function bytesIn(folder: string): number {
  if (!existsSync(folder)) return 0;
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
}

test('a streamed merge has the bytes of one with its inputs kept, and keeps none; killed, it goes on at a tensor', async () => {
  const where = (cache: string) => ['--hub', hub.url, '--cache', join(work, cache), '--engine', 'cpu'];
  const file = recipe();
  const kept = await amalgam(['merge', file, '--out', join(work, 'kept'), ...where('cache')]);
  expect(kept, kept.stderr).toMatchObject({ code: 0 });
  sent();

  const planned = await amalgam(['plan', file, '--hub', hub.url, '--cache', join(work, 'none')]);
  expect(planned.stdout.replaceAll(/[\u00a0\u202f]/g, ' ')).toMatch(
    /download +\d+\.\d MB\n +with --stream \d+\.\d MB of it pass by and are not kept, for 537 MB of memory\n/,
  );
  sent();
  const streamed = ['merge', file, '--out', join(work, 'streamed'), ...where('none'), '--stream'];
  const whole = await amalgam(streamed);
  expect(whole, whole.stderr).toMatchObject({ code: 0 });
  expect(weights(join(work, 'streamed'))).toEqual(weights(join(work, 'kept')));
  expect(whole.stderr).toMatch(/passed by, and nothing was kept: 3\sof 3\sfiles came whole, with the sha256/);
  // once, and before that the headers for the plan
  const once = sent();
  expect(once).toBeGreaterThanOrEqual(INPUTS);
  expect(once).toBeLessThan(INPUTS + 100_000);
  // small files alone
  expect(bytesIn(join(work, 'none'))).toBeLessThan(10_000);

  // slower, so that there is a middle
  await hub.close();
  hub = await startFakeHub({ models, bytesPerSecond: 20e6 });
  const out = join(work, 'killed');
  const args = ['merge', file, '--out', out, '--stream', '--resume', ...where('none').with(1, hub.url)];
  const first = spawn(process.execPath, ['src/cli/amalgam.mjs', ...args], { cwd: ROOT, stdio: 'ignore' });
  const exit = event(first, 'exit');
  const journal = () => {
    const partial = readdirSync(work).find((name) => name.startsWith('.killed'));
    const place = partial && join(work, partial, JOURNAL);
    return place && existsSync(place) ? readFileSync(place, 'utf8') : '';
  };
  while (!journal().includes('"whole":true') && first.exitCode === null) await delay(2);
  expect(first.exitCode).toBeNull();
  first.kill('SIGKILL');
  await exit;
  const second = await amalgam(args);
  expect(second, second.stderr).toMatchObject({ code: 0 });
  expect(weights(out)).toEqual(weights(join(work, 'kept')));
  // where it was cut off
  expect(second.stderr).toMatch(/merging · [1-9]\d*\/50\stensors/);
  expect(bytesIn(join(work, 'none'))).toBeLessThan(10_000);
});

test('in the studio: inputs that are not kept are fetched for every merge, and give the same bytes', async ({
  page,
}) => {
  await hub.close();
  const config = `merge_method: linear\nmodels:\n- {model: amalgam/base, parameters: {weight: 1}}\n- {model: amalgam/workshop, parameters: {weight: 1}}\n`;
  hub = await startFakeHub({
    models: [
      ...sampleModels(join(ROOT, 'public/samples')),
      { id: 'amalgam/merge', files: { 'mergekit_config.yml': config } },
    ],
    ...{ port: HUB_PORT, cdnPort: HUB_CDN_PORT },
  });
  await openSample(page);
  await page.getByRole('button', { name: 'Search the Hub' }).click();
  await pointAtFakeHub(page);
  await page.getByRole('button', { name: 'Done' }).click();
  await page.goto('/#hub=amalgam/merge');
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  await page.getByRole('tab', { name: 'Files' }).click();
  const box = page.getByRole('checkbox', { name: 'Do not keep the inputs' });
  await box.check();
  await expect(page.getByText(/kB to download · 4\.97\sMB pass by, not kept/)).toBeVisible();
  await expect(page.getByText(/4\.97\sMB then pass by instead of being stored, for 537\sMB/)).toBeVisible();
  const saved = async () => (await downloaded(page, 'model.safetensors')).bytes;
  sent();
  await merge(page);
  expect(sent()).toBeGreaterThan(4.9e6);
  const streamed = await saved();
  await box.uncheck();
  await mergeAgain(page);
  expect(sent()).toBeGreaterThan(4.9e6);
  expect((await saved()).equals(streamed)).toBe(true);
});
