import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, test } from './studio';

// the service worker is let in
test.use({ ownBrowser: true });

/** Starts what `npm start` starts. @returns the address it prints */
async function start(): Promise<{ url: string; studio: ChildProcess }> {
  const args = ['--import', 'tsx', 'src/cli/start.ts', '--port', '0', '--no-open'];
  const studio = spawn(process.execPath, args, { cwd: join(import.meta.dirname, '../..') });
  let printed = '';
  for await (const piece of studio.stdout) {
    printed += piece;
    const [, url] = /Amalgam: (\S+)/.exec(printed) ?? [];
    if (url !== undefined) return { url, studio };
  }
  throw new Error(`no address: ${printed}`);
}

test('R57: npm start serves the built studio under its policy, and nothing of the project to nobody else', async ({
  page,
}) => {
  const { url, studio } = await start();
  try {
    const answer = await page.request.get(url, { headers: { Origin: 'http://localhost:9999' } });
    expect(answer.headers()['content-security-policy']).toMatch(
      /default-src 'none'.*require-trusted-types-for/,
    );
    expect(answer.headers()['access-control-allow-origin']).toBeUndefined();
    expect(answer.headers()['cross-origin-resource-policy']).toBe('same-origin');
    for (const path of [
      'package.json',
      'src/main.tsx',
      '@fs/etc/hosts',
      '.git/HEAD',
      '%2e%2e/package.json',
    ]) {
      expect((await page.request.get(url + path)).status(), path).toBe(404);
    }
    await page.goto(url);
    // the page carries the policy wherever it is published
    const policy = page.locator('meta[http-equiv="Content-Security-Policy"]');
    await expect(policy).toHaveAttribute('content', /default-src 'none'.*require-trusted-types-for 'script'/);
    await expect(page).toHaveTitle(/Amalgam/);
    await expect(page.getByText(/^Ready:/)).toBeVisible();
    // threads can share memory
    expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
    await page.evaluate(async () => {
      await navigator.serviceWorker.ready;
    });
  } finally {
    studio.kill();
    await once(studio, 'exit');
  }
});
