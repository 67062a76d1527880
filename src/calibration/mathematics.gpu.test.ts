import { afterAll } from 'vitest';
import type { Backend } from '../backend/backend';
import { createGpuBackend } from '../backend/gpu/gpu-backend';
import { describeCompensation } from './compensation.test.cases';
import { describeFactors } from './factor.test.cases';
import { describeGrams } from './gram.test.cases';
import { describeSolve } from './gram-merge.test.cases';
import { describeMasks } from './keep-masks.test.cases';

/** The software adapter of the tests in the guise of a real one, so that the barrier forms of the kernels run. */
const asHardware = async () =>
  Object.create(await createGpuBackend(), { software: { value: false } }) as Backend;

for (const [name, open] of [
  ['webgpu', createGpuBackend],
  ['webgpu, kernels of real GPUs', asHardware],
] as const) {
  // one engine for all: compiling the kernels takes longer than running them
  let opened: Promise<Backend> | undefined;
  const engineOf = () => {
    opened ??= open();
    return opened;
  };
  afterAll(async () => (await opened)?.close());
  describeGrams(`Gram matrices, ${name}`, engineOf);
  describeMasks(`keep-masks, ${name}`, engineOf);
  describeFactors(`factors, ${name}`, engineOf);
  describeSolve(`the Gram merge, ${name}`, engineOf);
  describeCompensation(`compensation, ${name}`, engineOf);
}
