import { AmalgamError } from '../../errors';
import { counted } from '../../formats/quantity';

/** Dispatches between two reads; each has a slot of two words (nonce, elements done). */
export const STAMP_SLOTS = 1024;
export const STAMP_BYTES = 8;

/** Proof of execution: what every dispatch since the last read must have left behind. */
export class Stamps {
  readonly buffer: GPUBuffer;
  private expected: { kernel: string; nonce: number; elements: number }[] = [];
  private nonce = 0x5eed;

  constructor(device: GPUDevice) {
    this.buffer = device.createBuffer({
      label: 'stamps',
      size: STAMP_SLOTS * STAMP_BYTES,
      usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST,
    });
  }

  get issued(): number {
    return this.expected.length;
  }

  /** A slot and a fresh nonce for a dispatch that must report `elements` as done. */
  issue(kernel: string, elements: number): { slot: number; nonce: number } {
    if (this.expected.length === STAMP_SLOTS) {
      throw new AmalgamError(
        'Internal',
        `More than ${STAMP_SLOTS} dispatches without a readback.`,
        'This is a fault in Amalgam; please report it.',
      );
    }
    // never 0: a cleared buffer must not look stamped
    this.nonce = (Math.imul(this.nonce, 1664525) + 1013904223) >>> 0 || 1;
    this.expected.push({ kernel, nonce: this.nonce, elements });
    return { slot: this.expected.length - 1, nonce: this.nonce };
  }

  /** What was issued since the last call, to be held against the words read back. @throws `GpuUnverified` naming the kernel */
  taken(): (words: Uint32Array) => void {
    const expected = this.expected;
    this.expected = [];
    return (words) =>
      expected.forEach(({ kernel, nonce, elements }, slot) => {
        if (words[2 * slot] !== nonce || words[2 * slot + 1] !== elements >>> 0) {
          throw new AmalgamError(
            'GpuUnverified',
            `The kernel ${kernel} did not run as asked: ${words[2 * slot + 1]} of ${counted(elements, 'element')} reported.`,
            'None of it was written. Start again; if it happens again, choose the CPU engine and report the adapter name.',
          );
        }
      });
  }
}
