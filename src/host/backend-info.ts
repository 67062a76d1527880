import { adapterInfo, findAdapter } from '../backend/gpu/adapter';
import { CPU_ADAPTER } from '../reports/backend';
import type { WorkerInfo } from '../reports/worker';

/** WebGPU of this machine, and the engine of `auto`: WebGPU unless there is no adapter or only a software one. */
export async function backendInfo(): Promise<Pick<WorkerInfo, 'auto' | 'webgpu' | 'cpu'>> {
  const found = await findAdapter();
  const cpu = { adapter: CPU_ADAPTER };
  if ('why' in found) {
    return {
      auto: 'cpu',
      webgpu: { available: false, adapter: '', isFallback: false, maxBufferBytes: 0, why: found.why },
      cpu,
    };
  }
  const { name, isFallback, maxBufferBytes } = adapterInfo(found.adapter);
  return {
    auto: isFallback ? 'cpu' : 'webgpu',
    webgpu: { available: true, adapter: name, isFallback, maxBufferBytes },
    cpu,
  };
}
