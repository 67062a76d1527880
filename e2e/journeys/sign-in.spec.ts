/** Signing in at the hub, and the search for the token afterwards: it is nowhere but in requests to the hub. */
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Page, Request } from '@playwright/test';
import { type FakeHub, sampleModels, startFakeHub } from '../fake-hub';
import { CLIENT_ID, HUB_CDN_PORT, HUB_PORT, HUB_URL, STUDIO_DIST, STUDIO_URL } from './addresses';
import { filesHolding, placesInPage } from './stored-text';
import { expect, merge, openSample, pointAtFakeHub, show, test } from './studio';

// what a browser leaves on the disk is searched too
test.use({ ownBrowser: true });

let hub: FakeHub;
test.beforeEach(async () => {
  hub = await startFakeHub({
    models: sampleModels(join(import.meta.dirname, '../../public/samples')),
    apps: [{ clientId: CLIENT_ID, redirectUrls: [STUDIO_URL] }],
    port: HUB_PORT,
    cdnPort: HUB_CDN_PORT,
  });
});
test.afterEach(() => hub.close());

/** Opens the hub's page by the button and follows one of its links. */
async function signIn(page: Page, link: 'Authorize' | 'Deny'): Promise<void> {
  const opened = page.context().waitForEvent('page');
  await page.getByRole('button', { name: /^Sign in to/ }).click();
  const window = await opened;
  await window.getByRole('link', { name: link }).click();
  // it hands its answer over and closes
  if (!window.isClosed()) await window.waitForEvent('close');
}

test('R32: signing in opens a gated model and pushes; the token is in no storage, address, log or other request', async ({
  context,
  page,
  profile,
}) => {
  const requests: Request[] = [];
  const said: string[] = [];
  context.on('request', (request) => requests.push(request));
  context.on('console', (message) => said.push(message.text()));

  await openSample(page);
  await merge(page);
  await show(page, 'Files');
  await pointAtFakeHub(page);

  await signIn(page, 'Deny');
  await expect(page.getByText(/You did not agree/)).toBeVisible();
  await signIn(page, 'Authorize');
  await expect(page.getByText('signed in as writer')).toBeVisible();
  const tokens = new Set(hub.requests.map((r) => r.authorization).filter((a) => a !== undefined));
  expect(tokens.size).toBe(1);
  const token = [...tokens][0]!.replace('Bearer ', '');
  expect(token).toMatch(/^hf_oauth_/);

  await page.getByRole('textbox', { name: 'Repository' }).fill('writer/signed-in');
  await page.getByRole('button', { name: 'Push', exact: true }).click();
  await expect(page.getByRole('link', { name: 'writer/signed-in' })).toBeVisible();

  await page.getByRole('button', { name: 'change' }).first().click();
  await page.getByRole('tab', { name: 'Hub' }).click();
  await page.getByLabel('Search the Hub').fill('amalgam/gated');
  await page.getByRole('button', { name: 'Use as base: amalgam/gated' }).first().click();
  // a base takes the place of the untouched sample; what is merged into it is asked for next
  const next = page.getByRole('dialog', { name: 'Add contributors' });
  await next.getByRole('button', { name: 'Close' }).click();
  await expect(page.getByRole('dialog')).toBeHidden();

  // both servers were talked to, and only the hub was shown the token, in no address
  expect(hub.requests.some((r) => r.server === 'cdn' && r.method === 'GET')).toBe(true);
  expect(hub.requests.some((r) => r.server === 'cdn' && r.method === 'PUT')).toBe(true);
  expect(hub.requests.filter((r) => r.server === 'cdn' && r.authorization !== undefined)).toEqual([]);
  const elsewhere = requests.filter((r) => new URL(r.url()).origin !== HUB_URL);
  expect(elsewhere.filter((r) => JSON.stringify([r.headers(), r.postData()]).includes(token))).toEqual([]);
  expect(requests.filter((r) => r.url().includes(token))).toEqual([]);
  expect(said.filter((line) => line.includes(token))).toEqual([]);

  // neither it nor the verifier is stored anywhere
  const redeemed = requests.filter((r) => r.url() === `${HUB_URL}/oauth/token` && r.method() === 'POST');
  expect(redeemed).toHaveLength(1);
  const verifier = new URLSearchParams(redeemed[0]!.postData() ?? '').get('code_verifier')!;
  expect(verifier).toMatch(/^[\w-]{43,128}$/);
  for (const secret of [token, verifier]) {
    const { holding, searched } = await placesInPage(page, secret);
    expect(holding).toEqual([]);
    expect(searched).toBeGreaterThan(50);
  }
  expect(JSON.stringify(await context.storageState())).not.toContain(token);
  // the search finds what is there
  await page.evaluate(() => localStorage.setItem('found', 'a-text-that-is-kept'));
  expect((await placesInPage(page, 'a-text-that-is-kept')).holding).toEqual(['localStorage']);

  // signed out, nothing is sent along any more
  await page.getByRole('button', { name: 'Sign out' }).click();
  await expect(page.getByText('signed in as writer')).toBeHidden();
  const after = hub.requests.length;
  await page.getByRole('button', { name: '+ add' }).first().click();
  await page.getByRole('tab', { name: 'Hub' }).click();
  await page.getByLabel('Search the Hub').fill('workshop');
  await expect(page.getByRole('button', { name: 'Add: amalgam/workshop' }).first()).toBeVisible();
  expect(hub.requests.slice(after).length).toBeGreaterThan(0);
  expect(hub.requests.slice(after).filter((r) => r.authorization !== undefined)).toEqual([]);

  // the browser's own files: history, caches, databases
  await context.close();
  expect(filesHolding(profile, 'a-text-that-is-kept').length).toBeGreaterThan(0);
  expect(filesHolding(profile, token)).toEqual([]);
  expect(filesHolding(profile, verifier)).toEqual([]);
});

/** A folder as any file server serves it, below a path, with a script put into its page. */
async function plainServer(path: string, intoPage: (page: string) => string): Promise<Server> {
  const types: Record<string, string> = { html: 'text/html', js: 'text/javascript', css: 'text/css' };
  const root = join(import.meta.dirname, '../..', STUDIO_DIST);
  const server = createServer(async ({ url = '' }, response) => {
    const { pathname } = new URL(url, STUDIO_URL);
    const file = pathname.startsWith(path) ? pathname.slice(path.length) || 'index.html' : undefined;
    const bytes = file === undefined ? undefined : await readFile(join(root, file)).catch(() => undefined);
    if (!bytes) return void response.writeHead(404).end();
    const type = types[file!.split('.').at(-1)!] ?? 'application/octet-stream';
    response.writeHead(200, { 'Content-Type': type });
    response.end(file === 'index.html' ? intoPage(bytes.toString()) : bytes);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return server;
}

test('below a path of a plain file server, signed in as the variables of the host say, also from a script that is stopped', async ({
  context,
}) => {
  await hub.close();
  const injected = (id: string) =>
    `<script>window.huggingface={variables:{"OAUTH_CLIENT_ID":"${id}"}}</script>`;
  let where: 'ahead' | 'behind' = 'ahead';
  const server = await plainServer('/some/where/', (page) =>
    where === 'ahead'
      ? page.replace('<head>', `<head>${injected('app-of-the-host')}`)
      : page.replace('</head>', `${injected('app-of-a-space')}</head>`),
  );
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/some/where/`;
  hub = await startFakeHub({
    models: [],
    apps: [{ clientId: 'app-of-the-host', redirectUrls: [address] }],
    port: HUB_PORT,
    cdnPort: HUB_CDN_PORT,
  });
  try {
    const page = context.pages()[0] ?? (await context.newPage());
    const open = async () => {
      await page.goto(address);
      await expect(page.getByText(/^Ready:/)).toBeVisible();
      await page.getByRole('button', { name: '+ add' }).first().click();
      await page.getByRole('tab', { name: 'Hub' }).click();
      await page.getByText('Access token and hub').click();
    };
    await open();
    await page.getByLabel('Hub', { exact: true }).fill(HUB_URL);
    await page.getByLabel('Hub', { exact: true }).press('Enter');
    await signIn(page, 'Authorize');
    await expect(page.getByText('signed in as writer')).toBeVisible();

    where = 'behind';
    await open();
    const opened = page.context().waitForEvent('page');
    await page.getByRole('button', { name: /^Sign in to/ }).click();
    const window = await opened;
    await window.waitForURL(/client_id=app-of-a-space/);
    // the hub does not know it
    await expect(window.getByText('Unknown app or address.')).toBeVisible();
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
