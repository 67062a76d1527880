import process from 'node:process';
import { defineConfig } from 'vitest/config';
import { cpuKernels } from '../../assembly/vite-plugin';
import '../map-group-by';
import { swiftShaderEnvironment } from '../setup-chromium.mjs';

Object.assign(process.env, swiftShaderEnvironment());

const foreignText = 'src/foreign/foreign-text.test.support.ts';

export default defineConfig({
  test: {
    projects: [
      {
        plugins: [cpuKernels()],
        test: {
          name: 'cpu',
          setupFiles: [foreignText],
          include: ['e2e/golden/**/*.golden.ts'],
          exclude: ['**/*.gpu.golden.ts'],
          testTimeout: 120_000,
        },
      },
      {
        plugins: [cpuKernels()],
        test: {
          name: 'gpu',
          pool: 'forks',
          setupFiles: [foreignText, 'src/backend/gpu/node-webgpu.test.support.ts'],
          include: ['e2e/golden/**/*.gpu.golden.ts'],
          testTimeout: 120_000,
        },
      },
    ],
  },
});
