/** The app without a network: it opens and merges; a new version is offered, and taken by a click. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join, normalize } from 'node:path';
import { serviceWorker } from '../../offline/vite-plugin';
import { STUDIO_DIST } from './addresses';
import { expectSampleMean } from './merged-folder';
import { downloaded, expect, merge, show, test } from './studio';

// each has the host to itself
test.use({ ownBrowser: true });

const TYPES: Record<string, string> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
  '.webmanifest': 'application/manifest+json',
};

let folder: string;
let server: Server;
let url: string;

/** A host of static files, as the app is published: what is in the folder now, gone when it is stopped. */
test.beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'amalgam-offline-'));
  cpSync(join(import.meta.dirname, '../..', STUDIO_DIST), folder, { recursive: true });
  server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://host');
    const path = normalize(pathname === '/' ? '/index.html' : decodeURIComponent(pathname));
    try {
      const content = readFileSync(join(folder, path));
      response.writeHead(200, { 'Content-Type': TYPES[extname(path)] ?? 'application/octet-stream' });
      response.end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
});
test.afterEach(async () => {
  await stop();
  rmSync(folder, { recursive: true, force: true });
});

async function stop(): Promise<void> {
  if (!server.listening) return;
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}

test('once loaded, it opens offline and merges the sample', async ({ page, context }) => {
  await page.goto(url);
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  await page.evaluate(async () => {
    await navigator.serviceWorker.ready;
  });
  await stop();
  await context.setOffline(true);
  await page.reload();
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  // the host sends no header for it
  expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
  await merge(page);
  await show(page, 'Files');
  expectSampleMean((await downloaded(page, 'model.safetensors')).bytes);
  await show(page, 'Measure');
  // what is loaded when it is used is there too, and so are the texts
  await expect(page.getByRole('group', { name: 'Texts to measure on' }).getByRole('button')).not.toHaveCount(
    0,
  );
  await expect(page.getByRole('button', { name: 'kitchen', exact: true }).first()).toBeVisible();

  // one cache with the app and its sample
  const kept = await page.evaluate(async () => {
    const names = await caches.keys();
    const requests = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()));
    return { names, urls: requests.flat().map((request) => request.url) };
  });
  expect(kept.names).toHaveLength(1);
  expect(kept.urls.every((kept) => kept.startsWith(url))).toBe(true);
  expect(kept.urls.some((kept) => /README|samples\/source|\/sw\.js/.test(kept))).toBe(false);
});

test('R56: of a host that is only half updated nothing is kept; a whole new version is offered, and taken by a click', async ({
  page,
}) => {
  await page.goto(url);
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  const installed = page.evaluate(async () => {
    const registration = await navigator.serviceWorker.ready;
    return new Promise<string>((resolve) =>
      registration.addEventListener('updatefound', () => {
        const worker = registration.installing!;
        worker.addEventListener('statechange', () => resolve(worker.state));
      }),
    );
  });
  // the new service worker is there already, a file that it names is not
  const page1 = join(folder, 'index.html');
  const html = readFileSync(page1, 'utf8');
  writeFileSync(page1, html.replace('<title>Amalgam</title>', '<title>Amalgam 2</title>'));
  const next = serviceWorker(folder);
  writeFileSync(page1, html);
  writeFileSync(join(folder, 'sw.js'), next);
  await page.evaluate(async () => (await navigator.serviceWorker.ready).update());
  expect(await installed).toBe('redundant');
  // once the host is whole, the new version comes
  writeFileSync(page1, html.replace('<title>Amalgam</title>', '<title>Amalgam 2</title>'));
  // the version that was loaded is the one that opens, whatever is on the server
  await page.reload();
  await expect(page).toHaveTitle('Amalgam');
  const reload = page.getByRole('button', { name: 'Reload to update' });
  await reload.click();
  await expect(page).toHaveTitle('Amalgam 2');
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  await expect(reload).toBeHidden();
});
