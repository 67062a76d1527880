import { expect, test } from 'vitest';
import { wgslOf } from '../backend/gpu/wgsl';
import { allKernels } from './all-kernels';

test('what a kernel’s WGSL reads of its parameters is declared', () => {
  const unknown = [...allKernels.values()].flatMap((kernel) => {
    const { id } = kernel;
    const wgsl = wgslOf(kernel);
    const declared = /struct Params \{([^}]*)\}/.exec(wgsl)?.[1] ?? '';
    const names = new Set([...declared.matchAll(/(\w+):/g)].map(([, name]) => name));
    return [...wgsl.matchAll(/\bparams\.(\w+)/g)].flatMap(([, name]) =>
      names.has(name) ? [] : [`${id}: ${name}`],
    );
  });
  expect(allKernels.size).toBeGreaterThan(80);
  expect(unknown).toEqual([]);
});
