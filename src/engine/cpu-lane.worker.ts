/** A thread of the CPU engine: runs the kernels it is told to (src/cpu/remote-engine.ts). */
import type { Kernel } from '../compute/kernel';
import type { Batch } from '../cpu/lane-protocol';
import { serveEngine } from '../cpu/serve-engine';
import { methods } from '../merge/methods';

const modules = import.meta.glob<Record<string, unknown>>(
  ['../compute/kernels/*.ts', '!../compute/kernels/*.test.*'],
  { eager: true },
);

/** The kernels among what modules export; some export them by form and dtype. */
function kernelsIn(value: unknown): Kernel[] {
  if (typeof value !== 'object' || value === null) return [];
  if ('wgsl' in value && 'cpu' in value) return [value as Kernel];
  return Object.values(value).flatMap(kernelsIn);
}

const kernels = [
  ...Object.values(modules).flatMap(kernelsIn),
  ...methods.flatMap(({ compute }) => (compute.kind === 'elementwise' ? [compute.kernel as Kernel] : [])),
];

const serve = serveEngine(new Map(kernels.map((kernel) => [kernel.id, kernel])), (answer, transfer) =>
  self.postMessage(answer, { transfer }),
);

self.onmessage = ({ data }: MessageEvent<Batch>) => serve(data);
