import type { ComputeEngine } from '../compute/engine';
import { createGpuEngine } from '../gpu/gpu-engine';
import { describeCompensation } from './compensate.test.cases';
import { describeFactors } from './factor.test.cases';
import { describeGrams } from './gram.test.cases';
import { describeMasks } from './keep.test.cases';
import { describeSolve } from './solve.test.cases';

/** The software adapter of the tests in the guise of a real one, so that the barrier forms of the kernels run. */
const asHardware = async () =>
  Object.create(await createGpuEngine(), { software: { value: false } }) as ComputeEngine;

for (const [name, open] of [
  ['webgpu', createGpuEngine],
  ['webgpu, kernels of real GPUs', asHardware],
] as const) {
  describeGrams(`Gram matrices, ${name}`, open);
  describeMasks(`keep-masks, ${name}`, open);
  describeFactors(`factors, ${name}`, open);
  describeSolve(`the Gram merge, ${name}`, open);
  describeCompensation(`compensation, ${name}`, open);
}
