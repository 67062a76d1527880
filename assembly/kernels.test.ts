import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { storedSums } from '../src/backend/kernels/sums';
import { allKernels } from '../src/worker/all-kernels';
import { compileKernels } from './vite-plugin';

it('exports.d.ts is what the compiler says the module exports', async () => {
  await expect((await compileKernels()).types).toMatchFileSnapshot('exports.d.ts');
});

const files = (folder: string, end: string) =>
  readdirSync(new URL(folder, import.meta.url))
    .filter((name) => name.endsWith(end))
    .map((name) => name.slice(0, -end.length));

/** Without a form for the GPU: what it makes goes to a file, and is made beside a merge. */
const PROCESSOR_ALONE = ['encode-blocks'];

it('a kernel has one name in assembly/kernels, src/backend/kernels and shaders', () => {
  const [declared, shaders] = [files('../src/backend/kernels', '.ts'), files('../shaders', '.wgsl')];
  for (const name of files('./kernels', '.ts')) {
    expect(declared).toContain(name);
    if (PROCESSOR_ALONE.includes(name)) continue;
    expect(
      shaders.some((shader) => shader === name || shader.startsWith(`${name}-`)),
      name,
    ).toBe(true);
  }
});

it('every kernel has a form for the GPU, but for those of the processor alone', () => {
  const without = [...allKernels.values()].filter(({ wgsl }) => wgsl === '');
  expect(without.map(({ id }) => id)).toEqual(PROCESSOR_ALONE);
});

it('every kernel has one form for the processor, but for those of graphics devices alone', () => {
  const devices = [
    'input-gram-tile',
    ...Object.values(storedSums).flatMap((sums) => sums.map(({ id }) => id)),
  ];
  const forms = [...allKernels.values()].map(({ id, wasm, cpu }) => [id, [wasm, cpu].filter(Boolean).length]);
  expect(forms.filter(([, count]) => count !== 1)).toEqual(devices.map((id) => [id, 0]));
});
