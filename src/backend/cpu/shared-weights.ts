/**
 * Weights in memories of their own, which several threads reach where memory can be shared, and the products by them, which the
 * threads compute together.
 */
import { AmalgamError } from '../../errors';
import { counted } from '../../formats/quantity';
import { type KernelExports, SCRATCH, SCRATCH_PAGES } from '../kernel';
import { dtypeBytes } from '../kernels/encoding';
import { ENCODED_CODE, PANEL, panelRowBytes } from '../kernels/matmul';
import { CpuMemory, instantiateKernels, PAGE, type Range } from './cpu-memory';
import {
  announce,
  BOARD_BYTES,
  type Board,
  computeAnnounced,
  encodingRoom,
  endBoard,
  helpUntilEnd,
  MOST_CHUNKS,
  MOST_SLEEPS,
  multiplyChunk,
  productRoom,
  type SharedProduct,
} from './product-board';

/** What a thread that helps gets: plain data. */
export interface HelpRequest {
  board: Board;
  memories: readonly WebAssembly.Memory[];
  /** Its number, from 1 on. */
  number: number;
}

/** A thread's side. */
export interface HelpCalls {
  /** Helps with products until it is sent home. */
  help(request: HelpRequest): Promise<void>;
}

/** Starts a thread that answers {@link HelpCalls.help}; it ends it. */
export type StartHelper = (request: HelpRequest) => () => void;

export type SharedWeights = ReturnType<typeof openSharedWeights>;

/** A range of one of the memories. */
export interface SharedRange extends Range {
  readonly memory: number;
}

/** What `multiply` is given: where x, bias and y are is up to it. */
export type ProductShape = Pick<
  SharedProduct,
  'dtype' | 'inputs' | 'outputs' | 'xPitch' | 'rows' | 'yPitch' | 'add' | 'scale'
> & { weights: SharedRange; firstOutput: number };

/** One memory has 4 GiB at most, of which some stay for rows in and out. */
const MEMORIES = 2;
const MOST_WEIGHTS = 3.5 * 2 ** 30;
/** Threads that a memory has scratch for. */
const MOST_THREADS = 8;
const SCRATCH_BYTES = Math.floor((SCRATCH_PAGES * PAGE - SCRATCH) / MOST_THREADS / 64) * 64;
/** Multiply-adds of a chunk, at least: a few times what handing it out costs. */
const CHUNK_WORK = 2 ** 16;
/** Chunks for each thread: so many that none waits long for the slowest. */
const CHUNKS_EACH = 8;
const scratchOf = (number: number) => SCRATCH + number * SCRATCH_BYTES;

/** Whether memory can be shared here, and waited at: in Node, and in a worker of a page that is isolated from other origins. */
export function canShareMemory(): boolean {
  return (
    typeof SharedArrayBuffer !== 'undefined' &&
    globalThis.crossOriginIsolated !== false &&
    !('document' in globalThis)
  );
}

/**
 * Opens memories for weights; the threads that help start with the first product that is worth it.
 * @param helpers threads beside this one; without any, nothing is shared
 * @param residentBytes bytes of weights that may stay
 * @param patience sleeps of 100 ms until a thread that is in the middle of a product is taken for dead
 * @returns undefined where the system has no room for such memories
 */
export function openSharedWeights(
  helpers: number,
  start: StartHelper,
  { residentBytes = 0, patience = MOST_SLEEPS } = {},
) {
  let memories: CpuMemory[];
  try {
    memories = Array.from({ length: MEMORIES }, () => new CpuMemory(helpers > 0));
  } catch (thrown) {
    if (thrown instanceof RangeError) return undefined;
    throw thrown;
  }
  const kernels: KernelExports[] = memories.map(({ memory }) => instantiateKernels(memory));
  const threads = Math.min(helpers + 1, MOST_THREADS);
  const board = threads > 1 ? (new Int32Array(new SharedArrayBuffer(BOARD_BYTES)) as Board) : undefined;
  /** Bytes of weights, by memory. */
  const held = memories.map(() => 0);
  /** Room for rows in and out of a product, by memory. */
  const rooms: (Range | undefined)[] = [];
  let ends: (() => void)[] | undefined;
  let failed: AmalgamError | undefined;

  const startThreads = (board: Board) =>
    Array.from({ length: threads - 1 }, (_, i) =>
      start({ board, memories: memories.map(({ memory }) => memory), number: i + 1 }),
    );
  const roomIn = (memory: number, byteLength: number): Range => {
    const room = rooms[memory];
    if (room && room.byteLength >= byteLength) return room;
    if (room) memories[memory]!.give(room);
    rooms[memory] = undefined;
    try {
      const larger = memories[memory]!.take(byteLength);
      rooms[memory] = larger;
      return larger;
    } catch (cause) {
      throw new AmalgamError(
        'GpuOutOfMemory',
        `No memory for the rows of a product (${counted(byteLength, 'byte')}).`,
        'Close other tabs, or use a shorter text.',
        { cause },
      );
    }
  };
  const bytesIn = (memory: number, address: number, byteLength: number) =>
    memories[memory]!.bytes({ address, byteLength });
  const close = () => {
    if (board) endBoard(board);
    for (const end of ends ?? []) end();
    ends = [];
  };

  return {
    residentBytes,
    /** A range for weights; undefined where no memory has room. */
    take(byteLength: number): SharedRange | undefined {
      for (const [memory, own] of memories.entries()) {
        if (held[memory]! + byteLength > MOST_WEIGHTS) continue;
        try {
          const range = { ...own.take(byteLength), memory };
          held[memory]! += byteLength;
          return range;
        } catch (thrown) {
          if (!(thrown instanceof RangeError)) throw thrown;
        }
      }
      return undefined;
    },
    give(range: SharedRange): void {
      memories[range.memory]!.give(range);
      held[range.memory]! -= range.byteLength;
    },
    bytes: (range: SharedRange) => memories[range.memory]!.bytes(range),
    /** Lays weights out in panels, in their place. */
    pack({ memory, address }: SharedRange, dtype: number, inputs: number, outputs: number): void {
      const room = roomIn(memory, PANEL * inputs * dtypeBytes(dtype));
      kernels[memory]!.packPanels(address, dtype, inputs, outputs, room.address);
    },
    /** Encodes rows as weights of eight bits, from output `first` on. */
    encode(
      { memory, address }: SharedRange,
      dtype: number,
      inputs: number,
      outputs: number,
      first: number,
      rows: Uint8Array,
    ): void {
      const { wideAt, bytes } = encodingRoom(inputs, rows.length);
      const room = roomIn(memory, bytes);
      bytesIn(memory, room.address, rows.length).set(rows);
      const to = address + first * panelRowBytes(ENCODED_CODE, inputs);
      kernels[memory]!.encodePanels(room.address, dtype, inputs, outputs, to, room.address + wideAt);
    },
    /**
     * A product by weights in panels.
     * @param x rows, `xPitch` apart @param y rows, `yPitch` apart, from the first output on
     * @throws AmalgamError `WorkerDied`
     */
    multiply(shape: ProductShape, x: Uint8Array, bias: Uint8Array | undefined, y: Uint8Array): void {
      if (failed) throw failed;
      const { weights, firstOutput, inputs, outputs, rows, dtype, yPitch } = shape;
      const { memory } = weights;
      const width = 4 * outputs;
      const isEncoded = dtype === ENCODED_CODE;
      const { cutAt, biasAt, yAt, yPitch: ownPitch, bytes } = productRoom(shape, x.length);
      const room = roomIn(memory, bytes);
      const all = bytesIn(memory, room.address, bytes);
      all.set(x);
      if (isEncoded)
        kernels[memory]!.cutInputs(room.address, shape.xPitch, rows, inputs, room.address + cutAt);
      if (bias) all.set(bias, biasAt);
      const rowAt = (r: number) => yAt + r * ownPitch;
      if (shape.add)
        for (let r = 0; r < rows; r++) all.set(y.subarray(r * yPitch, r * yPitch + width), rowAt(r));
      const work = rows * inputs * outputs;
      const most = Math.min(MOST_CHUNKS, CHUNKS_EACH * threads, Math.floor(work / CHUNK_WORK));
      const step = Math.ceil(outputs / Math.max(1, most) / PANEL) * PANEL;
      const product: SharedProduct = {
        ...shape,
        memory,
        weights: weights.address + firstOutput * panelRowBytes(dtype, inputs),
        x: room.address + (isEncoded ? cutAt : 0),
        bias: bias ? room.address + biasAt : 0,
        y: room.address + yAt,
        yPitch: ownPitch,
        step,
        chunks: Math.ceil(outputs / step),
      };
      if (product.chunks === 1 || !board) {
        multiplyChunk(kernels[memory]!, { ...product, step: outputs }, 0, scratchOf(0));
      } else {
        ends ??= startThreads(board);
        announce(board, product);
        if (!computeAnnounced(board, kernels, scratchOf(0), product.chunks, patience)) {
          failed = new AmalgamError(
            'WorkerDied',
            'A thread of the CPU engine stopped in the middle of a product.',
            'Start again; if memory is short, close other tabs.',
          );
          close();
          throw failed;
        }
      }
      for (let r = 0; r < rows; r++) y.set(all.subarray(rowAt(r), rowAt(r) + width), r * yPitch);
    },
    close,
  };
}

/** Helps with products, in a thread of its own. */
export function serveHelp(): HelpCalls {
  return {
    async help({ board, memories, number }) {
      helpUntilEnd(board, memories.map(instantiateKernels), scratchOf(number));
    },
  };
}
