/**
 * Speed of the forward pass in the installed Chromium, for docs/benchmarks.md:
 *
 *   npx tsx e2e/bench/forward.ts [--gpu] [webgpu|cpu …]
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

const wanted = process.argv.slice(2);
const gpu = wanted.includes('--gpu');
const engines = wanted.filter((name) => name === 'webgpu' || name === 'cpu');
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
  await page.exposeFunction('say', (line: string) => console.log(line));
  // any page of the origin will do: the modules are the server's
  await page.goto(new URL('/icon.svg', server.resolvedUrls!.local[0]).href);
  for (const engine of engines.length > 0 ? engines : ['webgpu', 'cpu']) {
    await page.evaluate(
      `import('/e2e/bench/forward-page.ts').then(({ measure }) => measure(${JSON.stringify(engine)}, window.say))`,
    );
  }
} finally {
  await browser.close();
  await server.close();
  rmSync(profile, { recursive: true, force: true });
}
