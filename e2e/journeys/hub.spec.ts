/** Through the Hub: search, pick a base, its adapters offered first, download, merge, save; the second run reads the cache. */
import { join } from 'node:path';
import { type FakeHub, READER_TOKEN, sampleModels, startFakeHub } from '../fake-hub';
import { HUB_CDN_PORT, HUB_PORT } from './addresses';
import { expectSampleMean } from './merged-folder';
import {
  counting,
  downloaded,
  expect,
  fetchMerged,
  mergeAgain,
  openSample,
  pointAtFakeHub,
  show,
  test,
} from './studio';

let hub: FakeHub;
test.beforeEach(async () => {
  hub = await startFakeHub({
    models: sampleModels(join(import.meta.dirname, '../../public/samples')),
    port: HUB_PORT,
    cdnPort: HUB_CDN_PORT,
  });
});
test.afterEach(() => hub.close());

const weightRequests = (from: number) =>
  hub.requests.slice(from).filter((r) => /safetensors/.test(r.path) && r.method === 'GET');

test('remix: a merge on the Hub opens as its recipe, by its address or by name; what is gated says so', async ({
  page,
}) => {
  const config = (model: string) =>
    `merge_method: ties\nbase_model: amalgam/base\nmodels:\n- {model: ${model}, parameters: {weight: 1, density: 0.5}}\n`;
  await hub.close();
  const samples = sampleModels(join(import.meta.dirname, '../../public/samples'));
  hub = await startFakeHub({
    models: [
      ...samples.map((model) =>
        model.id === 'amalgam/base' ? { ...model, tags: ['base_model:finetune:amalgam/root'] } : model,
      ),
      { id: 'amalgam/root', files: { 'README.md': '---\nlicense: cc-by-nd-4.0\n---\n' } },
      { ...samples.find(({ id }) => id === 'amalgam/workshop')!, id: 'amalgam/gated', gated: 'manual' },
      { id: 'amalgam/merge', files: { 'mergekit_config.yml': config('amalgam/workshop') } },
      {
        id: 'amalgam/carded',
        files: { 'README.md': `# Mine\n\n\`\`\`yaml\n${config('amalgam/gated')}\`\`\`\n` },
      },
    ],
    port: HUB_PORT,
    cdnPort: HUB_CDN_PORT,
  });
  await openSample(page);
  await page.getByRole('button', { name: 'Search the Hub' }).click();
  await pointAtFakeHub(page);
  await page.getByRole('button', { name: 'Done' }).click();

  await page.goto('/#hub=amalgam/merge');
  await expect(page.getByText('Opened its mergekit_config.yml, of amalgam/merge.')).toBeVisible();
  expect(page.url()).not.toContain('hub=');
  await expect(page.getByText(/^Ready:/)).toBeVisible();

  await page.getByRole('tab', { name: 'Files' }).click();
  await expect(page.getByText('No derivatives: amalgam/root (cc-by-nd-4.0) does not allow')).toBeVisible();
  const family = page.locator('details', { hasText: 'Family of 3' });
  await expect(family.getByText('    amalgam/root – cc-by-nd-4.0', { exact: false })).toBeVisible();

  await page.getByRole('button', { name: 'Examples' }).click();
  await page.getByRole('tab', { name: 'Of a merge on the Hub' }).click();
  await page.getByRole('textbox', { name: 'Merge on the Hub' }).fill('amalgam/workshop');
  await page.getByRole('button', { name: 'Open its recipe' }).click();
  await expect(page.getByRole('dialog').getByText('does not say how it was merged')).toBeVisible();
  await page.getByRole('textbox', { name: 'Merge on the Hub' }).fill(`${hub.url}/amalgam/carded`);
  await page.getByRole('button', { name: 'Open its recipe' }).click();
  await expect(page.getByText('Opened the recipe in its card, of')).toBeVisible();
  await expect(page.getByText('Open license page')).toBeVisible();
});

test('search, pick, download, merge, save in eight clicks; again without a download', async ({ page }) => {
  await openSample(page);
  await page.getByRole('button', { name: 'Search the Hub' }).click();
  await pointAtFakeHub(page);
  await page.getByRole('button', { name: 'Done' }).click();
  await page.getByRole('button', { name: 'New', exact: true }).click();

  const { click, clicks, measured } = counting();
  await click(page.getByRole('button', { name: 'Search the Hub' }));
  // the hub asks to wait, for a time that it does not show to pages; the wait is counted down
  const busy = { kind: 'status', status: 429, headers: { 'Retry-After': '5' } } as const;
  hub.faults.push({ path: '/api/models', fault: busy });
  await page.getByLabel('Search the Hub').fill('base');
  await expect(
    page.getByRole('dialog').getByText(/asks for fewer requests.*; trying again in (1[0-4]|\d) s/),
  ).toBeVisible();
  await click(page.getByRole('button', { name: 'Use as base: amalgam/base' }));

  // its adapters and fine-tunes are offered before anything is typed
  for (const name of ['kitchen', 'harbour', 'workshop'])
    await click(page.getByRole('button', { name: `Add: amalgam/${name}` }));
  await click(page.getByRole('button', { name: 'Done' }));
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  await show(page, 'Files');
  // the sample's adapters name their base as it is called inside the app: the plan says so, and merges all the same
  await expect(page.getByText('was trained on samples/base').first()).toBeVisible();
  const before = hub.requests.length;
  await fetchMerged(page, click);
  measured('Hub base and three contributors');
  expect(clicks()).toBe(8);
  expect(weightRequests(before).length).toBeGreaterThan(0);

  expectSampleMean((await downloaded(page, 'model.safetensors')).bytes);

  // again: every weight comes from the cache
  const second = hub.requests.length;
  await mergeAgain(page);
  expect(weightRequests(second)).toEqual([]);
});

test('a gated model says what to do, and opens with a token that is sent to the hub alone', async ({
  page,
}) => {
  await openSample(page);
  await page.getByRole('button', { name: 'change' }).first().click();
  await page.getByRole('tab', { name: 'Hub' }).click();
  await pointAtFakeHub(page);
  const gated = [...new Set(sampleModels(join(import.meta.dirname, '../../public/samples')))].find(
    (m) => m.gated,
  )!;
  await page.getByLabel('Search the Hub').fill(gated.id);
  await page
    .getByRole('button', { name: `Use as base: ${gated.id}` })
    .first()
    .click();
  await expect(page.getByText(/asks for a license to be accepted first/).first()).toBeVisible();
  await page.getByLabel('Token', { exact: true }).fill(READER_TOKEN);
  await page.getByLabel('Token', { exact: true }).press('Enter');
  await page
    .getByRole('button', { name: `Use as base: ${gated.id}` })
    .first()
    .click();
  // the dialog goes on with its adapters
  await expect(page.getByRole('dialog', { name: 'Add contributors' })).toBeVisible();
  const withToken = hub.requests.filter((r) => r.authorization !== undefined);
  expect(withToken.length).toBeGreaterThan(0);
  expect(withToken.every((r) => r.server === 'hub')).toBe(true);

  // a recipe that names models of the Hub: one press gets them all
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'New', exact: true }).click();
  await page.getByRole('radio', { name: 'YAML' }).click();
  await page
    .getByRole('textbox', { name: 'Recipe as YAML' })
    .fill(
      'merge_method: task_arithmetic\nbase_model: amalgam/base\nmodels: [{model: amalgam/workshop, parameters: {weight: 1}}]\n',
    );
  await page.getByRole('button', { name: 'Get all 2 from the Hub' }).click();
  await expect(page.getByText(/^Ready:/)).toBeVisible();
});
