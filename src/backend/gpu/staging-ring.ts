/**
 * Uploads through mapped staging buffers that are used again. Whether this or `writeBuffer` is the faster way differs
 * from device to device and cannot be known beforehand: on a software adapter the ring took a fifth of the time for 12 MiB
 * and twice the time for 256 KiB (docs/benchmarks.md). So it is measured once, where there is much to upload.
 */

/** Bytes of one staging buffer, and how many there are at most. */
const SLOT_BYTES = 4 * 2 ** 20;
const SLOTS = 12;
/** Rounds of the measurement, the least of each way counts; and pieces of a round. */
const ROUNDS = 3;
const PIECES = 4;

export interface StagingRing {
  /**
   * Encodes the upload of the first bytes of `data`, a multiple of 4, to `target` from `byteOffset` on.
   * @returns how many: less than all when they take more than one staging buffer, 0 when none is free
   */
  push(commands: GPUCommandEncoder, target: GPUBuffer, byteOffset: number, data: Uint8Array): number;
  /** All that was encoded has been submitted. */
  submitted(): void;
  close(): void;
}

export function openStagingRing(device: GPUDevice): StagingRing {
  const all: GPUBuffer[] = [];
  /** Mapped, and to be mapped again after the next submission. */
  const free: GPUBuffer[] = [];
  let used: GPUBuffer[] = [];

  const take = (): GPUBuffer | undefined => {
    const slot = free.pop();
    if (slot || all.length === SLOTS) return slot;
    const made = device.createBuffer({
      label: 'staging ring',
      size: SLOT_BYTES,
      usage: GPUBufferUsage.MAP_WRITE | GPUBufferUsage.COPY_SRC,
      mappedAtCreation: true,
    });
    all.push(made);
    return made;
  };

  return {
    push(commands, target, byteOffset, data) {
      const slot = take();
      if (!slot) return 0;
      const bytes = Math.min(data.byteLength, SLOT_BYTES);
      new Uint8Array(slot.getMappedRange(0, bytes)).set(data.subarray(0, bytes));
      slot.unmap();
      commands.copyBufferToBuffer(slot, 0, target, byteOffset, bytes);
      used.push(slot);
      return bytes;
    },
    submitted() {
      for (const slot of used) {
        slot.mapAsync(GPUMapMode.WRITE).then(
          () => free.push(slot),
          // the device is lost or closed: the next read throws
          () => undefined,
        );
      }
      used = [];
    },
    close() {
      for (const slot of all) slot.destroy();
    },
  };
}

/**
 * Uploads the same bytes both ways, in turns.
 * @returns a ring where it is the faster way; it is the caller's to close
 */
export async function measuredRing(device: GPUDevice): Promise<StagingRing | undefined> {
  const ring = openStagingRing(device);
  const target = device.createBuffer({
    label: 'upload probe',
    size: SLOT_BYTES,
    usage: GPUBufferUsage.COPY_DST,
  });
  const data = new Uint8Array(SLOT_BYTES);
  const ways = {
    written: () => device.queue.writeBuffer(target, 0, data),
    ring: () => {
      const commands = device.createCommandEncoder();
      ring.push(commands, target, 0, data);
      device.queue.submit([commands.finish()]);
      ring.submitted();
    },
  };
  const least = { written: Number.POSITIVE_INFINITY, ring: Number.POSITIVE_INFINITY };
  try {
    // the first round makes the buffers
    for (let round = 0; round <= ROUNDS; round++) {
      for (const way of ['written', 'ring'] as const) {
        const begin = performance.now();
        for (let piece = 0; piece < PIECES; piece++) ways[way]();
        await device.queue.onSubmittedWorkDone();
        if (round > 0) least[way] = Math.min(least[way], performance.now() - begin);
      }
    }
  } finally {
    target.destroy();
  }
  if (least.ring < least.written) return ring;
  ring.close();
  return undefined;
}
