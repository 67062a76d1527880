/** Every method on WebGPU and on the processor: the same bytes and the same report, whatever the numbers. */
import { describe } from 'vitest';
import { magmax } from '../../../docs/example/magmax';
import * as judge from '../../../docs/example/magmax.oracle';
import { sharedGpu } from '../../backend/kernels/kernels.test.support';
import { engineTests } from './contract.engines.test.support';
import { methods } from './index';

const gpu = await sharedGpu();

describe.each(methods.map((m) => [m.id, m] as const))('%s', (_, method) => engineTests(method, () => gpu));

describe('the worked example of docs/adding-a-method.md', () => engineTests(magmax, () => gpu, judge));
