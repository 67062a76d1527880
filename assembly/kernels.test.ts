import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { allKernels } from '../src/worker/all-kernels';
import { compileKernels } from './vite-plugin';

it('exports.d.ts is what the compiler says the module exports', async () => {
  await expect((await compileKernels()).types).toMatchFileSnapshot('exports.d.ts');
});

/** Kernels without a GPU form: several steps in one, or their output goes to a file. */
const PROCESSOR_ALONE = [
  'merge-changes',
  'encode-blocks',
  'matmul-packed-f32',
  'matmul-packed-f16',
  'matmul-packed-bf16',
  'matmul-packed-q8',
  'pack-panels',
  'measure-changes',
  'sample-changes',
  'pick-changes',
  'draw-mask',
  'draw-ranks',
  'difference-stored',
];

it('a theme has one name in assembly/kernels, src/backend/kernels and shaders', () => {
  const entries = (folder: string) => readdirSync(new URL(folder, import.meta.url), { withFileTypes: true });
  const namesIn = (folder: string) =>
    entries(folder).flatMap((entry) => (/^[\w-]+\.ts$/.test(entry.name) ? [entry.name.slice(0, -3)] : []));
  const declared = namesIn('../src/backend/kernels').sort();
  const folders = entries('../shaders').flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
  expect(folders.filter((name) => name !== 'lib').sort()).toEqual(declared);
  expect(namesIn('./kernels').filter((name) => !declared.includes(name))).toEqual([]);
});

it('every kernel has a form for the GPU, but for those of the processor alone', () => {
  const without = [...allKernels.values()].filter(({ wgsl }) => wgsl === '');
  expect(without.map(({ id }) => id)).toEqual(PROCESSOR_ALONE);
});

it('every kernel has one form for the processor, but for those of graphics devices, and of weights that threads share', () => {
  const eightBits = ['block', 'line', 'packed', 'tile', 'vector'].map((form) => `matmul-${form}-q8`);
  const others = ['encode-weights', 'input-gram-tile', ...eightBits];
  const forms = [...allKernels.values()].map(({ id, wasm, cpu }) => [id, [wasm, cpu].filter(Boolean).length]);
  expect(new Map(forms.filter(([, count]) => count !== 1) as [string, number][])).toEqual(
    new Map(others.map((id) => [id, 0])),
  );
});
