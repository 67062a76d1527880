import { readFileSync } from 'node:fs';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { openSharedWeights } from '../backend/cpu/shared-weights';
import { sumsCases } from './sums.test.cases';

sumsCases(
  async () => createCpuBackend(openSharedWeights(0, () => () => undefined)),
  async (path) => new Uint8Array(readFileSync(path)),
);
