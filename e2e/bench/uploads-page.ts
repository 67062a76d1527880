/** Uploads measured in a page of the server (uploads.ts). */

const ROUNDS = 60;
/** Tensors of a tile. */
const TENSORS = 3;

/**
 * Brings the stored bytes of tiles of three tensors to the device, waiting after each, as a merge does.
 * @param mebibytes of one tensor
 * @returns seconds of every round, both ways in turns
 */
export async function measure(mebibytes: number): Promise<{ written: number[]; ring: number[] }> {
  const adapter = await navigator.gpu.requestAdapter();
  if (!adapter) throw new Error('there is no WebGPU adapter');
  const device = await adapter.requestDevice();
  const size = mebibytes * 2 ** 20;
  const { STORAGE, COPY_DST, COPY_SRC, MAP_READ, MAP_WRITE } = GPUBufferUsage;
  const raw = device.createBuffer({ size: TENSORS * size, usage: STORAGE | COPY_DST | COPY_SRC });
  const back = device.createBuffer({ size: TENSORS * 4, usage: MAP_READ | COPY_DST });
  const staging = Array.from({ length: TENSORS + 1 }, () =>
    device.createBuffer({ size, usage: MAP_WRITE | COPY_SRC }),
  );
  const ways = {
    written: (data: Uint8Array<ArrayBuffer>, tensor: number) => {
      device.queue.writeBuffer(raw, tensor * size, data);
    },
    ring: async (data: Uint8Array<ArrayBuffer>, tensor: number) => {
      const buffer = staging.shift()!;
      await buffer.mapAsync(GPUMapMode.WRITE);
      new Uint8Array(buffer.getMappedRange()).set(data);
      buffer.unmap();
      const encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(buffer, 0, raw, tensor * size, size);
      device.queue.submit([encoder.finish()]);
      staging.push(buffer);
    },
  };
  const seconds: { written: number[]; ring: number[] } = { written: [], ring: [] };
  const data = new Uint8Array(size);
  const words = new Uint32Array(data.buffer);
  for (let round = 0; round < ROUNDS; round++) {
    for (const way of ['written', 'ring'] as const) {
      const begin = performance.now();
      for (let tensor = 0; tensor < TENSORS; tensor++) {
        words[words.length - 1] = 1000 * round + 10 * tensor + way.length;
        await ways[way](data, tensor);
      }
      const encoder = device.createCommandEncoder();
      for (let t = 0; t < TENSORS; t++) encoder.copyBufferToBuffer(raw, (t + 1) * size - 4, back, 4 * t, 4);
      device.queue.submit([encoder.finish()]);
      await back.mapAsync(GPUMapMode.READ);
      seconds[way].push((performance.now() - begin) / 1000);
      const last = new Uint32Array(back.getMappedRange()).slice();
      back.unmap();
      if (last.some((word, t) => word !== 1000 * round + 10 * t + way.length))
        throw new Error(`${way}: other bytes`);
    }
  }
  device.destroy();
  return seconds;
}
