import { AmalgamError } from '../../errors';

/** What the badge and bug reports say about the graphics adapter. */
interface AdapterInfo {
  name: string;
  /** A software rasteriser: correct, but slower than the typed-array engine on most machines. */
  isFallback: boolean;
  maxBufferBytes: number;
}

/** More than this in one buffer gains nothing: tiles are far smaller. */
const WANTED_BUFFER_BYTES = 1 << 30;

/** The adapter that WebGPU offers, or a reason in words why there is none. */
export async function findAdapter(): Promise<{ adapter: GPUAdapter } | { why: string }> {
  if (navigator.gpu === undefined) return { why: 'This browser has no WebGPU.' };
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: 'high-performance' });
  return adapter ? { adapter } : { why: 'WebGPU finds no graphics adapter.' };
}

export function adapterInfo(adapter: GPUAdapter): AdapterInfo {
  const { vendor, architecture, description } = adapter.info;
  const name = description || [vendor, architecture].filter(Boolean).join(' ') || 'unnamed adapter';
  return {
    name,
    // isFallbackAdapter is young; SwiftShader names itself
    isFallback:
      adapter.info.isFallbackAdapter || /swiftshader|llvmpipe|basic render/i.test(`${name} ${architecture}`),
    maxBufferBytes: bufferLimit(adapter),
  };
}

function bufferLimit(adapter: GPUAdapter): number {
  return Math.min(
    adapter.limits.maxBufferSize,
    adapter.limits.maxStorageBufferBindingSize,
    WANTED_BUFFER_BYTES,
  );
}

/**
 * A device with the buffer limits the adapter allows (at most 1 GiB) and no optional feature.
 * @throws AmalgamError `NoWebGpu`
 */
export async function requestDevice(): Promise<{ device: GPUDevice; info: AdapterInfo }> {
  const found = await findAdapter();
  if ('why' in found) {
    throw new AmalgamError(
      'NoWebGpu',
      found.why,
      'Choose the CPU engine, a browser with WebGPU enabled, or install a graphics driver.',
    );
  }
  const info = adapterInfo(found.adapter);
  const device = await found.adapter.requestDevice({
    requiredLimits: {
      maxBufferSize: info.maxBufferBytes,
      maxStorageBufferBindingSize: info.maxBufferBytes,
    },
  });
  return { device, info: info };
}
