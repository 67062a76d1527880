import type { Backend } from '../backend/backend';
import { CPU_ADAPTER, createCpuBackend } from '../backend/cpu/cpu-backend';
import { createThreadBackend } from '../backend/cpu/thread-backend';
import { adapterFacts, findAdapter } from '../backend/gpu/adapter';
import { createGpuBackend } from '../backend/gpu/gpu-backend';
import type { BackendChoice, BackendKind } from '../reports/backend';
import { giveBack } from '../sources/spare-arrays';
import type { WorkerFacts } from '../worker/api';
import { startThread } from './start-thread';

/** What WebGPU is here, and the engine `auto` takes: WebGPU unless there is no adapter or only a software one. */
export async function backendFacts(): Promise<Pick<WorkerFacts, 'auto' | 'webgpu' | 'cpu'>> {
  const found = await findAdapter();
  const cpu = { adapter: CPU_ADAPTER };
  if ('why' in found) {
    return {
      auto: 'cpu',
      webgpu: { available: false, adapter: '', isFallback: false, maxBufferBytes: 0, why: found.why },
      cpu,
    };
  }
  const { name, isFallback, maxBufferBytes } = adapterFacts(found.adapter);
  return {
    auto: isFallback ? 'cpu' : 'webgpu',
    webgpu: { available: true, adapter: name, isFallback, maxBufferBytes },
    cpu,
  };
}

/** Opens the engine asked for. @throws AmalgamError `NoWebGpu` when `webgpu` is asked for and there is none */
export async function openBackend(choice: BackendChoice): Promise<Backend> {
  const kind: BackendKind = choice === 'auto' ? (await backendFacts()).auto : choice;
  return kind === 'webgpu' ? createGpuBackend() : createCpuBackend();
}

/** Tensors under way at once on the processor: some wait for their turn to be written while others are computed. */
const WAITING_LANES = 1;
const MOST_LANES = 8;
/** Output elements from which threads are worth their start. */
const LANES_FROM = 2 ** 23;
/** Bytes that all lanes together may take: for tiles, and for stored bytes that stay between the sweeps over a tensor. */
const LANES_BYTES = { tiles: 96 * 2 ** 20, kept: 192 * 2 ** 20 };

/**
 * Opens the engines of a merge: one on a graphics device, or on the processor one per core and one more, each in a
 * worker of its own, so that this thread reads and writes meanwhile; a small merge stays in this thread.
 * @param elements of the output
 * @param most lanes that may be opened
 * @throws AmalgamError `NoWebGpu` when `webgpu` is asked for and there is none
 */
export async function openMergeBackends(
  choice: BackendChoice,
  elements: number,
  most = MOST_LANES,
): Promise<[engine: Backend, ...lanes: Backend[]]> {
  const kind: BackendKind = choice === 'auto' ? (await backendFacts()).auto : choice;
  if (kind === 'webgpu') return [await createGpuBackend()];
  const own = createCpuBackend();
  if (elements < LANES_FROM || most === 1) return [own];
  return openLanes(own.adapter, Math.min(most, navigator.hardwareConcurrency + WAITING_LANES));
}

/** Multiply-adds of an evaluation from which threads are worth their start. */
const EVALUATION_LANES_FROM = 2e9;

/**
 * Opens the engines of an evaluation: one on a graphics device, or on the processor one per core, none without a model
 * of its own; little work stays in this thread.
 * @param models that go side by side
 * @param multiplyAdds of all of them together
 * @throws AmalgamError `NoWebGpu` when `webgpu` is asked for and there is none
 */
export async function openEvaluationBackends(
  choice: BackendChoice,
  models: number,
  multiplyAdds: number,
): Promise<[engine: Backend, ...lanes: Backend[]]> {
  const first = await openBackend(choice);
  if (first.kind === 'webgpu' || models < 2 || multiplyAdds < EVALUATION_LANES_FROM) return [first];
  const count = Math.min(models, navigator.hardwareConcurrency);
  return count < 2 ? [first] : openLanes(first.adapter, count);
}

function openLanes(adapter: string, wanted: number): [Backend, ...Backend[]] {
  const count = Math.min(wanted, MOST_LANES);
  const share = { tileBytes: LANES_BYTES.tiles / count, keptBytes: LANES_BYTES.kept / count };
  const open = () => createThreadBackend(startThread(), adapter, share, giveBack);
  return [open(), ...Array.from({ length: count - 1 }, open)];
}
