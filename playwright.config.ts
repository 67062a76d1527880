import { defineConfig } from '@playwright/test';
import {
  CLIENT_ID,
  HUB_CDN_URL,
  HUB_URL,
  STUDIO_DIST,
  STUDIO_PORT,
  STUDIO_URL,
} from './e2e/journeys/addresses';

const outDir = `--outDir ${STUDIO_DIST}`;

export default defineConfig({
  testDir: 'e2e/journeys',
  testMatch: '**/*.spec.ts',
  outputDir: 'test-results/journeys',
  // One at a time: a merge takes every core it finds.
  workers: 1,
  forbidOnly: true,
  timeout: 120_000,
  expect: { timeout: 15_000 },
  reporter: [['list'], ['json', { outputFile: 'test-results/playwright.json' }]],
  use: { baseURL: STUDIO_URL },
  // The journeys walk through the built page, under its real policy; only the hub's address is the fake one's.
  webServer: {
    command: `npx vite build --logLevel warn ${outDir} && npx vite preview ${outDir} --host 127.0.0.1 --port ${STUDIO_PORT} --strictPort`,
    url: STUDIO_URL,
    env: { VITE_HUB_URL: `${HUB_URL} ${HUB_CDN_URL}`, VITE_HF_CLIENT_ID: CLIENT_ID },
    timeout: 120_000,
    stdout: 'ignore',
  },
});
