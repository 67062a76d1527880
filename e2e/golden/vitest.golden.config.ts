import { defineConfig } from 'vitest/config';
import { cpuKernels } from '../../assembly/vite-plugin';
import '../map-group-by';

export default defineConfig({
  plugins: [cpuKernels()],
  test: {
    include: ['e2e/golden/**/*.golden.ts'],
    testTimeout: 120_000,
  },
});
