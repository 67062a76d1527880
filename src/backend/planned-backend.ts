/** An engine that computes nothing and takes no memory: what runs on it shows how many bytes it would take. */
import { type Backend, type BackendBuffer, countedBackend } from './backend';
import { encodingRoom, productRoom } from './cpu/product-board';
import { SCRATCH_PAGES } from './kernel';
import { encodeWeights } from './kernels/matmul';

/** What is known of an engine before it is opened. */
export type EngineTraits = Pick<
  Backend,
  'kind' | 'adapter' | 'software' | 'maxBufferBytes' | 'residentBytes'
> & {
  /** Weights lie in memories of their own. */
  hasWeights: boolean;
};

const PAGE = 65_536;
const MEBIBYTE = 2 ** 20;
/** Memories of the processor: one for rows, two for weights. */
const MEMORIES = 3;
/** Of a graphics device: parameters and proofs of dispatches; with many uploads the ring for them, and what measures it. */
const DEVICE_BYTES = 0.5 * MEBIBYTE;
const [RING_FROM, RING_BYTES] = [64 * MEBIBYTE, 13 * 4 * MEBIBYTE];
/** What an answer waits in is longer by half. */
const STAGING = 1.5;
/** Bytes of a proof. */
const PROOF = 8;

export function plannedBackend({ hasWeights, ...traits }: EngineTraits) {
  /** Of the processor, rows in and out of a product; of a graphics device, where answers wait. */
  let room = 0;
  /** Rooms that became too small, and may not be of use again. */
  let holes = 0;
  let dispatches = 0;
  let uploaded = 0;
  const enlarge = (bytes: number) => {
    if (bytes <= room) return;
    holes += room;
    room = bytes;
  };
  const allocate = (byteLength: number, label: string): BackendBuffer => ({
    label,
    byteLength: Math.max(4, Math.ceil(byteLength / 4) * 4),
  });
  const engine = countedBackend({
    ...traits,
    seconds: { upload: 0, compute: 0, readback: 0 },
    allocate,
    ...(hasWeights && { allocateWeights: allocate }),
    free() {},
    write(_, __, data) {
      uploaded += data.byteLength;
    },
    clear() {},
    run(kernel, { params, buffers }) {
      dispatches++;
      const p = params as Record<string, number>;
      const { x, raw } = buffers as Record<string, BackendBuffer>;
      if (kernel.panels !== undefined) {
        const shape = { dtype: kernel.panels, inputs: 4 * p.inputs4!, outputs: p.outputs!, rows: p.rows! };
        enlarge(productRoom(shape, x!.byteLength).bytes);
      } else if (hasWeights && kernel.id === encodeWeights.id)
        enlarge(encodingRoom(p.inputs!, raw!.byteLength).bytes);
    },
    async read(ranges) {
      const bytes = ranges.reduce((sum, { byteLength }) => sum + byteLength, 0);
      if (traits.kind === 'webgpu') enlarge(STAGING * (bytes + PROOF * dispatches));
      dispatches = 0;
      return ranges.map(({ byteLength }) => new Uint8Array(byteLength));
    },
    close() {},
  });
  return {
    engine,
    /** Most bytes of all so far, what an engine takes besides buffers included. */
    get bytes() {
      const ring = uploaded < RING_FROM ? 0 : RING_BYTES;
      const own = traits.kind === 'webgpu' ? DEVICE_BYTES + ring : MEMORIES * (SCRATCH_PAGES + 1) * PAGE;
      return engine.peakBytes + holes + room + own;
    },
  };
}
