import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { serveStudio } from './build';

let root: string;
let studio: Awaited<ReturnType<typeof serveStudio>>;
const PAGE = '<!doctype html><title>A</title>';

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'amalgam-server-'));
  await mkdir(join(root, 'dist', 'assets'), { recursive: true });
  await writeFile(join(root, 'dist', 'index.html'), PAGE);
  await writeFile(join(root, 'dist', 'assets', 'a.js'), 'run()');
  await writeFile(join(root, 'blob'), 'outside');
  studio = await serveStudio(join(root, 'dist'), ['https://hub.example']);
});

afterAll(async () => {
  await studio.close();
  await rm(root, { recursive: true });
});

/** fetch tidies paths and forbids some headers; this sends them as they are. */
function raw(path: string, headers: Record<string, string> = {}): Promise<{ status: number; text: string }> {
  const { hostname, port } = new URL(studio.url);
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path, headers, agent: false }, async (response) => {
      let text = '';
      for await (const chunk of response) text += chunk;
      resolve({ status: response.statusCode ?? 0, text });
    });
    sent.on('error', reject);
    sent.end();
  });
}

describe('the studio on this machine', () => {
  test('is served as it was built, with its policy as a header', async () => {
    const page = await fetch(studio.url);
    expect(page.headers.get('Content-Type')).toMatch(/^text\/html/);
    expect(page.headers.get('Content-Security-Policy')).toMatch(
      /^default-src 'none';.*connect-src 'self' https:\/\/hub\.example;.*frame-ancestors 'none'$/,
    );
    expect(page.headers.get('Access-Control-Allow-Origin')).toBe(null);
    // untouched, or the service worker would not keep it
    expect(await page.text()).toBe(PAGE);
    const script = await fetch(`${studio.url}assets/a.js`);
    expect(script.headers.get('Content-Type')).toMatch(/^text\/javascript/);
    expect(script.headers.get('Content-Security-Policy')).toContain("worker-src 'self'");
    expect(await script.text()).toBe('run()');
  });

  test('R57: answers nobody who came by another name, and serves nothing outside', async () => {
    const stranger = await raw('/', { host: 'evil.example' });
    expect(stranger.status).toBe(403);
    expect(stranger.text).not.toContain(PAGE);
    for (const path of ['/../blob', '/%2e%2e/blob', '/assets/../../blob', '/%00', '/nothing']) {
      const { status, text } = await raw(path);
      expect(status, path).toBeGreaterThanOrEqual(400);
      expect(text, path).not.toContain('outside');
    }
  });

  test('a port that is taken is said', async () => {
    const port = Number(new URL(studio.url).port);
    await expect(serveStudio(join(root, 'dist'), [], port)).rejects.toThrow(`${port}`);
  });
});
