import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { playwright } from '@vitest/browser-playwright';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';
import { cpuKernels } from './assembly/vite-plugin.ts';
import './e2e/map-group-by.ts';
import { SEED } from './e2e/seed.ts';
import {
  CHROMIUM_ARGS,
  findChromium,
  SWIFTSHADER_ARGS,
  swiftShaderEnvironment,
} from './e2e/setup-chromium.mjs';
import { ISOLATION } from './src/cli/content-security-policy.ts';

// Found up front, so that no test file has to be reloaded in the middle of a run.
const BROWSER_DEPENDENCIES = [
  '@huggingface/hub',
  '@huggingface/jinja',
  '@huggingface/tokenizers',
  '@tanstack/react-virtual',
  'comlink',
  'd3-scale',
  'd3-scale-chromatic',
  'fast-check',
  'hash-wasm',
  'hyparquet',
  'hyparquet-compressors',
  ...['assemble', 'column', 'convert', 'datapage', 'schema'].map((file) => `hyparquet/src/${file}.js`),
  'idb',
  'radix-ui',
  'react',
  'react-dom/client',
  'react/jsx-runtime',
  'valibot',
  'yaml',
  'zustand',
  'zustand/react/shallow',
  'zustand/vanilla',
];

/** Properties are tested on the same cases every time. */
const seededProperties: Plugin = {
  name: 'seeded-properties',
  enforce: 'pre',
  transform(code, id) {
    if (!/\.test\.tsx?$/.test(id) || !code.includes("import fc from 'fast-check'")) return;
    return { code: `${code}\nfc.configureGlobal({ seed: ${SEED} });\n`, map: null };
  },
};

/** Tests in Node share modules: one that is mocked would stay so, or has been loaded already by the files before. */
const noMockedModules: Plugin = {
  name: 'no-mocked-modules',
  enforce: 'pre',
  transform(code, id) {
    if (/\.test\.tsx?$/.test(id) && /\bvi\.(?:mock|doMock)\(/.test(code))
      this.error(
        'Modules are shared by the tests in Node: spy on the export (`vi.spyOn`) in place of `vi.mock`.',
      );
  },
};

/** React as users have it; what it checks in development took a fifth of these tests. */
const SHIPPED = { 'process.env.NODE_ENV': '"production"' };

/** Ceilings for true events: what a slow machine with other work on it may take, not what is expected. */
const PATIENCE = { testTimeout: 180_000, hookTimeout: 180_000, expect: { poll: { timeout: 60_000 } } };

// A profile on disk: the default context keeps OPFS in a small memory where write() fails without throwing.
const profile = mkdtempSync(join(tmpdir(), 'amalgam-vitest-'));
process.once('exit', () => rmSync(profile, { recursive: true, force: true }));
const executablePath = findChromium();
// the loader of libraries reads it when a process starts: those of the tests on WebGPU do later
Object.assign(process.env, swiftShaderEnvironment());

export default defineConfig({
  test: {
    reporters: ['default', 'json'],
    outputFile: { json: 'test-results/vitest.json' },
    allowOnly: false,
    projects: [
      {
        plugins: [cpuKernels(), seededProperties, noMockedModules],
        test: {
          name: 'unit',
          ...PATIENCE,
          environment: 'node',
          // Loading the modules again for every file took most of the time; what a file changes, it gives back.
          isolate: false,
          setupFiles: ['src/foreign/foreign-text.test.support.ts', 'src/given-back.test.support.ts'],
          include: ['src/**/*.test.{ts,tsx}', 'assembly/*.test.ts', 'e2e/**/*.test.ts'],
          exclude: ['**/*.{browser,gpu}.test.*', 'node_modules/**'],
        },
      },
      {
        plugins: [cpuKernels(), seededProperties, noMockedModules],
        test: {
          name: 'gpu',
          ...PATIENCE,
          environment: 'node',
          // Dawn is one to a process, and starts once
          pool: 'forks',
          isolate: false,
          setupFiles: ['src/given-back.test.support.ts', 'src/backend/gpu/node-webgpu.test.support.ts'],
          include: ['src/**/*.gpu.test.ts'],
        },
      },
      {
        plugins: [cpuKernels()],
        oxc: { jsx: { development: false } },
        define: SHIPPED,
        server: { headers: ISOLATION },
        worker: { format: 'es', plugins: () => [cpuKernels()] },
        // What workers import is not found by scanning; a dependency found late reloads the page in mid-test.
        optimizeDeps: {
          entries: ['src/**/*.browser.test.{ts,tsx}', 'src/**/*.worker.ts'],
          include: BROWSER_DEPENDENCIES,
          rolldownOptions: { transform: { define: SHIPPED } },
        },
        test: {
          name: 'browser',
          ...PATIENCE,
          include: ['src/**/*.browser.test.{ts,tsx}'],
          // One persistent profile, and one device at a time: neither can be shared by test files running at once.
          fileParallelism: false,
          setupFiles: ['src/ui/first-visit.test.support.ts'],
          browser: {
            enabled: true,
            headless: true,
            screenshotFailures: false,
            provider: playwright({
              launchOptions: {
                args: ['--no-sandbox', ...CHROMIUM_ARGS, ...SWIFTSHADER_ARGS],
                ...(executablePath ? { executablePath } : {}),
              },
              persistentContext: profile,
            }),
            instances: [{ browser: 'chromium' }],
          },
        },
      },
    ],
  },
});
