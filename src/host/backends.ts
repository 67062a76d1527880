import { type Backend, roomForWeights } from '../backend/backend';
import { createCpuBackend, MAX_BUFFER_BYTES } from '../backend/cpu/cpu-backend';
import {
  canShareMemory,
  type HelpCalls,
  openSharedWeights,
  type SharedWeights,
  type StartHelper,
} from '../backend/cpu/shared-weights';
import { type BatchCalls, createThreadBackend } from '../backend/cpu/thread-backend';
import { noWebGpu } from '../backend/gpu/adapter';
import { createGpuBackend } from '../backend/gpu/gpu-backend';
import type { EngineTraits } from '../backend/planned-backend';
import { type BackendChoice, type BackendKind, CPU_ADAPTER } from '../reports/backend';
import { giveBack } from '../sources/spare-arrays';
import { backendInfo } from './backend-info';
import { hasThreads, openThread, openThreads } from './threads';

/**
 * Opens the engine asked for.
 * @param openCpu the one on the processor
 * @throws AmalgamError `NoWebGpu` when `webgpu` is asked for and there is none
 */
export async function openBackend(
  choice: BackendChoice,
  openCpu = () => createCpuBackend(),
): Promise<Backend> {
  const kind: BackendKind = choice === 'auto' ? (await backendInfo()).auto : choice;
  return kind === 'webgpu' ? createGpuBackend() : openCpu();
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

const hasSharedWeights = () => hasThreads() && 'navigator' in globalThis;

/** Memories for the weights of one text's model, which a thread on every other core reaches; undefined where none can be had. */
function sharedWeights(): SharedWeights | undefined {
  if (!hasSharedWeights()) return undefined;
  const helpers = canShareMemory() ? Math.min(MOST_THREADS, navigator.hardwareConcurrency) - 1 : 0;
  const startHelper: StartHelper = (request) => {
    const { ask, terminate } = openThread<HelpCalls>(true);
    // one that stops in the middle of a product is missed there, and otherwise the others do its share
    void ask((calls) => calls.help(request)).catch(() => undefined);
    return terminate;
  };
  return openSharedWeights(helpers, startHelper, { residentBytes: roomForWeights('cpu') });
}

/**
 * The engine that a text would be written on, before anything is opened.
 * @throws AmalgamError `NoWebGpu` when `webgpu` is asked for and there is none
 */
export async function engineTraits(choice: BackendChoice): Promise<EngineTraits> {
  const { auto, webgpu } = await backendInfo();
  const kind = choice === 'auto' ? auto : choice;
  const hasWeights = kind === 'cpu' && hasSharedWeights();
  const residentBytes = roomForWeights(kind);
  if (kind === 'cpu') {
    const own = { kind, adapter: CPU_ADAPTER, software: true, maxBufferBytes: MAX_BUFFER_BYTES };
    return { ...own, hasWeights, ...(hasWeights && { residentBytes }) };
  }
  if (!webgpu.available) throw noWebGpu(webgpu.why ?? '');
  const { adapter, isFallback, maxBufferBytes } = webgpu;
  return { kind, adapter, software: isFallback, maxBufferBytes, hasWeights, residentBytes };
}

/** Multiply-adds of an evaluation from which threads are worth their start. */
const EVALUATION_THREADS_FROM = 2e9;

/**
 * Opens the engines of an evaluation: one on a graphics device, or on the processor one per core. Where there is use for one
 * alone, or little work, it is one in this thread, and the other cores help with products by weights.
 * @param most engines that there is use for
 * @param multiplyAdds of everything that is to be evaluated
 * @throws AmalgamError `NoWebGpu` when `webgpu` is asked for and there is none
 */
export async function openEvaluationBackends(
  choice: BackendChoice,
  most: number,
  multiplyAdds: number,
): Promise<[engine: Backend, ...threads: Backend[]]> {
  const count = multiplyAdds < EVALUATION_THREADS_FROM ? 1 : Math.min(most, navigator.hardwareConcurrency);
  const first = await openBackend(choice, () => createCpuBackend(count < 2 ? sharedWeights() : undefined));
  return first.kind === 'webgpu' || count < 2 ? [first] : openEngines(first.adapter, count);
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
