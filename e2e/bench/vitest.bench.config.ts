import { defineConfig } from 'vitest/config';
import { cpuKernels } from '../../assembly/vite-plugin.ts';
import '../map-group-by.ts';
import { swiftShaderEnvironment } from '../setup-chromium.mjs';

// the loader of libraries reads it when the process of the benchmarks starts
Object.assign(process.env, swiftShaderEnvironment());

export default defineConfig({
  plugins: [cpuKernels()],
  test: { include: ['e2e/bench/**/*.bench.ts'], testTimeout: 600_000 },
});
