import type { ComputeEngine, EngineChoice, EngineKind } from '../compute/engine';
import { createCpuEngine } from '../cpu/cpu-engine';
import { adapterFacts, findAdapter } from '../gpu/adapter';
import { createGpuEngine } from '../gpu/gpu-engine';
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
