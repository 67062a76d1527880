import { join } from 'node:path';
import process from 'node:process';
import { defineConfig } from '@playwright/test';
import { STUDIO_URL, WORKERS } from './e2e/journeys/addresses';
import { swiftShaderEnvironment } from './e2e/setup-chromium.mjs';

// What the command keeps from one run to the next is nobody's here, and new every time.
process.env.XDG_CACHE_HOME = join(import.meta.dirname, 'test-results/cache');
// and its WebGPU is the software adapter
Object.assign(process.env, swiftShaderEnvironment());

export default defineConfig({
  testDir: 'e2e/journeys',
  testMatch: '**/*.spec.ts',
  outputDir: 'test-results/journeys',
  workers: WORKERS,
  forbidOnly: true,
  // ceilings for true events: what a slow machine with other work on it may take
  timeout: 1_200_000,
  expect: { timeout: 180_000 },
  globalSetup: './e2e/journeys/serve-studio.ts',
  reporter: [['list'], ['json', { outputFile: 'test-results/playwright.json' }]],
  use: { baseURL: STUDIO_URL },
});
