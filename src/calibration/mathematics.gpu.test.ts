import { readFileSync } from 'node:fs';
import { sharedGpu } from '../backend/kernels/kernels.test.support';
import { GOLDEN_NAMES } from '../forward/golden.test.fixture';
import { describeCompensation } from './compensation.test.cases';
import { describeFactors } from './factor.test.cases';
import { describeGoldenGrams } from './golden.test.cases';
import { describeGrams } from './gram.test.cases';
import { describeSolve } from './gram-merge.test.cases';
import { describeMasks } from './keep-masks.test.cases';

for (const [name, guise] of [
  ['webgpu', 'software'],
  ['webgpu, kernels of real GPUs', 'real'],
] as const) {
  const engineOf = () => sharedGpu(guise);
  describeGrams(`Gram matrices, ${name}`, engineOf);
  describeFactors(`factors, ${name}`, engineOf);
  describeSolve(`the Gram merge, ${name}`, engineOf);
}
// made of no products, which alone have kernels of their own for real GPUs
describeMasks('keep-masks, webgpu', () => sharedGpu());
describeCompensation('compensation, webgpu', () => sharedGpu());

const read = async (path: string) => new Uint8Array(readFileSync(path));
describeGoldenGrams('golden Gram matrices, webgpu', GOLDEN_NAMES, read, sharedGpu);
