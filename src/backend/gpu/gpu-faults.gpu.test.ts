/** WebGPU fails without a word; the engine must not. Each fault is laid on the real device of the test browser. */
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { Backend, BackendBuffer } from '../backend';
import { blockCount, type Kernel } from '../kernel';
import { subtract } from '../kernels/sums';
import { createGpuBackend } from './gpu-backend';

const ELEMENTS = 10_000;

let engine: Backend | undefined;
afterEach(() => {
  vi.restoreAllMocks();
  engine?.close();
  engine = undefined;
});

/** W − W₀ with W = 3 and W₀ = 1 on the device; the answer is 2 everywhere. */
async function difference(
  on: Backend,
  kernel: Kernel<'elements' | 'slot', 'values'> = subtract,
  after: (values: BackendBuffer) => void = () => {},
) {
  const values = on.allocate(ELEMENTS * 8, 'values');
  const data = new Float32Array(2 * ELEMENTS).fill(1, 0, ELEMENTS).fill(3, ELEMENTS);
  on.write(values, 0, new Uint8Array(data.buffer));
  on.run(kernel, {
    params: { elements: ELEMENTS, slot: ELEMENTS },
    buffers: { values },
    groups: blockCount(ELEMENTS),
    elements: ELEMENTS,
  });
  after(values);
  const [bytes] = await on.read([{ buffer: values, byteOffset: ELEMENTS * 4, byteLength: ELEMENTS * 4 }]);
  return new Float32Array(bytes!.buffer);
}

test('without a fault the answer comes', async () => {
  engine = await createGpuBackend();
  expect(new Set(await difference(engine))).toEqual(new Set([2]));
});

test('R43: a shader that does not compile stops with its line and the adapter', async () => {
  engine = await createGpuBackend();
  const broken = { ...subtract, id: 'broken', wgsl: subtract.wgsl.replace('let end', 'let end: = ') };
  await expect(difference(engine, broken)).rejects.toMatchObject({
    code: 'GpuCompile',
    message: expect.stringMatching(new RegExp(`broken.*${engine.adapter}[^]*\\d+:\\d+ [^]*let end: =`)),
  });
});

describe('R44: nothing is believed that did not run', () => {
  test('a dispatch that the driver drops', async () => {
    engine = await createGpuBackend();
    vi.spyOn(GPUComputePassEncoder.prototype, 'dispatchWorkgroups').mockImplementation(() => undefined);
    await expect(difference(engine)).rejects.toMatchObject({
      code: 'GpuUnverified',
      message: expect.stringContaining('subtract'),
    });
  });

  test('a dispatch that covers half the elements', async () => {
    engine = await createGpuBackend();
    const { dispatchWorkgroups } = GPUComputePassEncoder.prototype;
    vi.spyOn(GPUComputePassEncoder.prototype, 'dispatchWorkgroups').mockImplementation(function (
      this: GPUComputePassEncoder,
      width,
    ) {
      dispatchWorkgroups.call(this, Math.ceil(width / 2));
    });
    await expect(difference(engine)).rejects.toMatchObject({ code: 'GpuUnverified' });
  });

  test.each([
    ['neither work nor copy', 1],
    ['its copy alone', 2],
  ])('a readback of what was there before: of the second round %s reaches the queue', async (_, submits) => {
    engine = await createGpuBackend();
    await difference(engine);
    const { submit } = GPUQueue.prototype;
    let count = 0;
    vi.spyOn(GPUQueue.prototype, 'submit').mockImplementation(function (this: GPUQueue, buffers) {
      return submit.call(this, count++ === 0 ? [] : buffers);
    });
    // a write to what the work uses begins it
    const begin = (values: BackendBuffer) => engine!.write(values, 0, new Uint8Array(4));
    const round = difference(engine, subtract, submits === 2 ? begin : undefined);
    await expect(round).rejects.toMatchObject({ code: 'GpuUnverified' });
    expect(count).toBe(submits);
  });

  test('a shader that does not report', async () => {
    engine = await createGpuBackend();
    const silent = {
      ...subtract,
      id: 'silent',
      wgsl: subtract.wgsl.replace('stamp(end - begin);', 'if (params.elements == 0u) { stamp(1u); }'),
    };
    await expect(difference(engine, silent)).rejects.toMatchObject({ code: 'GpuUnverified' });
  });
});

test('R43 R44 R45: a read that failed leaves nothing behind: the next one has its own answer', async () => {
  engine = await createGpuBackend();
  const sound = async () => expect(new Set(await difference(engine!))).toEqual(new Set([2]));
  const { dispatchWorkgroups } = GPUComputePassEncoder.prototype;
  const half = vi.spyOn(GPUComputePassEncoder.prototype, 'dispatchWorkgroups').mockImplementation(function (
    this: GPUComputePassEncoder,
    width,
  ) {
    dispatchWorkgroups.call(this, Math.ceil(width / 2));
  });
  await expect(difference(engine)).rejects.toMatchObject({ code: 'GpuUnverified' });
  half.mockRestore();
  await sound();
  const broken = { ...subtract, id: 'broken', wgsl: subtract.wgsl.replace('let end', 'let end: = ') };
  await expect(difference(engine, broken)).rejects.toMatchObject({ code: 'GpuCompile' });
  await sound();
  const values = engine.allocate(16, 'values');
  await expect(engine.read([{ buffer: values, byteLength: 32 }])).rejects.toMatchObject({
    code: 'GpuValidation',
  });
  await sound();
  const map = vi.spyOn(GPUBuffer.prototype, 'mapAsync').mockRejectedValueOnce(new Error('map failed'));
  await expect(difference(engine)).rejects.toMatchObject({ code: 'GpuLost' });
  map.mockRestore();
  await sound();
});

describe('R45: what the device lacks or never answers', () => {
  test('out of memory is told apart from other refusals', async () => {
    engine = await createGpuBackend();
    const { popErrorScope } = GPUDevice.prototype;
    let scopes = 0;
    vi.spyOn(GPUDevice.prototype, 'popErrorScope').mockImplementation(function (this: GPUDevice) {
      const popped = popErrorScope.call(this);
      return ++scopes === 2 ? Promise.resolve(new GPUOutOfMemoryError('no room')) : popped;
    });
    await expect(difference(engine)).rejects.toMatchObject({ code: 'GpuOutOfMemory' });
  });

  test('a buffer larger than the device allows is refused before it is asked for', async () => {
    engine = await createGpuBackend();
    const most = engine.maxBufferBytes;
    expect(() => engine!.allocate(most + 4, 'too large')).toThrow(/too large needs a buffer/);
  });

  test('a map that never settles is a lost device', async () => {
    engine = await createGpuBackend(200);
    vi.spyOn(GPUBuffer.prototype, 'mapAsync').mockImplementation(() => new Promise(() => {}));
    await expect(difference(engine)).rejects.toMatchObject({ code: 'GpuLost' });
  });

  test('a command the device refuses is an error, never data', async () => {
    engine = await createGpuBackend();
    const values = engine.allocate(16, 'values');
    await expect(engine.read([{ buffer: values, byteLength: 32 }])).rejects.toMatchObject({
      code: 'GpuValidation',
    });
  });
});

test('R41: a device that is lost says so at the next read', async () => {
  const devices: GPUDevice[] = [];
  const { requestDevice } = GPUAdapter.prototype;
  vi.spyOn(GPUAdapter.prototype, 'requestDevice').mockImplementation(async function (
    this: GPUAdapter,
    descriptor,
  ) {
    const device = await requestDevice.call(this, descriptor);
    devices.push(device);
    return device;
  });
  engine = await createGpuBackend();
  devices[0]!.destroy();
  await expect(difference(engine)).rejects.toMatchObject({ code: 'GpuLost' });
});
