import type { Backend } from '../backend/backend';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { type BatchCalls, createThreadBackend } from '../backend/cpu/thread-backend';
import { createGpuBackend } from '../backend/gpu/gpu-backend';
import { type BackendChoice, type BackendKind, CPU_ADAPTER } from '../reports/backend';
import { giveBack } from '../sources/spare-arrays';
import { backendInfo } from './backend-info';
import { hasThreads, openThreads } from './threads';

/** Opens the engine asked for. @throws AmalgamError `NoWebGpu` when `webgpu` is asked for and there is none */
export async function openBackend(choice: BackendChoice): Promise<Backend> {
  const kind: BackendKind = choice === 'auto' ? (await backendInfo()).auto : choice;
  return kind === 'webgpu' ? createGpuBackend() : createCpuBackend();
}

const MOST_THREADS = 8;
const MOST_THREADS_OF_A_PASS = 16;
/** Output elements from which threads are worth their start. */
const THREADS_FROM = 2 ** 23;
/** Bytes that all threads together may take: for tiles, and for stored bytes that stay between the passes over a tensor. */
const THREADS_BYTES = { tiles: 96 * 2 ** 20, kept: 192 * 2 ** 20 };

/** Threads of a pass over so many elements: one per core on the processor; none for few, or on a graphics device. */
export function threadCount(kind: BackendKind, elements: number): number {
  if (kind === 'webgpu' || elements < THREADS_FROM || !hasThreads()) return 0;
  return Math.min(MOST_THREADS_OF_A_PASS, navigator.hardwareConcurrency);
}

/** Multiply-adds of an evaluation from which threads are worth their start. */
const EVALUATION_THREADS_FROM = 2e9;

/**
 * Opens the engines of an evaluation: one on a graphics device, or on the processor one per core; little work stays in
 * this thread.
 * @param most engines that there is use for
 * @param multiplyAdds of everything that is to be evaluated
 * @throws AmalgamError `NoWebGpu` when `webgpu` is asked for and there is none
 */
export async function openEvaluationBackends(
  choice: BackendChoice,
  most: number,
  multiplyAdds: number,
): Promise<[engine: Backend, ...threads: Backend[]]> {
  const first = await openBackend(choice);
  if (first.kind === 'webgpu' || multiplyAdds < EVALUATION_THREADS_FROM) return [first];
  const count = Math.min(most, navigator.hardwareConcurrency);
  return count < 2 ? [first] : openEngines(first.adapter, count);
}

/**
 * Opens the engines that encode the output a second time: on the processor whatever merges, one per core in threads of
 * their own; a small output is encoded in this thread.
 */
export function openEncodingBackends(elements: number): [engine: Backend, ...threads: Backend[]] {
  if (elements < THREADS_FROM) return [createCpuBackend()];
  return openEngines(CPU_ADAPTER, navigator.hardwareConcurrency);
}

function openEngines(adapter: string, wanted: number): [Backend, ...Backend[]] {
  const count = Math.min(wanted, MOST_THREADS);
  const share = { tileBytes: THREADS_BYTES.tiles / count, keptBytes: THREADS_BYTES.kept / count };
  const open = () => {
    const opening = openThreads<BatchCalls>({ kind: 'engine', count: 1, work: {}, files: [] });
    opening.catch(() => {}); // reported to who computes
    return createThreadBackend(
      {
        compute: async (batch, moved) => (await opening)[0]!.ask('compute', [batch], moved),
        terminate: () =>
          void opening.then(
            ([thread]) => thread!.terminate(),
            () => {},
          ),
      },
      adapter,
      share,
      giveBack,
    );
  };
  return [open(), ...Array.from({ length: count - 1 }, open)];
}
