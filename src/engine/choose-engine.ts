import type { ComputeEngine, EngineChoice, EngineKind } from '../compute/engine';
import { createCpuEngine } from '../cpu/cpu-engine';
import { createRemoteEngine, type LanePort } from '../cpu/remote-engine';
import { adapterFacts, findAdapter } from '../gpu/adapter';
import { createGpuEngine } from '../gpu/gpu-engine';
import { giveBack } from '../sources/spare-arrays';
import { trustedWorkerUrl } from '../trusted-worker-url';
import laneUrl from './cpu-lane.worker.ts?worker&url';
import type { EngineFacts } from './protocol';

/** What WebGPU is here, and the engine `auto` takes: WebGPU unless there is no adapter or only a software one. */
export async function engineFacts(): Promise<Pick<EngineFacts, 'auto' | 'webgpu' | 'cpu'>> {
  const found = await findAdapter();
  const cpu = { adapter: createCpuEngine().adapter };
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
export async function openEngine(choice: EngineChoice): Promise<ComputeEngine> {
  const kind: EngineKind = choice === 'auto' ? (await engineFacts()).auto : choice;
  return kind === 'webgpu' ? createGpuEngine() : createCpuEngine();
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
export async function openMergeEngines(
  choice: EngineChoice,
  elements: number,
  most = MOST_LANES,
): Promise<[engine: ComputeEngine, ...lanes: ComputeEngine[]]> {
  const kind: EngineKind = choice === 'auto' ? (await engineFacts()).auto : choice;
  if (kind === 'webgpu') return [await createGpuEngine()];
  const own = createCpuEngine();
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
export async function openEvaluationEngines(
  choice: EngineChoice,
  models: number,
  multiplyAdds: number,
): Promise<[engine: ComputeEngine, ...lanes: ComputeEngine[]]> {
  const first = await openEngine(choice);
  if (first.kind === 'webgpu' || models < 2 || multiplyAdds < EVALUATION_LANES_FROM) return [first];
  const count = Math.min(models, navigator.hardwareConcurrency);
  return count < 2 ? [first] : openLanes(first.adapter, count);
}

function openLanes(adapter: string, wanted: number): [ComputeEngine, ...ComputeEngine[]] {
  const count = Math.min(wanted, MOST_LANES);
  const share = { tileBytes: LANES_BYTES.tiles / count, keptBytes: LANES_BYTES.kept / count };
  const open = () => createRemoteEngine(startLane(), adapter, share, giveBack);
  return [open(), ...Array.from({ length: count - 1 }, open)];
}

function startLane(): LanePort {
  return new Worker(trustedWorkerUrl(laneUrl), { type: 'module', name: 'amalgam-cpu-lane' });
}
