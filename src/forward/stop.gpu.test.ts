import { expect, test } from 'vitest';
import { sharedGpu } from '../backend/kernels/kernels.test.support';
import { openRunner } from './runner';
import { architecture, stopCases, zeros } from './stop.test.cases';

stopCases(sharedGpu, [1e9]);

test('weights at eight bits that do not stay are read once, though a pass waits for the device often', async () => {
  const source = zeros();
  const reads: string[] = [];
  const read: typeof source.read = async (name, begin, end) => {
    reads.push(`${name} from ${begin}`);
    // as a file answers: while the pass waits
    await new Promise((resolve) => setTimeout(resolve));
    return source.read(name, begin, end);
  };
  const runner = openRunner(await sharedGpu(), architecture(), { ...source, read }, { weights: '8-bit' });
  await runner.pass({ sequences: [{ ids: Array.from({ length: 24 }, (_, i) => i) }], output: 'none' });
  runner.close();
  expect(reads.length).toBeGreaterThan(50);
  expect(reads.length).toBe(new Set(reads).size);
});
