/** A merge is pushed to a model repository: created, refused, asked before anything is replaced. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import {
  type FakeHub,
  type FakeHubOptions,
  READER_TOKEN,
  sampleModels,
  startFakeHub,
  WRITER_TOKEN,
} from '../fake-hub';
import { HUB_CDN_PORT, HUB_PORT, HUB_URL } from './addresses';
import { downloaded, expect, merge, openSample, pointAtFakeHub, show, test } from './studio';

let hub: FakeHub;
const start = async (region: FakeHubOptions['region'] = 'us') => {
  hub = await startFakeHub({
    models: sampleModels(join(import.meta.dirname, '../../public/samples')),
    port: HUB_PORT,
    cdnPort: HUB_CDN_PORT,
    pieceBytes: 1_000_000,
    region,
  });
};
test.beforeEach(() => start());
test.afterEach(() => hub.close());

async function giveToken(page: Page, token: string): Promise<void> {
  await page.getByLabel('Token', { exact: true }).fill(token);
  await page.getByLabel('Token', { exact: true }).press('Enter');
}

const push = (page: Page) => page.getByRole('button', { name: 'Push', exact: true });
const stored = async (path: string, repository = 'writer/merged') => {
  const headers = { Authorization: `Bearer ${WRITER_TOKEN}` };
  const response = await fetch(`${HUB_URL}/${repository}/resolve/main/${path}`, { headers });
  expect(response.status, path).toBe(200);
  return new Uint8Array(await response.arrayBuffer());
};
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

test('the merged sample arrives whole in a new private repository, of what is refused nothing is left behind, and a policy that names no store is said', async ({
  page,
}) => {
  await openSample(page);
  await merge(page);
  await show(page, 'Files');
  await pointAtFakeHub(page);
  const local = (await downloaded(page, 'model.safetensors')).bytes;

  await giveToken(page, WRITER_TOKEN);
  await expect(page.getByText('as writer')).toBeVisible();
  await page.getByRole('textbox', { name: 'Repository' }).fill('writer/merged');
  await push(page).click();
  await expect(page.getByRole('link', { name: 'writer/merged' })).toBeVisible();

  const remote = await stored('model.safetensors');
  expect(sha256(remote)).toBe(sha256(local));
  expect(JSON.parse(new TextDecoder().decode(await stored('config.json')))).toHaveProperty('model_type');
  for (const file of ['README.md', 'mergekit_config.yml', 'tokenizer.json']) await stored(file);
  // private: without a token there is nothing to see
  expect((await fetch(`${HUB_URL}/writer/merged/resolve/main/config.json`)).status).toBe(401);
  // 2.5 MB in pieces of one, and the token went to the hub alone
  const puts = hub.requests.filter((r) => r.method === 'PUT');
  expect(puts).toHaveLength(3);
  const withToken = hub.requests.filter((r) => r.authorization !== undefined);
  expect(withToken.every((r) => r.server === 'hub')).toBe(true);

  // again: the files are there now, and are replaced only after a yes; nothing large is sent twice
  await push(page).click();
  const taken = page.getByRole('list', { name: 'Files that would be replaced' });
  await expect(taken).toContainText('model.safetensors');
  const commits = () => hub.requests.filter((r) => r.method === 'POST' && r.path.endsWith('/commit/main'));
  expect(commits()).toHaveLength(1);
  await page.getByRole('button', { name: 'Replace these files' }).click();
  await expect(page.getByRole('link', { name: 'writer/merged' })).toBeVisible();
  expect(commits()).toHaveLength(2);
  expect(hub.requests.filter((r) => r.method === 'PUT')).toHaveLength(3);

  // what the hub refuses is said in words
  await giveToken(page, 'hf_unknown');
  await expect(page.getByText(/does not accept your access token/)).toBeVisible();
  await giveToken(page, READER_TOKEN);
  await expect(page.getByText('as reader, read only')).toBeVisible();
  await expect(push(page)).toHaveAttribute('aria-disabled', 'true');

  await giveToken(page, WRITER_TOKEN);
  await expect(page.getByText('as writer')).toBeVisible();
  await page.getByRole('textbox', { name: 'Repository' }).fill('somebody/else');
  await push(page).click();
  await expect(page.getByText(/rights to create a model under the namespace "somebody"/)).toBeVisible();

  // the server fails at the last step: the repository has no file of the output
  hub.faults.push({ path: '/api/models/writer/half/commit/main', fault: { kind: 'status', status: 500 } });
  await page.getByRole('textbox', { name: 'Repository' }).fill('writer/half');
  await push(page).click();
  await expect(page.getByText(/keeps failing with status 500 for writer\/half/)).toBeVisible();
  const headers = { Authorization: `Bearer ${WRITER_TOKEN}` };
  const tree = await (await fetch(`${HUB_URL}/api/models/writer/half/tree/main`, { headers })).json();
  expect(tree.map((entry: { path: string }) => entry.path)).toEqual(['.gitattributes']);

  await push(page).click();
  await expect(page.getByRole('link', { name: 'writer/half' })).toBeVisible();

  // large files go to the store of the region
  await hub.close();
  await start('eu');
  await page.getByRole('textbox', { name: 'Repository' }).fill('writer/regional');
  await push(page).click();
  await expect(page.getByRole('link', { name: 'writer/regional' })).toBeVisible();
  expect((await stored('model.safetensors', 'writer/regional')).length).toBeGreaterThan(2_000_000);
  // the hub has checked the card before a byte was sent
  const asked = hub.requests.findIndex((r) => r.path === '/api/validate-yaml' && r.status === 200);
  expect(asked).toBeGreaterThanOrEqual(0);
  expect(asked).toBeLessThan(hub.requests.findIndex((r) => r.method === 'PUT'));

  await hub.close();
  await start('unknown');
  await page.getByRole('textbox', { name: 'Repository' }).fill('writer/other');
  await push(page).click();
  await expect(
    page.getByText(/sent to 127\.0\.0\.3:4390, which the policy of this page does not name/),
  ).toBeVisible();
});
