import { expect, it } from 'vitest';
import { compileKernels } from './vite-plugin';

it('exports.d.ts is what the compiler says the module exports', async () => {
  await expect((await compileKernels()).types).toMatchFileSnapshot('exports.d.ts');
});
