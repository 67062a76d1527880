import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { openServedDestination } from '../write/served-destination';
import { type AppServer, startAppServer } from './app-server';
import { HUB_ORIGINS } from './content-security-policy';
import { beginOutputFolder } from './output-folder';

let root: string;
let server: AppServer;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'amalgam-server-'));
  await mkdir(join(root, 'dist', 'assets'), { recursive: true });
  const meta = '<meta http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;">';
  await writeFile(join(root, 'dist', 'index.html'), `<head>${meta}<title>A</title></head>`);
  await writeFile(join(root, 'dist', 'assets', 'a.js'), 'run()');
  await mkdir(join(root, 'model', '.git'), { recursive: true });
  await mkdir(join(root, 'model', 'sub'));
  await writeFile(join(root, 'model', 'weights #1.bin'), '0123456789');
  await writeFile(join(root, 'model', 'sub', 'empty'), '');
  await writeFile(join(root, 'model', '.git', 'config'), 'secret');
  await writeFile(join(root, 'blob'), 'outside');
  await writeFile(join(root, 'model', 'real.json'), 'linked');
  await symlink('real.json', join(root, 'model', 'config.json'));
  await symlink(root, join(root, 'model', 'circle'));
  server = await startAppServer(join(root, 'dist'), HUB_ORIGINS);
  vi.stubGlobal('location', new URL(server.url));
});

afterEach(async () => {
  vi.unstubAllGlobals();
  await server.close();
  await rm(root, { recursive: true });
});

const at = (path: string) => new URL(path, server.url).href;

/** fetch tidies paths and forbids some headers; this sends them as they are. */
function raw(
  path: string,
  options: { method?: string; headers?: Record<string, string> } = {},
): Promise<number> {
  const { hostname, port } = new URL(server.url);
  return new Promise((resolve, reject) => {
    const request = httpRequest({ hostname, port, path, agent: false, ...options }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    request.on('error', reject);
    request.end();
  });
}

describe('the studio', () => {
  test('is served with its policy as a header', async () => {
    const page = await fetch(server.url);
    expect(page.headers.get('Content-Type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('Content-Security-Policy')).toMatch(
      /^default-src 'none';.*connect-src 'self' https:\/\/huggingface\.co .*frame-ancestors 'none'$/,
    );
    // untouched, or the service worker would not keep it
    expect(await page.text()).toBe(await readFile(join(root, 'dist', 'index.html'), 'utf8'));
    const script = await fetch(at('assets/a.js'));
    expect(script.headers.get('Content-Type')).toBe('text/javascript; charset=utf-8');
    expect(script.headers.get('Content-Security-Policy')).toContain("worker-src 'self'");
    expect(await script.text()).toBe('run()');
  });

  test('for another hub has the policy of that hub alone', async () => {
    const other = await startAppServer(join(root, 'dist'), ['https://hub.example']);
    const page = await fetch(other.url);
    await other.close();
    expect(page.headers.get('Content-Security-Policy')).toContain("connect-src 'self' https://hub.example;");
    expect(await page.text()).toBe('<head><title>A</title></head>');
  });

  test('R57: answers nobody who came by another name, and serves nothing outside', async () => {
    expect(await raw('/', { headers: { host: 'evil.example' } })).toBe(403);
    for (const path of ['/../blob', '/%2e%2e/blob', '/assets/../../blob', '/assets', '/%00', '/nothing']) {
      expect(await raw(path), path).toBe(404);
    }
    expect(await raw('/%')).toBe(400);
    expect(await raw('/index.html', { method: 'PUT' })).toBe(405);
  });
});

describe('served model folders', () => {
  test('list their files: no hidden ones, links to files followed, links to folders not', async () => {
    const { url: path } = await server.serveFolder(join(root, 'model'));
    const { files } = (await (await fetch(at(path))).json()) as { files: { path: string; size: number }[] };
    expect(files.sort((a, b) => (a.path < b.path ? -1 : 1))).toEqual([
      { path: 'config.json', size: 6 },
      { path: 'real.json', size: 6 },
      { path: 'sub/empty', size: 0 },
      { path: 'weights #1.bin', size: 10 },
    ]);
    expect(await (await fetch(at(`${path}config.json`))).text()).toBe('linked');
    for (const file of ['.git/config', '../blob', '%2e%2e/blob', 'circle/blob']) {
      expect(await raw(`${path}${file}`), file).toBe(404);
    }
  });

  test.each([
    ['bytes=0-3', 206, '0123', 'bytes 0-3/10'],
    ['bytes=8-100', 206, '89', 'bytes 8-9/10'],
    ['bytes=7-', 206, '789', 'bytes 7-9/10'],
    ['bytes=-2', 206, '89', 'bytes 8-9/10'],
    ['bytes=10-12', 416, '', 'bytes */10'],
    ['bytes=0-1,4-5', 200, '0123456789', null],
  ])('%s', async (range, status, text, contentRange) => {
    const { url: path } = await server.serveFolder(join(root, 'model'));
    const reply = await fetch(at(`${path}weights%20%231.bin`), { headers: { range } });
    expect([reply.status, await reply.text(), reply.headers.get('Content-Range')]).toEqual([
      status,
      text,
      contentRange,
    ]);
  });

  test('are found under a secret path only', async () => {
    const { url: path } = await server.serveFolder(join(root, 'model'));
    expect(path).toMatch(/^\/[0-9a-f]{32}\/models\/0\/$/);
    expect(await raw('/models/0/')).toBe(404);
    expect(await raw(path.replace('/0/', '/1/'))).toBe(404);
    expect(await raw(path, { method: 'DELETE' })).toBe(405);
  });
});

describe('the output, written by the page’s destination', () => {
  test('arrives whole, in pieces, under its name only after commit', async () => {
    const output = await beginOutputFolder(join(root, 'merged'));
    const destination = openServedDestination(server.receiveOutput(output));
    const large = new Uint8Array(40 * 2 ** 20).map((_, i) => (i * 7) & 255);
    const shard = await destination.create('model.safetensors');
    await shard.write(large.subarray(0, 5));
    await shard.write(large.subarray(5));
    await shard.close([]);
    await (await destination.create('sub dir/100.json')).close([]);
    expect(await readdir(root)).not.toContain('merged');
    await destination.commit();
    await destination.discard();
    expect(Buffer.compare(await readFile(join(root, 'merged', 'model.safetensors')), large)).toBe(0);
    expect((await readFile(join(root, 'merged', 'sub dir', '100.json'))).length).toBe(0);
  });

  test('discard removes what was sent', async () => {
    const output = await beginOutputFolder(join(root, 'merged'));
    const destination = openServedDestination(server.receiveOutput(output));
    const shard = await destination.create('model.safetensors');
    await shard.write(new Uint8Array(3));
    await destination.discard();
    await destination.discard();
    expect((await readdir(root)).filter((name) => name.includes('merged'))).toEqual([]);
  });

  test('what an interrupted run left is read back, continued and adopted; its journal is no part of the output', async () => {
    const first = await beginOutputFolder(join(root, 'merged'));
    const begun = openServedDestination(server.receiveOutput(first));
    expect((await begun.remains!.readJournal()).length).toBe(0);
    await begun.remains!.appendJournal(0, new TextEncoder().encode('one\ntorn'));
    const shard = await begun.create('model.safetensors');
    await shard.write(new Uint8Array([1, 2, 3, 4]));
    await (await begun.create('stale.txt')).close([]);
    first.keep();
    await first.discard();

    const second = await beginOutputFolder(join(root, 'merged'), true);
    const destination = openServedDestination(server.receiveOutput(second));
    const remains = destination.remains!;
    expect(Buffer.from(await remains.readJournal()).toString()).toBe('one\ntorn');
    await remains.appendJournal(4, new TextEncoder().encode('two\n'));
    expect(Buffer.from(await remains.readJournal()).toString()).toBe('one\ntwo\n');
    const left = await destination.left!('model.safetensors');
    expect([left?.byteLength, [...(await left!.read(1, 3))]]).toEqual([4, [2, 3]]);
    expect(await destination.left!('other.safetensors')).toBeUndefined();
    const further = await remains.reopen!('model.safetensors', 2);
    await further.write(new Uint8Array([9]));
    await further.close([]);
    await destination.commit();
    expect(await readdir(join(root, 'merged'))).toEqual(['model.safetensors']);
    expect([...(await readFile(join(root, 'merged', 'model.safetensors')))]).toEqual([1, 2, 9]);
  });

  test('what the server refuses is an error in its words', async () => {
    const output = await beginOutputFolder(join(root, 'merged'));
    const url = server.receiveOutput(output);
    const destination = openServedDestination(url);
    await expect(destination.create('../x')).rejects.toMatchObject({ code: 'UnsafePath' });
    await mkdir(join(root, 'merged'));
    await writeFile(join(root, 'merged', 'mine'), '');
    await expect(destination.commit()).rejects.toMatchObject({
      code: 'DestinationFailed',
      message: expect.stringContaining('is not an empty folder'),
    });
    await destination.discard();
    expect(() => openServedDestination('https://elsewhere.example/out')).toThrow('own server');
  });

  test('odd requests are refused', async () => {
    const { url: model } = await server.serveFolder(join(root, 'model'));
    expect(await raw(`${model}../../output/x?offset=0`, { method: 'PUT' })).toBe(404);
    const url = server.receiveOutput(await beginOutputFolder(join(root, 'merged')));
    expect((await fetch(at(`${url}/x?offset=a`), { method: 'PUT' })).status).toBe(400);
    expect((await fetch(at(`${url}/x?offset=1`), { method: 'PUT' })).status).toBe(409);
    expect((await fetch(at(`${url}/..%2fx?offset=0`), { method: 'PUT' })).status).toBe(409);
    expect((await fetch(at(`${url}/x`))).status).toBe(404);
    expect((await fetch(at(`${url}/x`), { method: 'POST' })).status).toBe(405);
    const large = new Uint8Array(16 * 2 ** 20 + 1);
    const reply = await fetch(at(`${url}/x?offset=0`), { method: 'PUT', body: large }).catch(() => undefined);
    expect(reply?.status ?? 413).toBe(413);
  });
});
