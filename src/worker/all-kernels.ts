/** Every kernel by id, for the threads of the CPU engine. */
import type { Kernel } from '../backend/kernel';
import { methods } from '../merge/methods';

const modules = import.meta.glob<Record<string, unknown>>(
  ['../backend/kernels/*.ts', '!../backend/kernels/*.test.*'],
  { eager: true },
);

/** The kernels among what modules export; some export them by form and dtype. */
function kernelsIn(value: unknown): Kernel[] {
  if (typeof value !== 'object' || value === null) return [];
  if ('wgsl' in value && 'buffers' in value) return [value as Kernel];
  return Object.values(value).flatMap(kernelsIn);
}

const kernels = [
  ...Object.values(modules).flatMap(kernelsIn),
  ...methods.flatMap(({ compute }) => (compute.kind === 'elementwise' ? [compute.kernel as Kernel] : [])),
];

export const allKernels: ReadonlyMap<string, Kernel> = new Map(kernels.map((kernel) => [kernel.id, kernel]));
