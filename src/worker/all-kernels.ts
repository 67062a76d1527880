/** Every kernel by id, and what a thread does with them. */
import { computing } from '../backend/cpu/serve-thread';
import { type HelpCalls, serveHelp } from '../backend/cpu/shared-weights';
import type { Kernel } from '../backend/kernel';
import { type Disk, type OpenWork, serveThread } from '../host/serve-thread';
import type { ThreadCalls, WorkKind } from '../host/threads';
import { openStatistics } from '../merge/prediction/delta-statistics';
import { openMerging } from '../merge/run/serve-thread';
import { combinedValues } from '../merge/tensor/combined-factors';
import { reporting } from '../platform';
import { openComparison } from '../tools/difference/compare-tensors';

const modules = import.meta.glob<Record<string, unknown>>(
  ['../backend/kernels/*.ts', '!../backend/kernels/*.test.*', '../merge/methods/*.kernel.ts'],
  { eager: true },
);

/** The kernels among what modules export; some export them by form and dtype. */
function kernelsIn(value: unknown): Kernel[] {
  if (typeof value !== 'object' || value === null) return [];
  if ('wgsl' in value && 'buffers' in value) return [value as Kernel];
  return Object.values(value).flatMap(kernelsIn);
}

const kernels = Object.values(modules).flatMap(kernelsIn);

export const allKernels: ReadonlyMap<string, Kernel> = new Map(kernels.map((kernel) => [kernel.id, kernel]));

/** The calls of a thread, for its owner. @param disk opens the files of this machine, where there are such */
export function threadCalls(disk?: Disk): ThreadCalls & HelpCalls {
  const kinds: Record<WorkKind, OpenWork> = {
    merge: openMerging,
    statistics: openStatistics,
    compare: openComparison,
    engine: (_, { engine, handOver }) => computing(engine, allKernels, handOver),
  };
  return {
    ...serveThread(kinds, disk, { combined: combinedValues }),
    ...reporting(serveHelp()),
  };
}
