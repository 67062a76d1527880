/** Models of one's own: they stay on this computer, also where the Hub has others of the same name. */
import type { Page } from '@playwright/test';
import { type FakeHub, READER_TOKEN, sampleModels, startFakeHub } from '../fake-hub';
import { giveFolder } from '../given-folder';
import { HUB_CDN_PORT, HUB_PORT, HUB_URL } from './addresses';
import {
  chooseMethod,
  counting,
  expect,
  fetchMerged,
  localNames,
  merge,
  openSample,
  pointAtFakeHub,
  SAMPLES,
  show,
  test,
  unfold,
} from './studio';

let hub: FakeHub;
test.beforeEach(async () => {
  hub = await startFakeHub({ models: sampleModels(SAMPLES), port: HUB_PORT, cdnPort: HUB_CDN_PORT });
});
test.afterEach(() => hub.close());

test('own base and two adapters: folders found their roles, merged and saved in five clicks', async ({
  page,
}) => {
  await giveFolder(page, 'mine', ['base', 'harbour', 'kitchen']);
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  await expect(page.getByText('Merge language models and LoRAs into one')).toBeVisible();
  const { click, clicks, measured } = counting();
  await click(page.getByRole('button', { name: 'Open models or LoRAs…' }));
  const recipe = page.getByRole('complementary', { name: 'Recipe' });
  await expect(recipe.getByText('mine/base')).toBeVisible();
  for (const name of ['harbour', 'kitchen'])
    await expect(recipe.getByRole('button', { name: `Remove ${name}` })).toBeVisible();
  await expect(recipe.getByText('matches base')).toHaveCount(2);
  // the sample made way
  await expect(recipe.getByText('workshop')).toHaveCount(0);
  await fetchMerged(page, click);
  measured('own base and two LoRAs');
  expect(clicks()).toBeLessThanOrEqual(5);

  // after a reload the merge is there, though the folders are not open; another of the same is offered, not made
  await page.reload();
  await expect(page.getByText('Folder not open.').first()).toBeVisible();
  await expect(page.getByText(/^Merged in/)).toBeVisible();
  await page.getByRole('button', { name: 'Details', exact: true }).click();
  await expect(page.getByRole('dialog').getByText(/done in/)).toBeVisible();
  await page.keyboard.press('Escape');
  await recipe.getByRole('button', { name: 'Open again' }).first().click();
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  await expect(page.getByText(/is merged already, as/)).toBeVisible();
  await show(page, 'Files');
  await expect(page.locator('.file-where')).toHaveText(/harbour.* · Task arithmetic/);

  // another begins empty, and stays so after a reload
  await page.getByRole('button', { name: 'New', exact: true }).click();
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
  await show(page, 'Files');
  await expect(page.getByRole('tabpanel').getByText(/is not open/)).toBeVisible();
  await recipe.getByRole('button', { name: 'Sign in or give a token…' }).click();
  await page.getByRole('tab', { name: 'Hub' }).click();
  await page.getByText('Access token and hub').click();
  await page.getByLabel('Token', { exact: true }).fill(READER_TOKEN);
  await page.getByLabel('Token', { exact: true }).press('Enter');
  await page.getByRole('button', { name: 'Done' }).click();
  // entering a token is enough: the request is repeated automatically
  await expect(page.getByText(/^Ready:/)).toBeVisible();

  // a dropped recipe opens, and no request is made for the names in it
  const before = hub.requests.length;
  const yaml = 'merge_method: linear\nmodels:\n  - model: amalgam/base\n    parameters: {weight: 1}\n';
  const dropped = await page.evaluateHandle((text) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([text], 'mine.yml'));
    return transfer;
  }, yaml);
  await page.dispatchEvent('body', 'drop', { dataTransfer: dropped });
  await expect(page.getByText('Opened the recipe mine.yml.')).toBeVisible();
  await expect(recipe.getByRole('button', { name: 'Remove base' })).toBeVisible();
  expect(hub.requests.slice(before)).toEqual([]);
  // a hub that refuses for good: its card says so, and retries on request
  const refused = { kind: 'status', status: 400 } as const;
  hub.faults.push({ path: '/api/models/amalgam/base/revision/HEAD', fault: refused });
  await recipe.getByRole('button', { name: 'Get amalgam/base from the Hub' }).click();
  await recipe.getByRole('button', { name: 'Retry' }).click();
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  await expect(recipe.getByRole('button', { name: 'Retry' })).toHaveCount(0);
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
  await expect(page.getByRole('button', { name: 'Open again' })).toHaveCount(2);
  await page.getByRole('button', { name: 'Open all again' }).click();
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  await expect(page.getByText('Folder not open.')).toHaveCount(0);
  expect(hub.requests.filter(({ path }) => /amalgam(\/|%2F)/i.test(path))).toEqual([]);

  // other weights in the folder: the card shows it
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

test('one line tells every step of a merge and the time that all of them still take; all of the time has a name', async ({
  page,
}) => {
  await openSample(page);
  // λ is tuned on every model's text: two are enough
  await page.getByRole('button', { name: 'Remove workshop' }).click();
  await page.getByRole('button', { name: 'auto-tune λ' }).click();
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  // every line of the bar and every live announcement, as they change
  await page.evaluate(() => {
    const told = { seen: [] as string[], heard: [] as string[] };
    Object.assign(window, { told });
    const note = () => {
      const line = document.querySelector('.run-words')?.textContent;
      const spoken = document.querySelector('.announcer')?.textContent;
      if (line && told.seen.at(-1) !== line) told.seen.push(line);
      if (spoken && told.heard.at(-1) !== spoken) told.heard.push(spoken);
    };
    new MutationObserver(note).observe(document.body, {
      subtree: true,
      childList: true,
      characterData: true,
    });
  });
  await merge(page);
  const { seen, heard } = await page.evaluate(
    () => (window as unknown as { told: { seen: string[]; heard: string[] } }).told,
  );
  const words = (lines: string[]) => lines.map((line) => line.replaceAll('\u00a0', ' '));
  expect(words(seen).some((w) => /^step \d of \d · tuning λ · about \d+ (s|min) left$/.test(w))).toBe(true);
  expect(words(seen).filter((w) => /0:00|about 0/.test(w))).toEqual([]);
  expect(words(heard).some((w) => /step \d of \d · .* · about/.test(w))).toBe(true);

  await page.getByRole('button', { name: 'Details', exact: true }).click();
  const time = page.locator('.stage-key');
  for (const name of ['opening', 'calibration', 'compute', 'write']) {
    await expect(time.getByText(name, { exact: true })).toBeVisible();
  }
  const shares = await time.locator('.faint').allTextContents();
  const sum = shares.reduce((all, share) => all + Number.parseFloat(share.replace(/[<>]/, '')), 0);
  expect(Math.abs(sum - 100)).toBeLessThan(1);
});

test('two tabs: each keeps its own recipe over a reload; the next tab begins with the last', async ({
  page,
  context,
}) => {
  await openSample(page);
  const second = await context.newPage();
  await second.goto('/');
  await expect(second.getByText(/^Ready:/)).toBeVisible();
  const weight = (tab: Page) => tab.getByLabel('weight of kitchen, number');
  for (const [tab, value] of [
    [page, '0.30'],
    [second, '0.40'],
  ] as const) {
    await unfold(tab, 'kitchen');
    await weight(tab).fill(value);
    await weight(tab).press('Enter');
    await expect(weight(tab)).toHaveValue(value);
  }
  const third = await context.newPage();
  for (const [tab, value] of [
    [page, '0.30'],
    [second, '0.40'],
    [third, '0.40'],
  ] as const) {
    await tab.goto('/');
    await unfold(tab, 'kitchen');
    await expect(weight(tab)).toHaveValue(value);
  }
});

test('of one’s own, densities trim by default and idle keys are doubted at a line; the merge is tried before its files are fetched', async ({
  page,
}) => {
  await giveFolder(page, 'mine', ['base', 'harbour', 'kitchen']);
  await show(page, 'Measure');
  const texts = page.getByRole('group', { name: 'Texts to measure on' });
  await expect(texts.getByRole('button', { name: 'kitchen' })).toHaveAttribute('aria-pressed', 'true');
  await page.getByRole('button', { name: 'Open models or LoRAs…' }).click();
  // texts of the sample are not for these
  await expect(texts.getByRole('button', { name: 'kitchen' })).not.toBeVisible();
  await chooseMethod(page, 'ties');
  const recipe = page.getByRole('complementary', { name: 'Recipe', exact: true });
  const density = recipe.getByLabel('density of kitchen, number');
  await unfold(page, 'kitchen');
  await expect(density).toHaveValue('0.20');
  await density.fill('1');
  await density.press('Enter');
  await expect(recipe.getByText(/Density 1, mergekit’s default, trims nothing of kitchen/)).toBeVisible();
  await expect(page.getByRole('tab', { name: /Files .*1 warning/ })).toBeVisible();
  await recipe.getByRole('button', { name: 'Use 0.20, as recommended' }).click();
  await expect(density).toHaveValue('0.20');

  await page.getByRole('radio', { name: 'YAML' }).click();
  const text = page.getByRole('textbox', { name: 'Recipe as YAML' });
  await expect(text).toHaveValue(/dtype: float32\nout_dtype: bfloat16/);
  const written = await text.inputValue();
  await text.fill(written.replace('normalize: true', 'normalise: true'));
  await expect(page.getByText(/^Line \d+: ties has no parameter normalise/)).toBeVisible();
  await expect(page.getByText(/Did you mean normalize\?/).first()).toBeVisible();
  // what has no effect turns no form off
  await page.getByRole('radio', { name: 'Form' }).click();
  await expect(recipe.getByRole('combobox', { name: 'Merge method' })).toHaveValue('ties');
  await expect(page.getByText(/^Ready:/)).toBeVisible();

  await page.getByRole('button', { name: 'text', exact: true }).click();
  await page.getByRole('button', { name: 'Paste text' }).click();
  await page
    .getByLabel('Text', { exact: true })
    .fill('Recipe: a soup of leeks and potatoes, for four people.');
  await page.getByLabel('Name of the text').fill('soup');
  await page.getByRole('button', { name: 'Add text' }).click();
  await page.keyboard.press('Escape');
  await show(page, 'Try');
  await page.getByLabel('tokens', { exact: true }).fill('5');
  await page.getByLabel('tokens', { exact: true }).press('Enter');
  await merge(page);
  await page.getByRole('button', { name: 'Try', exact: true }).click();
  await expect(page.getByText(/ 5\stokens in/)).toHaveCount(2);
  await show(page, 'Measure');
  await page.getByRole('button', { name: /^Measure 4.numbers/ }).click();
  const table = page.getByRole('table');
  await expect(table.locator('.measure-value')).toHaveText(Array(4).fill(/^\d+\.\d/));
  await expect(table.locator('.dot')).toHaveCount(4);
  await expect(table.locator('.dot-line').first()).toBeVisible();

  // a menu that obeys the page's policy
  await show(page, 'Layers');
  await page.getByRole('button', { name: 'Export the picture and its numbers' }).click();
  await expect(page.getByRole('menuitem').first()).toBeVisible();
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  await expect(page.getByRole('dialog', { name: 'Actions and keys' })).toBeVisible();
});
