/** Models of one's own: they stay on this computer, also where the Hub has others of the same name. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { type FakeHub, sampleModels, startFakeHub } from '../fake-hub';
import { HUB_CDN_PORT, HUB_PORT, HUB_URL } from './addresses';
import { expect, localNames, test } from './studio';

const samples = join(import.meta.dirname, '../../public/samples');

let hub: FakeHub;
test.beforeEach(async () => {
  hub = await startFakeHub({ models: sampleModels(samples), port: HUB_PORT, cdnPort: HUB_CDN_PORT });
});
test.afterEach(() => hub.close());

/**
 * Puts copies of sample models into a folder of the page's private file system, which stands for one on the disk: native
 * pickers cannot be driven. Its access has to be asked for again after a reload, as on the disk.
 */
async function giveFolder(page: Page, folder: string, models: readonly string[]): Promise<void> {
  const files = models.flatMap((model) =>
    readdirSync(join(samples, model)).map((file) => `${model}/${file}`),
  );
  await page.addInitScript((name) => {
    const access = sessionStorage;
    Object.assign(window, {
      showDirectoryPicker: async () => {
        access.setItem('access', `${performance.timeOrigin}`);
        return (await navigator.storage.getDirectory()).getDirectoryHandle(name);
      },
    });
    Object.assign(FileSystemHandle.prototype, {
      queryPermission: async () =>
        access.getItem('access') === `${performance.timeOrigin}` ? 'granted' : 'prompt',
      requestPermission: async () => {
        access.setItem('access', `${performance.timeOrigin}`);
        return 'granted';
      },
    });
  }, folder);
  await page.goto('/');
  await page.evaluate(
    async ({ name, paths }) => {
      const root = await (await navigator.storage.getDirectory()).getDirectoryHandle(name, { create: true });
      for (const path of paths) {
        const [model = '', file = ''] = path.split('/');
        const inside = await root.getDirectoryHandle(model, { create: true });
        const out = await (await inside.getFileHandle(file, { create: true })).createWritable();
        await out.write(await (await fetch(`samples/${path}`)).blob());
        await out.close();
      }
    },
    { name: folder, paths: files },
  );
}

async function pointAtFakeHub(page: Page): Promise<void> {
  await page.getByText('Access token and hub').click();
  await page.getByLabel('Hub', { exact: true }).fill(HUB_URL);
  await page.getByLabel('Hub', { exact: true }).press('Enter');
}

test('a folder called as a model on the Hub stays what it is, and one click opens it after a reload', async ({
  page,
}) => {
  await giveFolder(page, 'amalgam', ['base', 'kitchen']);
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  for (const name of ['kitchen', 'harbour', 'workshop']) {
    await page.getByRole('button', { name: `Remove ${name}` }).click();
  }
  await page.getByRole('button', { name: 'change' }).first().click();
  await page.getByRole('tab', { name: 'Hub' }).click();
  await pointAtFakeHub(page);
  await page.getByRole('tab', { name: /computer/i }).click();
  await page.getByRole('button', { name: 'Choose a folder…' }).click();
  await page.getByRole('button', { name: 'Use as base: amalgam/base' }).click();
  await page.getByRole('button', { name: '+ add' }).first().click();
  await page.getByRole('tab', { name: /computer/i }).click();
  await page.getByRole('button', { name: 'Add: amalgam/kitchen' }).click();
  await page.getByRole('button', { name: 'Done' }).click();
  await expect(page.getByText(/^Ready:/)).toBeVisible();

  await expect.poll(() => localNames(page)).toEqual(['amalgam/base', 'amalgam/kitchen']);

  await page.reload();
  await expect(page.getByText('Folder not open.')).toHaveCount(2);
  await expect(page.getByText('base and 1 more are not open.').first()).toBeVisible();
  await page.getByRole('button', { name: 'Open again' }).first().click();
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  await expect(page.getByText('Folder not open.')).toHaveCount(0);
  expect(hub.requests.filter(({ path }) => /amalgam(\/|%2F)/i.test(path))).toEqual([]);

  // other weights in the folder: the card says so
  await page.evaluate(async () => {
    const root = await (await navigator.storage.getDirectory()).getDirectoryHandle('amalgam');
    const kitchen = await root.getDirectoryHandle('kitchen');
    const write = async (name: string, from: string) => {
      const out = await (await kitchen.getFileHandle(name, { create: true })).createWritable();
      await out.write(await (await fetch(from)).blob());
      await out.close();
    };
    await kitchen.removeEntry('adapter_config.json');
    await kitchen.removeEntry('adapter_model.safetensors');
    for (const file of ['config.json', 'model.safetensors']) await write(file, `samples/workshop/${file}`);
  });
  await page.reload();
  await page.getByRole('button', { name: 'Open again' }).first().click();
  await expect(
    page.getByText(/Not the folder this recipe was made with: 459\skB then, 2.48\sMB now/),
  ).toBeVisible();
  await page.getByRole('button', { name: 'Use this one' }).click();
  await expect(page.getByText(/Not the folder/)).toHaveCount(0);
});
