/**
 * Where a product by weights in shared memories is written up, so that several threads compute it: whoever is free takes the
 * next chunk of its outputs. A thread that is late, or gone before it took one, holds nobody up.
 */
import type { KernelExports } from '../kernel';
import { ENCODED_BLOCK, ENCODED_CODE, panelRowBytes } from '../kernels/matmul';

/**
 * y = add·y + bias + scale · x·wᵀ by weights in panels, all in one memory; by weights of eight bits x is as `cutInputs` leaves it.
 * Addresses and pitches are bytes.
 */
export interface SharedProduct {
  memory: number;
  dtype: number;
  weights: number;
  inputs: number;
  outputs: number;
  x: number;
  xPitch: number;
  rows: number;
  /** 0 for none. */
  bias: number;
  y: number;
  yPitch: number;
  add: number;
  scale: number;
  /** Outputs of every chunk but the last. */
  step: number;
  chunks: number;
}

const whole = (bytes: number) => Math.ceil(bytes / 64) * 64;

/** Room for rows in and out of a product: bytes of it, and where x is cut to 16 bits, bias and y begin behind x. */
export function productRoom(
  { dtype, inputs, outputs, rows }: Pick<SharedProduct, 'dtype' | 'inputs' | 'outputs' | 'rows'>,
  xBytes: number,
) {
  const cutBytes = dtype === ENCODED_CODE ? rows * (2 * inputs + (4 * inputs) / ENCODED_BLOCK.inputs) : 0;
  const cutAt = whole(xBytes);
  const biasAt = cutAt + whole(cutBytes);
  const yPitch = whole(4 * outputs);
  return { cutAt, biasAt, yAt: biasAt + yPitch, yPitch, bytes: biasAt + yPitch * (1 + rows) };
}

/** Room for stored rows that are encoded: bytes of it, and where they are widened behind them. */
export function encodingRoom(inputs: number, rawBytes: number) {
  const wideAt = whole(rawBytes);
  return { wideAt, bytes: wideAt + 4 * inputs + 8 * panelRowBytes(ENCODED_CODE, inputs) };
}

const FIELDS = [
  ...(['memory', 'dtype', 'weights', 'inputs', 'outputs', 'x', 'xPitch', 'rows', 'bias'] as const),
  ...(['y', 'yPitch', 'add', 'step', 'chunks'] as const),
];

/** Words of the board. The ticket is a product's number and how many of its chunks nobody took yet. */
const TICKET = 0;
const DONE = 1;
const ENDED = 2;
const FAILED = 3;
const SCALE = 4;
const FIRST_FIELD = 5;
const LEFT_BITS = 10;
const LEFT = 2 ** LEFT_BITS - 1;
const NUMBERS = 2 ** 21;

/** Most chunks of a product. */
export const MOST_CHUNKS = LEFT;
export const BOARD_BYTES = 4 * (FIRST_FIELD + FIELDS.length);

/** Looks at the board before a thread sleeps: some 100 µs, for the next product is rarely far. */
const LOOKS = 20_000;
/** Milliseconds of one sleep. */
const SLEEP_MS = 100;
/** Sleeps after which a chunk that somebody took is given up: 20 s, those of a machine that sleeps itself not counted. */
export const MOST_SLEEPS = 200;

export type Board = Int32Array<SharedArrayBuffer>;

/** Writes a product up; those before it are done. */
export function announce(board: Board, product: SharedProduct): void {
  for (const [i, field] of FIELDS.entries()) board[FIRST_FIELD + i] = product[field];
  new Float32Array(board.buffer)[SCALE] = product.scale;
  Atomics.store(board, DONE, 0);
  const number = ((board[TICKET]! >> LEFT_BITS) + 1) % NUMBERS;
  Atomics.store(board, TICKET, (number << LEFT_BITS) | product.chunks);
  Atomics.notify(board, TICKET);
}

function announced(board: Board): SharedProduct {
  const product = { scale: new Float32Array(board.buffer)[SCALE]! } as SharedProduct;
  for (const [i, field] of FIELDS.entries()) product[field] = board[FIRST_FIELD + i]! >>> 0;
  return product;
}

/** Computes one chunk of a product. @param scratch of this thread, in the memory */
export function multiplyChunk(k: KernelExports, p: SharedProduct, chunk: number, scratch: number): void {
  const first = chunk * p.step;
  const { dtype, inputs, x, rows, yPitch, add, scale } = p;
  const weights = p.weights + first * panelRowBytes(dtype, inputs);
  const outputs = Math.min(p.step, p.outputs - first);
  const bias = p.bias === 0 ? 0 : p.bias + 4 * first;
  const y = p.y + 4 * first;
  if (dtype === ENCODED_CODE) k.matmulEncoded(weights, inputs, outputs, x, rows, bias, y, yPitch, add, scale);
  else
    k.matmulPacked(
      ...([
        weights,
        dtype,
        inputs,
        outputs,
        x,
        p.xPitch,
        rows,
        bias,
        y,
        yPitch,
        add,
        scale,
        scratch,
      ] as const),
    );
}

/** Computes chunks until none is left. @param kernels over each memory */
function takeChunks(board: Board, kernels: readonly KernelExports[], scratch: number): void {
  for (;;) {
    const ticket = Atomics.load(board, TICKET);
    const left = ticket & LEFT;
    if (left === 0) return;
    const product = announced(board);
    // what was read is of this product if the ticket is still the same
    if (Atomics.compareExchange(board, TICKET, ticket, ticket - 1) !== ticket) continue;
    try {
      multiplyChunk(kernels[product.memory]!, product, product.chunks - left, scratch);
    } catch (thrown) {
      Atomics.store(board, FAILED, 1);
      throw thrown;
    } finally {
      if (Atomics.add(board, DONE, 1) + 1 === product.chunks) Atomics.notify(board, DONE);
    }
  }
}

/** Whether a word has changed before a thread would sleep. */
function changesSoon(board: Board, word: number, seen: number): boolean {
  for (let look = 0; look < LOOKS; look++) if (Atomics.load(board, word) !== seen) return true;
  return false;
}

/**
 * Computes what was announced, with whoever else takes chunks of it, and waits for them.
 * @param mostSleeps how long they are waited for
 * @returns false where one of them failed, or is not done by then
 */
export function computeAnnounced(
  board: Board,
  kernels: readonly KernelExports[],
  scratch: number,
  chunks: number,
  mostSleeps: number,
): boolean {
  takeChunks(board, kernels, scratch);
  for (let sleeps = 0; ; ) {
    const done = Atomics.load(board, DONE);
    if (Atomics.load(board, FAILED) === 1) return false;
    if (done === chunks) return true;
    if (changesSoon(board, DONE, done)) continue;
    if (Atomics.wait(board, DONE, done, SLEEP_MS) === 'timed-out' && ++sleeps === mostSleeps) return false;
  }
}

/** Computes chunks of whatever is announced, until the board is ended. */
export function helpUntilEnd(board: Board, kernels: readonly KernelExports[], scratch: number): void {
  while (Atomics.load(board, ENDED) === 0) {
    takeChunks(board, kernels, scratch);
    const ticket = Atomics.load(board, TICKET);
    if ((ticket & LEFT) === 0 && !changesSoon(board, TICKET, ticket))
      Atomics.wait(board, TICKET, ticket, SLEEP_MS);
  }
}

/** Sends those home who help. */
export function endBoard(board: Board): void {
  Atomics.store(board, ENDED, 1);
  Atomics.notify(board, TICKET);
}
