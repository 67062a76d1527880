import { defineConfig } from 'vitest/config';
import '../map-group-by';

export default defineConfig({
  test: {
    include: ['e2e/golden/**/*.golden.ts'],
    testTimeout: 120_000,
  },
});
