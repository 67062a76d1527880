/** The worked example of docs/adding-a-method.md on both engines. */
import { magmax } from '../../../docs/example/magmax';
import * as judge from '../../../docs/example/magmax.oracle';
import { sharedGpu } from '../../backend/kernels/kernels.test.support';
import { engineTests } from './contract.engines.test.support';

const gpu = await sharedGpu();

engineTests(magmax, () => gpu, judge);
