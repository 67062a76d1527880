import { defineConfig } from 'vitest/config';
import { cpuKernels } from '../../assembly/vite-plugin.ts';
import '../map-group-by.ts';

export default defineConfig({
  plugins: [cpuKernels()],
  test: { include: ['e2e/bench/**/*.bench.ts'], testTimeout: 600_000 },
});
