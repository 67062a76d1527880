/** Models of one's own: they stay on this computer, also where the Hub has others of the same name. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from '@playwright/test';
import { type FakeHub, READER_TOKEN, sampleModels, startFakeHub } from '../fake-hub';
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

/** What the person does, counted. */
function counting() {
  let clicks = 0;
  return {
    click: async (target: Locator) => {
      clicks++;
      await target.click();
    },
    clicks: () => clicks,
  };
}

test('own base and two adapters: folders found their roles, merged and saved in five clicks', async ({
  page,
}) => {
  await giveFolder(page, 'mine', ['base', 'harbour', 'kitchen']);
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  await expect(page.getByText('Merge language models and LoRAs into one')).toBeVisible();
  const { click, clicks } = counting();
  const begun = performance.now();
  await click(page.getByRole('button', { name: 'Open models or LoRAs…' }));
  const recipe = page.getByRole('complementary', { name: 'Recipe' });
  await expect(recipe.getByText('mine/base')).toBeVisible();
  for (const name of ['harbour', 'kitchen'])
    await expect(recipe.getByRole('switch', { name: `Merge ${name}` })).toBeVisible();
  await expect(recipe.getByText('of this base')).toHaveCount(2);
  // the sample made way
  await expect(recipe.getByText('workshop')).toHaveCount(0);
  await click(page.getByRole('button', { name: 'Merge', exact: true }));
  await expect(page.getByText(/^Merged in/)).toBeVisible();
  await click(page.getByRole('button', { name: 'Get the files' }));
  const download = page.waitForEvent('download');
  await click(page.getByRole('button', { name: 'Download all' }));
  await (await download).path();
  test.info().annotations.push({
    type: 'clicks and seconds',
    description: `${clicks()} clicks, ${((performance.now() - begun) / 1000).toFixed(1)} s`,
  });
  expect(clicks()).toBeLessThanOrEqual(5);

  // another begins empty, and stays so after a reload
  await page.getByRole('button', { name: 'New merge' }).click();
  await expect(page.getByText('Add models to begin.').first()).toBeVisible();
  await expect.poll(() => localNames(page)).toEqual([]);
  await page.reload();
  await expect(page.getByRole('button', { name: 'Try the sample' })).toBeVisible();
});

test('an adapter names its base: the card gets it from the Hub; a dropped recipe opens; what is refused says what to do', async ({
  page,
}) => {
  await giveFolder(page, 'loras', ['kitchen']);
  await page.evaluate(async () => {
    const root = await (await navigator.storage.getDirectory()).getDirectoryHandle('loras');
    const file = await (await root.getDirectoryHandle('kitchen')).getFileHandle('adapter_config.json');
    const config = JSON.parse(await (await file.getFile()).text());
    const out = await file.createWritable();
    await out.write(JSON.stringify({ ...config, base_model_name_or_path: 'amalgam/gated' }));
    await out.close();
  });
  await page.getByRole('button', { name: 'Search the Hub' }).click();
  await pointAtFakeHub(page);
  await page.getByRole('button', { name: 'Done' }).click();
  // the hub stays the one that was chosen
  await page.reload();
  await page.getByRole('button', { name: 'Open models or LoRAs…' }).click();
  const recipe = page.getByRole('complementary', { name: 'Recipe' });
  await expect(recipe.getByText('Not open: a folder of yours, or a model on the Hub?')).toBeVisible();
  expect(hub.requests).toEqual([]);
  await recipe.getByRole('button', { name: 'Get amalgam/gated from the Hub' }).click();
  await expect(recipe.getByText(/amalgam\/gated.* is gated/)).toBeVisible();
  await expect(recipe.getByRole('link', { name: 'Open license page' })).toHaveAttribute(
    'href',
    `${HUB_URL}/amalgam/gated`,
  );
  // nothing is planned or diagnosed about a model that is not open
  await page.getByRole('tab', { name: /^Plan/ }).click();
  await expect(page.getByText('No plan yet')).toBeVisible();
  await recipe.getByRole('button', { name: 'Sign in or give a token…' }).click();
  await page.getByRole('tab', { name: 'Hub' }).click();
  await page.getByText('Access token and hub').click();
  await page.getByLabel('Token').fill(READER_TOKEN);
  await page.getByLabel('Token').press('Enter');
  await page.getByRole('button', { name: 'Done' }).click();
  // a token is enough: it is asked again by itself
  await expect(page.getByText(/^Ready:/)).toBeVisible();

  // a recipe that is dropped opens, and asks nobody for the names in it
  const before = hub.requests.length;
  const yaml = 'merge_method: linear\nmodels:\n  - model: amalgam/base\n    parameters: {weight: 1}\n';
  const dropped = await page.evaluateHandle((text) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([text], 'mine.yml'));
    return transfer;
  }, yaml);
  await page.dispatchEvent('body', 'drop', { dataTransfer: dropped });
  await expect(page.getByText('Opened the recipe mine.yml.')).toBeVisible();
  await expect(recipe.getByRole('switch', { name: 'Merge base' })).toBeVisible();
  expect(hub.requests.slice(before)).toEqual([]);
  await recipe.getByRole('button', { name: 'Get amalgam/base from the Hub' }).click();
  await expect(page.getByText(/^Ready:/)).toBeVisible();
});

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
  // the dialog is where it was left
  await page.getByRole('button', { name: '+ add' }).first().click();
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
