/**
 * Uploads to the graphics device two ways, in turns, for docs/benchmarks.md: `writeBuffer`, and a ring of mapped staging
 * buffers that are used again.
 *
 *   npx tsx e2e/bench/uploads.ts [--gpu]
 *
 * Without `--gpu` WebGPU is the software adapter of the tests.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { chromium } from 'playwright';
import { createServer } from 'vite';
import { CHROMIUM_ARGS, findChromium, GPU_ARGS, SWIFTSHADER_ARGS } from '../setup-chromium.mjs';

const gpu = process.argv.includes('--gpu');
const profile = mkdtempSync(join(tmpdir(), 'amalgam-bench-'));
const server = await createServer({ server: { open: false }, logLevel: 'error' });
await server.listen(0);
const executablePath = findChromium();
const browser = await chromium.launchPersistentContext(profile, {
  ...(executablePath ? { executablePath } : {}),
  headless: false,
  args: ['--headless=new', '--no-sandbox', ...CHROMIUM_ARGS, ...(gpu ? GPU_ARGS : SWIFTSHADER_ARGS)],
});
try {
  const page = await browser.newPage();
  // any page of the origin will do: the modules are the server's
  await page.goto(new URL('/icon.svg', server.resolvedUrls!.local[0]).href);
  for (const mebibytes of [0.25, 4, 12]) {
    const { written, ring } = await page.evaluate<{ written: number[]; ring: number[] }>(
      `import('/e2e/bench/uploads-page.ts').then(({ measure }) => measure(${mebibytes}))`,
    );
    const speed = (seconds: number[]) => {
      const sorted = [...seconds].sort((a, b) => a - b);
      const gigabytes = (3 * mebibytes * 2 ** 20) / 1e9;
      return `${(gigabytes / sorted[0]!).toFixed(2)} best, ${(gigabytes / sorted[sorted.length >> 1]!).toFixed(2)} median`;
    };
    console.log(`3 × ${mebibytes} MiB, GB/s: writeBuffer ${speed(written)}; ring ${speed(ring)}`);
  }
} finally {
  await browser.close();
  await server.close();
  rmSync(profile, { recursive: true, force: true });
}
