/**
 * `npm run test:wgsl`: the contract tests of all WGSL kernels and methods on Firefox's WebGPU (wgpu), so that none rests on
 * what one compiler lets pass. `-- --only chromium` runs the same page on Chromium's (Dawn), with `--gpu` on the
 * machine's own device; `--files NAME` those of that name.
 */
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createServer } from 'vite';
import { cpuKernels } from '../../assembly/vite-plugin.ts';
import { GPU_ARGS, SWIFTSHADER_ARGS } from '../setup-chromium.mjs';
import type { ContractResult } from './contracts-page';
import { openChromium, openFirefox } from './launch';
import { personAt } from './tab';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: 'firefox' },
    files: { type: 'string', default: '' },
    gpu: { type: 'boolean', default: false },
  },
});
const root = fileURLToPath(new URL('../..', import.meta.url));
const server = await createServer({
  root,
  configFile: false,
  logLevel: 'error',
  cacheDir: 'node_modules/.cache/contracts',
  plugins: [cpuKernels()],
  resolve: {
    alias: { vitest: fileURLToPath(new URL('contract-runner.ts', import.meta.url)) },
  },
  optimizeDeps: { entries: ['e2e/browsers/contracts.html'] },
  server: { port: 0, host: '127.0.0.1', open: false, hmr: false, watch: null },
});
await server.listen();
const tab = await (values.only === 'chromium'
  ? openChromium(undefined, values.gpu ? GPU_ARGS : SWIFTSHADER_ARGS)
  : openFirefox());
let failed = 0;
try {
  await tab.goto(`${server.resolvedUrls!.local[0]}e2e/browsers/contracts.html#${values.files}`);
  const seen: ContractResult[] = [];
  let last = { begun: 0, title: '' };
  for (;;) {
    const { results, isOver, begun, title } = await personAt(tab).until<Window['contracts']>(
      `the end of test ${last.begun} (${last.title})`,
      `window.contracts && (window.contracts.isOver || window.contracts.begun > ${last.begun}) && window.contracts`,
      1000,
    );
    for (const { file, passed, failed: wrong } of results.slice(seen.length)) {
      console.log(`${tab.browser} · ${file.replace('../../', '')}: ${passed} passed, ${wrong.length} failed`);
      for (const line of wrong) console.log(`  ${line.slice(0, 400)}`);
      failed += wrong.length;
    }
    last = { begun, title };
    seen.splice(0, seen.length, ...results);
    if (isOver) break;
  }
  const passed = seen.reduce((sum, { passed: n }) => sum + n, 0);
  console.log(`${passed} passed, ${failed} failed in ${seen.length} files`);
  if (passed === 0) failed++;
} finally {
  await tab.close();
  await server.close();
}
process.exit(failed === 0 ? 0 : 1);
