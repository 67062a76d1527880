import { expect, test } from 'vitest';
import type { Backend } from '../../backend/backend';
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import { sharedGpu } from '../../backend/kernels/kernels.test.support';
import { createQueue } from '../../forward/queue';
import { makeTogether } from './fit';
import { openProducts } from './products';
import { near, pursue, rowOf } from './pursuit';
import { numbers } from './transplant.test.support';

const gpu = await sharedGpu();

test.each([pursue, near])('$name: both engines give the same rows and factors to the bit', async (start) => {
  const width = 18;
  const dictionary = { values: numbers(1, 90 * width), count: 90, width };
  const x = { values: numbers(2, 7 * width), count: 7, width };
  const made = async (engine: Backend) => {
    const products = openProducts(createQueue(engine), dictionary);
    const makings = Array.from({ length: 7 }, (_, i) => start(rowOf(x, i), dictionary, 6));
    await makeTogether(makings, products, width);
    products.close();
    return makings.map((making) => making.made);
  };
  expect(await made(gpu)).toEqual(await made(createCpuBackend()));
});
