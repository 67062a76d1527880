import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { playwright } from '@vitest/browser-playwright';
import { defineConfig } from 'vitest/config';
import { cpuKernels } from '../../assembly/vite-plugin';
import '../map-group-by';
import { CHROMIUM_ARGS, findChromium, SWIFTSHADER_ARGS } from '../setup-chromium.mjs';

const root = process.env.AMALGAM_GOLDEN!;
const folder = join(root, 'golden', 'forward2');
const families = readdirSync(folder, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);
const executablePath = findChromium();

export default defineConfig({
  test: {
    projects: [
      {
        plugins: [cpuKernels()],
        test: {
          name: 'node',
          setupFiles: ['src/foreign/foreign-text.test.support.ts'],
          include: ['e2e/golden/**/*.golden.ts'],
          testTimeout: 120_000,
        },
      },
      {
        plugins: [cpuKernels()],
        server: { fs: { allow: ['.', root] } },
        test: {
          name: 'browser',
          include: ['e2e/golden/**/*.golden.browser.ts'],
          testTimeout: 120_000,
          provide: { golden: { folder, families } },
          browser: {
            enabled: true,
            headless: true,
            screenshotFailures: false,
            provider: playwright({
              launchOptions: {
                args: ['--no-sandbox', ...CHROMIUM_ARGS, ...SWIFTSHADER_ARGS],
                ...(executablePath ? { executablePath } : {}),
              },
            }),
            instances: [{ browser: 'chromium' }],
          },
        },
      },
    ],
  },
});
