import { AmalgamError } from '../../errors';
import { counted } from '../../formats/quantity';
import {
  type Backend,
  type BackendBuffer,
  type BackendSeconds,
  type BufferRange,
  type Dispatch,
  roomForWeights,
} from '../backend';
import { type Kernel, workOf } from '../kernel';
import { requestDevice } from './adapter';
import { Pipelines } from './pipelines';
import { measuredRing, openStagingRing, type StagingRing } from './staging-ring';
import { STAMP_BYTES, STAMP_SLOTS, Stamps } from './stamps';

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
/** Shorter uploads go by `writeBuffer` always, and do not begin what was enqueued before. */
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
 * Commands are collected into one encoder and submitted on `read`, and on a `write` that is long or to a buffer they use: a
 * pass that writes its few numbers first is one submit. Each dispatch has a stamp slot and a
 * nonce; `read` returns bytes only when every dispatch since the last read left its nonce and its element count and no
 * error scope caught anything. WebGPU otherwise fails silently, with zeros or old contents.
 */
class GpuEngine implements Backend {
  readonly kind = 'webgpu';
  readonly residentBytes = roomForWeights('webgpu');
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
  /** Ids of the buffers that the encoder's commands use. */
  private readonly used = new Set<number>();
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
    if (this.used.has(id)) this.submit();
    for (const key of this.bindGroups.keys())
      if (key.split(' ').includes(String(id))) this.bindGroups.delete(key);
    handle.destroy();
  }

  write(buffer: BackendBuffer, byteOffset: number, data: Uint8Array<ArrayBuffer>): void {
    const { id, handle } = buffer as GpuBuffer;
    this.scopes.open();
    const begin = performance.now();
    let done = 0;
    while (this.ring && data.byteLength >= RING_FROM && done < data.byteLength) {
      const pushed = this.ring.push(this.commands(), handle, byteOffset + done, data.subarray(done));
      if (pushed === 0) break;
      this.used.add(id);
      done += pushed;
    }
    if (done < data.byteLength) {
      // queue order: what was encoded before must not see these bytes
      if (this.used.has(id) || data.byteLength >= RING_FROM) this.submit();
      this.device.queue.writeBuffer(handle, byteOffset + done, data, done);
    }
    this.uploaded += data.byteLength;
    this.seconds.upload += (performance.now() - begin) / 1000;
  }

  clear(buffer: BackendBuffer, byteOffset = 0, byteLength = buffer.byteLength - byteOffset): void {
    if (byteLength === 0) return;
    const { id, handle } = buffer as GpuBuffer;
    this.used.add(id);
    this.commands().clearBuffer(handle, byteOffset, byteLength);
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
    const proof = Math.max(4, this.stamps.issued * STAMP_BYTES);
    const total = sizes.reduce((a, b) => a + b, 0) + proof;
    const staging = this.takeStaging(total);
    const encoder = this.commands();
    let offset = 0;
    for (const { buffer, byteOffset = 0, byteLength } of ranges) {
      if (byteLength > 0) {
        encoder.copyBufferToBuffer((buffer as GpuBuffer).handle, byteOffset, staging, offset, byteLength);
      }
      offset += byteLength;
    }
    encoder.copyBufferToBuffer(this.stamps.buffer, 0, staging, offset, proof);
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
      verify(new Uint32Array(mapped, offset, proof / 4));
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
    this.used.clear();
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
    for (const { id } of bound) this.used.add(id);
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
