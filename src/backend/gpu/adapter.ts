import { AmalgamError } from '../../errors';
import { withinDeadline } from '../../platform';

/** Description of the graphics adapter, for the badge and bug reports. */
interface AdapterInfo {
  name: string;
  /** A software rasteriser: correct, but slower than the typed-array engine on most machines. */
  isFallback: boolean;
  maxBufferBytes: number;
}

/** More than this in one buffer gains nothing: tiles are far smaller. */
const WANTED_BUFFER_BYTES = 1 << 30;

const OPTIONAL: GPUFeatureName[] = ['subgroups'];

/** A browser that has not answered by then does not answer. */
const DEADLINE_MS = 5000;

/** Set once the browser did not answer: every job would wait for it again. */
let unanswered: { why: string } | undefined;

/** The adapter the browser offers, or a reason in words why there is none. Never rejects. */
export async function findAdapter(): Promise<{ adapter: GPUAdapter } | { why: string }> {
  if (navigator.gpu === undefined) return { why: 'This browser has no WebGPU.' };
  if (unanswered) return unanswered;
  try {
    const asked = navigator.gpu.requestAdapter({ powerPreference: 'high-performance' });
    const answer = await withinDeadline(asked, DEADLINE_MS);
    if (answer?.value) return { adapter: answer.value };
    if (answer) return { why: 'WebGPU finds no graphics adapter.' };
    unanswered = {
      why: 'This browser has WebGPU but does not answer when it is asked for a graphics adapter.',
    };
    return unanswered;
  } catch (thrown) {
    // Firefox where the driver is on its blocklist
    return { why: `This browser refuses WebGPU (${reasonOf(thrown)}).` };
  }
}

function reasonOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message || thrown.name : String(thrown);
}

export function adapterInfo(adapter: GPUAdapter): AdapterInfo {
  // absent in browsers of 2024
  const { vendor, architecture, description, isFallbackAdapter } = adapter.info ?? {};
  const name = description || [vendor, architecture].filter(Boolean).join(' ') || 'unnamed adapter';
  return {
    name,
    // isFallbackAdapter is young; SwiftShader names itself
    isFallback:
      isFallbackAdapter === true || /swiftshader|llvmpipe|basic render/i.test(`${name} ${architecture}`),
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
 * A device with the buffer limits the adapter allows (at most 1 GiB), and of the optional features those that kernels use where
 * they are there.
 * @throws AmalgamError `NoWebGpu`, also where the browser refuses the device or does not answer
 */
export async function requestDevice(): Promise<{ device: GPUDevice; info: AdapterInfo }> {
  const found = await findAdapter();
  if ('why' in found) throw noWebGpu(found.why);
  const info = adapterInfo(found.adapter);
  const asked = found.adapter.requestDevice({
    requiredFeatures: OPTIONAL.filter((feature) => found.adapter.features.has(feature)),
    requiredLimits: {
      maxBufferSize: info.maxBufferBytes,
      maxStorageBufferBindingSize: info.maxBufferBytes,
    },
  });
  const answer = await withinDeadline(asked, DEADLINE_MS, (device) => device.destroy()).catch((cause) => {
    throw noWebGpu(`${info.name} gives this browser no device (${reasonOf(cause)}).`, cause);
  });
  if (!answer) throw noWebGpu(`${info.name} does not answer when it is asked for a device.`);
  return { device: answer.value, info };
}

export function noWebGpu(why: string, cause?: unknown): AmalgamError {
  const hint =
    'Choose the CPU engine (--engine cpu in a terminal), a browser with WebGPU enabled, or install a graphics driver.';
  return new AmalgamError('NoWebGpu', why, hint, { cause });
}
