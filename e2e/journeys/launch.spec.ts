/** The installed app is opened with files of the system, and with addresses that are shared with it. */
import { join } from 'node:path';
import { sampleModels, startFakeHub } from '../fake-hub';
import { HUB_CDN_PORT, HUB_PORT } from './addresses';
import { expect, openSample, pointAtFakeHub, ROOT, readJson, test } from './studio';

const CONFIG =
  'merge_method: linear\nmodels:\n- {model: amalgam/base, parameters: {weight: 1}}\n- {model: amalgam/workshop, parameters: {weight: 1}}\n';

test('the manifest names what the app opens, at addresses below it', () => {
  const manifest = readJson(ROOT, 'public/manifest.webmanifest');
  const [handler] = manifest.file_handlers;
  expect(Object.values<string[]>(handler.accept).flat().sort()).toEqual([
    '.gguf',
    '.safetensors',
    '.yaml',
    '.yml',
  ]);
  expect(manifest.share_target).toMatchObject({
    method: 'GET',
    params: { title: 'title', text: 'text', url: 'url' },
  });
  for (const { action } of [handler, manifest.share_target]) expect(action).toBe(manifest.start_url);
});

test('a recipe that the system opens with the app is opened', async ({ page }) => {
  await page.addInitScript(() => {
    const launches = { setConsumer: (take: unknown) => Object.assign(globalThis, { launch: take }) };
    Object.defineProperty(globalThis, 'launchQueue', { value: launches });
  });
  await openSample(page);
  await page.evaluate(async () => {
    const folder = await navigator.storage.getDirectory();
    const handle = await folder.getFileHandle('mine.yml', { create: true });
    const file = await handle.createWritable();
    await file.write(
      'merge_method: ties\nbase_model: samples/base\nmodels:\n- {model: samples/workshop, parameters: {weight: 1, density: 0.5}}\n',
    );
    await file.close();
    (globalThis as unknown as { launch: (launch: object) => void }).launch({ files: [handle] });
  });
  await expect(page.getByRole('combobox', { name: /method/i }).first()).toHaveValue('ties');
});

test('an address that is shared with the app opens its recipe, and leaves the address of the page', async ({
  page,
}) => {
  const hub = await startFakeHub({
    models: [
      ...sampleModels(join(ROOT, 'public/samples')),
      { id: 'amalgam/merge', files: { 'mergekit_config.yml': CONFIG } },
    ],
    ...{ port: HUB_PORT, cdnPort: HUB_CDN_PORT },
  });
  try {
    await openSample(page);
    await page.getByRole('button', { name: 'Search the Hub' }).click();
    await pointAtFakeHub(page);
    await page.getByRole('button', { name: 'Done' }).click();
    await page.goto(`/?title=A+merge&text=${encodeURIComponent(`Look: ${hub.url}/amalgam/merge`)}`);
    await expect(page.getByText(/Opened its mergekit_config\.yml/)).toBeVisible();
    expect(new URL(page.url()).search).toBe('');
  } finally {
    await hub.close();
  }
});
