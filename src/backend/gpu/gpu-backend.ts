import { AmalgamError } from '../../errors';
import { counted } from '../../formats/quantity';
import type { Backend, BackendBuffer, BackendSeconds, BufferRange, Dispatch } from '../backend';
import { type Kernel, workOf } from '../kernel';
import { requestDevice } from './adapter';
import { Pipelines } from './pipelines';
import { measuredRing, openStagingRing, type StagingRing } from './staging-ring';

/** Dispatches between two reads; each has a slot of two words (nonce, elements done). */
const STAMP_SLOTS = 1024;

/** Proof of execution: what every dispatch since the last read must have left behind. */
class Stamps {
  readonly buffer: GPUBuffer;
  readonly byteLength = STAMP_SLOTS * 8;
  private expected: { kernel: string; nonce: number; elements: number }[] = [];
  private nonce = 0x5eed;

  constructor(device: GPUDevice) {
    this.buffer = device.createBuffer({
      label: 'stamps',
      size: this.byteLength,
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

const FILTERS = ['validation', 'out-of-memory', 'internal'] as const;

/** The three error scopes around everything between two reads. */
class ErrorScopes {
  private isOpen = false;

  constructor(
    private readonly device: GPUDevice,
    private readonly adapter: string,
  ) {}

  open(): void {
    if (this.isOpen) return;
    for (const filter of FILTERS) this.device.pushErrorScope(filter);
    this.isOpen = true;
  }

  /** Ends the scopes; resolves with the first error they caught, as ours. */
  async close(): Promise<AmalgamError | null> {
    if (!this.isOpen) return null;
    this.isOpen = false;
    const popped = await Promise.all([...FILTERS].reverse().map(() => this.device.popErrorScope()));
    const error = popped.find((e) => e !== null);
    if (!error) return null;
    return error instanceof GPUOutOfMemoryError
      ? new AmalgamError(
          'GpuOutOfMemory',
          `The graphics device (${this.adapter}) is out of memory: ${error.message}`,
          'Close other tabs that use the GPU, choose a smaller tile, or the CPU engine.',
        )
      : new AmalgamError(
          'GpuValidation',
          `The graphics device (${this.adapter}) refused a command: ${error.message}`,
          'Nothing was written. Please report this with the adapter name, or choose the CPU engine.',
        );
  }
}

interface GpuBuffer extends BackendBuffer {
  id: number;
  handle: GPUBuffer;
}

/** Uniform offsets are multiples of 256 (the default minUniformBufferOffsetAlignment). */
const PARAMS_BYTES = 256;
/** Workgroups per row of the dispatch grid; a row never exceeds the default limit of 65 535. */
const GRID_WIDTH = 32768;
/** A map that stays silent this long means a lost device (some drivers never settle it). */
const MAP_TIMEOUT_MS = 30_000;
/** Bytes uploaded before it is worth measuring how they go faster. */
const MEASURE_UPLOADS_FROM = 64 * 2 ** 20;
/** Shorter uploads go by `writeBuffer` always. */
const RING_FROM = 2 ** 20;

/**
 * The WebGPU engine.
 * @param mapTimeoutMs tests vary it
 * @param uploads long ones: by the way that is measured to be faster here, or always through the ring (tests)
 * @throws AmalgamError `NoWebGpu` when there is no adapter.
 */
export async function createGpuBackend(
  mapTimeoutMs = MAP_TIMEOUT_MS,
  uploads: 'measured' | 'ring' = 'measured',
): Promise<Backend> {
  const { device, info } = await requestDevice();
  const ring = uploads === 'ring' ? openStagingRing(device) : undefined;
  return new GpuEngine(device, info.name, info.maxBufferBytes, info.isFallback, mapTimeoutMs, ring);
}

/**
 * Commands are collected into one encoder and submitted on `write` and `read`. Each dispatch has a stamp slot and a
 * nonce; `read` returns bytes only when every dispatch since the last read left its nonce and its element count and no
 * error scope caught anything. WebGPU otherwise fails silently, with zeros or old contents.
 */
class GpuEngine implements Backend {
  readonly kind = 'webgpu';
  readonly seconds: BackendSeconds = { upload: 0, compute: 0, readback: 0 };
  private readonly pipelines: Pipelines;
  private readonly stamps: Stamps;
  private readonly scopes: ErrorScopes;
  private readonly paramsBuffer: GPUBuffer;
  private readonly params = new Uint32Array((STAMP_SLOTS * PARAMS_BYTES) / 4);
  private readonly paramFloats = new Float32Array(this.params.buffer);
  private readonly bindGroups = new Map<string, GPUBindGroup>();
  private readonly staging: GPUBuffer[] = [];
  private encoder: GPUCommandEncoder | undefined;
  private nextId = 1;
  private lost: string | undefined;
  private reading = false;
  /** Bytes uploaded while it is not known how they go faster. */
  private uploaded = 0;

  constructor(
    private readonly device: GPUDevice,
    readonly adapter: string,
    readonly maxBufferBytes: number,
    readonly software: boolean,
    private readonly mapTimeoutMs: number,
    private ring: StagingRing | undefined,
  ) {
    if (ring) this.uploaded = Number.POSITIVE_INFINITY;
    this.pipelines = new Pipelines(device, adapter);
    this.stamps = new Stamps(device);
    this.scopes = new ErrorScopes(device, adapter);
    this.paramsBuffer = device.createBuffer({
      label: 'params',
      size: this.params.byteLength,
      usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST,
    });
    void device.lost.then((info) => {
      this.lost = info.message || info.reason;
    });
  }

  allocate(byteLength: number, label: string): GpuBuffer {
    const size = Math.max(4, Math.ceil(byteLength / 4) * 4);
    if (size > this.maxBufferBytes) {
      throw new AmalgamError(
        'GpuOutOfMemory',
        `${label} needs a buffer of ${counted(size, 'byte')}; ${this.adapter} allows ${this.maxBufferBytes}.`,
        'Choose a smaller tile or the CPU engine.',
      );
    }
    this.scopes.open();
    const handle = this.device.createBuffer({
      label,
      size,
      usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST,
    });
    return { id: this.nextId++, label, byteLength: size, handle };
  }

  free(buffer: BackendBuffer): void {
    const { id, handle } = buffer as GpuBuffer;
    // commands that still use it must be in the queue before it goes
    this.submit();
    for (const key of this.bindGroups.keys())
      if (key.split(' ').includes(String(id))) this.bindGroups.delete(key);
    handle.destroy();
  }

  write(buffer: BackendBuffer, byteOffset: number, data: Uint8Array<ArrayBuffer>): void {
    const { handle } = buffer as GpuBuffer;
    this.scopes.open();
    const begin = performance.now();
    let done = 0;
    while (this.ring && data.byteLength >= RING_FROM && done < data.byteLength) {
      const pushed = this.ring.push(this.commands(), handle, byteOffset + done, data.subarray(done));
      if (pushed === 0) break;
      done += pushed;
    }
    if (done < data.byteLength) {
      this.submit(); // queue order: what was encoded before must not see these bytes
      this.device.queue.writeBuffer(handle, byteOffset + done, data, done);
    }
    this.uploaded += data.byteLength;
    this.seconds.upload += (performance.now() - begin) / 1000;
  }

  clear(buffer: BackendBuffer, byteOffset = 0, byteLength = buffer.byteLength - byteOffset): void {
    if (byteLength > 0) this.commands().clearBuffer((buffer as GpuBuffer).handle, byteOffset, byteLength);
  }

  run<P extends string, B extends string>(kernel: Kernel<P, B>, dispatch: Dispatch<P, B>): void {
    const { groups, elements } = workOf(kernel, dispatch);
    if (groups === 0) return;
    if (this.reading) throw new Error('a dispatch while a read is pending would escape its proof');
    const { slot, nonce } = this.stamps.issue(kernel.id, elements);
    const width = Math.min(groups, GRID_WIDTH);
    this.packParams(kernel, dispatch.params, slot, nonce, width);
    const { pipeline, layout } = this.pipelines.get(kernel);
    const pass = this.commands().beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, this.bindGroup(kernel, layout, dispatch.buffers), [slot * PARAMS_BYTES]);
    pass.dispatchWorkgroups(width, Math.ceil(groups / width));
    pass.end();
  }

  async read(ranges: readonly BufferRange[]): Promise<Uint8Array<ArrayBuffer>[]> {
    const sizes = ranges.map((r) => r.byteLength);
    const total = sizes.reduce((a, b) => a + b, 0) + this.stamps.byteLength;
    const staging = this.takeStaging(total);
    const encoder = this.commands();
    let offset = 0;
    for (const { buffer, byteOffset = 0, byteLength } of ranges) {
      if (byteLength > 0) {
        encoder.copyBufferToBuffer((buffer as GpuBuffer).handle, byteOffset, staging, offset, byteLength);
      }
      offset += byteLength;
    }
    encoder.copyBufferToBuffer(this.stamps.buffer, 0, staging, offset, this.stamps.byteLength);
    this.submit();
    const verify = this.stamps.taken();
    const problems = [...this.pipelines.takeProblems(), this.scopes.close()];
    const submitted = performance.now();
    let mappedAt = submitted;
    let mapped: ArrayBuffer;
    this.reading = true;
    try {
      await this.map(staging, total, problems);
      mappedAt = performance.now();
      mapped = staging.getMappedRange(0, total);
      verify(new Uint32Array(mapped, offset, this.stamps.byteLength / 4));
    } catch (thrown) {
      staging.destroy();
      throw thrown;
    } finally {
      this.reading = false;
      // also after a failure: kernels add to their stamps, and the next read is not to fail for the reason of this one
      this.commands().clearBuffer(this.stamps.buffer);
    }
    this.seconds.compute += (mappedAt - submitted) / 1000;
    let at = 0;
    const copies = ranges.map(({ byteLength: size, into }) => {
      const copy = new Uint8Array(into ?? new ArrayBuffer(size), 0, size);
      copy.set(new Uint8Array(mapped, at, size));
      at += size;
      return copy;
    });
    staging.unmap();
    this.seconds.readback += (performance.now() - mappedAt) / 1000;
    this.staging.push(staging);
    if (this.uploaded >= MEASURE_UPLOADS_FROM && this.uploaded < Number.POSITIVE_INFINITY) {
      this.uploaded = Number.POSITIVE_INFINITY;
      this.ring = await measuredRing(this.device);
    }
    return copies;
  }

  close(): void {
    this.device.destroy();
  }

  /** Waits for the map and for every error scope; the first problem wins over the map's own rejection. */
  private async map(
    staging: GPUBuffer,
    size: number,
    problems: Promise<AmalgamError | null>[],
  ): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('mapAsync did not answer')), this.mapTimeoutMs);
    });
    const mapping = Promise.race([staging.mapAsync(GPUMapMode.READ, 0, size), timeout]);
    const [outcome, ...found] = await Promise.all([
      mapping.then(
        () => undefined,
        (cause: unknown) => cause ?? new Error('mapAsync failed'),
      ),
      ...problems.map((p) => Promise.race([p, timeout]).catch(() => null)),
    ]);
    clearTimeout(timer);
    const problem = found.find((p) => p !== null);
    if (problem) throw problem;
    if (outcome !== undefined || this.lost !== undefined) {
      throw new AmalgamError(
        'GpuLost',
        `The graphics device was lost${this.lost ? ` (${this.lost})` : ''}.`,
        'Start the merge again; if it happens twice, reload the page or choose the CPU engine.',
        { cause: outcome },
      );
    }
  }

  private commands(): GPUCommandEncoder {
    this.scopes.open();
    this.encoder ??= this.device.createCommandEncoder();
    return this.encoder;
  }

  private submit(): void {
    if (!this.encoder) return;
    const used = this.stamps.issued * PARAMS_BYTES;
    if (used > 0) this.device.queue.writeBuffer(this.paramsBuffer, 0, this.params, 0, used / 4);
    this.device.queue.submit([this.encoder.finish()]);
    this.encoder = undefined;
    this.ring?.submitted();
  }

  private packParams<P extends string>(
    kernel: Kernel<P, string>,
    values: Record<P, number>,
    slot: number,
    nonce: number,
    width: number,
  ): void {
    let at = (slot * PARAMS_BYTES) / 4;
    this.params.set([nonce, slot, 0, width], at);
    at += 4;
    for (const [name, type] of Object.entries(kernel.params) as [P, 'u32' | 'f32'][]) {
      if (type === 'f32') this.paramFloats[at++] = values[name];
      else this.params[at++] = values[name];
    }
  }

  private bindGroup<B extends string>(
    kernel: Kernel<string, B>,
    layout: GPUBindGroupLayout,
    buffers: Record<B, BackendBuffer>,
  ): GPUBindGroup {
    const bound = (Object.keys(kernel.buffers) as B[]).map((name) => buffers[name] as GpuBuffer);
    const key = `${kernel.id} ${bound.map((b) => b.id).join(' ')}`;
    let group = this.bindGroups.get(key);
    if (!group) {
      group = this.device.createBindGroup({
        label: kernel.id,
        layout,
        entries: [
          { binding: 0, resource: { buffer: this.paramsBuffer, size: PARAMS_BYTES } },
          ...bound.map((b, i) => ({ binding: i + 1, resource: { buffer: b.handle } })),
          { binding: 9, resource: { buffer: this.stamps.buffer } },
        ],
      });
      this.bindGroups.set(key, group);
    }
    return group;
  }

  /** A free staging buffer of at least `size` bytes; sizes grow by halves so that few are ever made. */
  private takeStaging(size: number): GPUBuffer {
    const i = this.staging.findIndex((b) => b.size >= size);
    if (i >= 0) return this.staging.splice(i, 1)[0]!;
    for (const small of this.staging.splice(0)) small.destroy();
    this.scopes.open();
    return this.device.createBuffer({
      label: 'staging',
      size: Math.min(Math.ceil((size * 1.5) / 4) * 4, Math.max(this.device.limits.maxBufferSize, size)),
      usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST,
    });
  }
}
