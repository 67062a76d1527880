/** The worked example of docs/adding-a-method.md: its tests are those of every method. */
import { magmax } from '../../../docs/example/magmax';
import * as judge from '../../../docs/example/magmax.oracle';
import { contractTests } from './contract.test.support';

contractTests(magmax, judge);
