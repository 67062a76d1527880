/** Every method on WebGPU and on the processor: the same bytes and the same report, whatever the numbers. */
import { describe } from 'vitest';
import { sharedGpu } from '../../backend/kernels/kernels.test.support';
import { engineTests } from './contract.engines.test.support';
import { methods } from './index';

const gpu = await sharedGpu();

describe.each(methods.map((m) => [m.id, m] as const))('%s', (_, method) => engineTests(method, () => gpu));
