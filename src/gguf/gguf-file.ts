/** A GGUF file as it is written beside the merge: one part for every tensor of the merge, in the merge's order. */
import type { Backend } from '../backend/backend';
import { DTYPE_CODE, encodeBlocks } from '../backend/kernels/encoding';
import { AmalgamError } from '../errors';
import { type WeightDtype, weightBytes } from '../formats/dtype';
import { decodeToF32, encodeFromF32 } from '../formats/half';
import { BLOCK_TYPES, type BlockType, rowBytes } from './block-types';
import { fileLength, type GgufPlan, ggufBeginning } from './gguf-plan';
import type { GgufValue } from './header';
import { arrangeRows, type RowArranger } from './row-arranger';

/** As `ShardPlan` of the merge describes a file. */
export interface GgufFile {
  file: string;
  header: Uint8Array<ArrayBuffer>;
  /** Parts by the merge's tensors; one that the file leaves out has no bytes. */
  tensors: { name: string; byteLength: number }[];
  byteLength: number;
}

/**
 * @param order the merge's names of its tensors, in the order in which they are finished
 * @param more metadata of the run
 */
export function ggufFile(
  file: string,
  plan: GgufPlan,
  order: readonly string[],
  more: readonly (readonly [key: string, value: GgufValue])[] = [],
): GgufFile {
  const header = ggufBeginning(plan, more, order);
  const tensors = order.map((name) => ({
    name,
    byteLength: bytesOf(plan, name),
  }));
  const byteLength = tensors.reduce((sum, tensor) => sum + tensor.byteLength, header.byteLength);
  return { file, header, tensors, byteLength };
}

function bytesOf({ tensors }: GgufPlan, name: string): number {
  const tensor = tensors.get(name);
  return tensor ? fileLength(tensor) : 0;
}

/** Pieces that an engine may have before the first is written. */
const PIECES_AHEAD = 2;

/** Takes the finished tensors of a merge one after the other and hands on the bytes of the file. */
export interface GgufEncoder {
  /** Bytes of the tensor at work, as the merge writes them. */
  append(bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  /** All bytes of that tensor have come; those of the file are handed on when it resolves. */
  finishTensor(): Promise<void>;
}

/** Weights of the columns of a tensor, by the merge's name of it; of most tensors there are none. */
export type ColumnImportance = ReadonlyMap<string, Float32Array<ArrayBuffer>>;

interface GgufEncoderOptions {
  plan: GgufPlan;
  /** The tensors to come, in order. */
  names: readonly string[];
  /** Engines of the processor that take the pieces in turn; they stay the caller's. */
  engines: readonly Backend[];
  importance?: ColumnImportance;
  /** Gets the bytes that follow the file's header; one call at a time. */
  write(bytes: Uint8Array<ArrayBuffer>): Promise<void>;
}

export function ggufEncoder({ plan, names, engines, importance, write }: GgufEncoderOptions): GgufEncoder {
  let at = 0;
  let arranger: RowArranger | undefined;
  let turn = 0;
  /** Pieces at work, in the order of the file. */
  const pieces: Promise<Uint8Array<ArrayBuffer>>[] = [];
  /** Second halves of the rows, which follow when all first ones are written. */
  const waiting: Uint8Array<ArrayBuffer>[] = [];
  const writeFirst = async () => {
    const piece = await pieces.shift()!;
    const { second, layout, type, columns } = plan.tensors.get(names[at]!)!;
    if (second === undefined || layout.kind === 'as_stored') return write(piece);
    const half = (layout.rows! / 2) * rowBytes(type, columns);
    for (let begin = 0; begin < piece.byteLength; begin += 2 * half) {
      waiting.push(piece.slice(begin + half, begin + 2 * half));
      await write(piece.slice(begin, begin + half));
    }
  };
  const fill = async (bytes: number) => {
    if (bytes > 0) await write(new Uint8Array(bytes));
  };
  return {
    async append(bytes) {
      const tensor = plan.tensors.get(names[at]!);
      if (!tensor) return;
      arranger ??= arrangeRows(tensor);
      const weights = importance?.get(names[at]!);
      await arranger.push(bytes, async (rows) => {
        const piece = encodeRows(engines[turn++ % engines.length]!, {
          ...tensor,
          tensor: tensor.name,
          bytes: rows,
          ...(weights ? { importance: weights } : {}),
        });
        // a failure shows when its turn to be written comes
        piece.catch(() => undefined);
        pieces.push(piece);
        while (pieces.length > PIECES_AHEAD * engines.length) await writeFirst();
      });
    },
    async finishTensor() {
      while (pieces.length > 0) await writeFirst();
      const tensor = plan.tensors.get(names[at]!);
      const filling = bytesOf(plan, names[at]!) - (tensor?.byteLength ?? 0);
      const parts = tensor?.second === undefined ? 1 : 2;
      await fill(filling / parts);
      for (const bytes of waiting.splice(0)) await write(bytes);
      if (parts === 2) await fill(filling / 2);
      arranger = undefined;
      at++;
    },
  };
}

// Rows of weights → the blocks of a GGUF tensor.

interface RowsToEncode {
  /** Whole rows, as the merge wrote them; they are the encoder's once handed over. */
  bytes: Uint8Array<ArrayBuffer>;
  dtype: WeightDtype;
  type: BlockType;
  columns: number;
  /** Added to every element. */
  plus: number;
  /** How much each column counts, where that is known. */
  importance?: Float32Array<ArrayBuffer>;
  /** For messages. */
  tensor: string;
}

/**
 * Blocks of the rows, one row after the other; made on an engine of the processor, but for plain numbers.
 * @throws AmalgamError `NonFinite` for values that no block can hold, or that F16 cannot, also as a scale
 */
export async function encodeRows(engine: Backend, rows: RowsToEncode): Promise<Uint8Array<ArrayBuffer>> {
  return BLOCK_TYPES[rows.type].elements === 1 ? plainNumbers(rows) : blocksOn(engine, rows);
}

function plainNumbers({ bytes, dtype, type, plus, tensor }: RowsToEncode): Uint8Array<ArrayBuffer> {
  if (dtype === type && plus === 0) return bytes;
  const values = new Float32Array(bytes.byteLength / weightBytes(dtype));
  decodeToF32(bytes, dtype, values);
  if (plus !== 0) for (let i = 0; i < values.length; i++) values[i]! += plus;
  const out = new Uint8Array(values.length * BLOCK_TYPES[type].bytes);
  if (type === 'F16') {
    if (!values.every(Number.isFinite)) throw broken(tensor);
    if (values.some((value) => Math.abs(value) > MOST_F16)) throw tooLarge(tensor, type);
  }
  encodeFromF32(values, type as WeightDtype, out);
  return out;
}

/** Above it binary16 rounds to infinity. */
const MOST_F16 = 65_519;

/** Every buffer is the dispatch's own: what the engine does next does not wait for its answer. */
async function blocksOn(
  engine: Backend,
  { bytes, dtype, type, columns, importance, tensor }: RowsToEncode,
): Promise<Uint8Array<ArrayBuffer>> {
  const { id, elements, bytes: blockBytes } = BLOCK_TYPES[type];
  const rows = bytes.byteLength / (columns * weightBytes(dtype));
  const byteLength = rows * rowBytes(type, columns);
  const buffers = {
    raw: engine.allocate(bytes.byteLength, 'rows to encode'),
    importance: engine.allocate(importance?.byteLength ?? 4, 'importance of columns'),
    row: engine.allocate(columns * 4, 'a row'),
    blocks: engine.allocate(byteLength, 'blocks'),
    status: engine.allocate(4, 'status of blocks'),
  };
  if (importance) engine.write(buffers.importance, 0, new Uint8Array(importance.buffer));
  engine.write(buffers.raw, 0, bytes, true);
  const params = { rows, columns, dtype: DTYPE_CODE[dtype], type: id };
  engine.run(encodeBlocks, {
    params: { ...params, block_elements: elements, block_bytes: blockBytes, weighted: importance ? 1 : 0 },
    buffers,
  });
  const answer = engine.read([
    { buffer: buffers.blocks, byteLength: Math.ceil(byteLength / 4) * 4 },
    { buffer: buffers.status, byteLength: 4 },
  ]);
  for (const buffer of Object.values(buffers)) engine.free(buffer);
  const [blocks, status] = await answer;
  const bad = new DataView(status!.buffer).getUint32(status!.byteOffset, true);
  if (bad > 0) throw broken(tensor);
  const encoded = blocks!.subarray(0, byteLength);
  if (hasInfiniteScale(encoded, type)) throw tooLarge(tensor, type);
  return encoded;
}

/** Scales are F16, as ggml's are: those of large weights, which are finite themselves, become infinities. */
function hasInfiniteScale(blocks: Uint8Array, type: BlockType): boolean {
  const { bytes, scales } = BLOCK_TYPES[type];
  for (let begin = 0; begin < blocks.length; begin += bytes) {
    for (const at of scales) if ((blocks[begin + at + 1]! & 0x7c) === 0x7c) return true;
  }
  return false;
}

function broken(tensor: string): AmalgamError {
  return new AmalgamError(
    'NonFinite',
    `${tensor} has values that are NaN or infinite.`,
    'Look for the broken model, or leave the tensor out.',
  );
}

function tooLarge(tensor: string, type: BlockType): AmalgamError {
  return new AmalgamError(
    'NonFinite',
    `${tensor} has values that are too large for ${type}.`,
    'Write BF16 or F32 instead.',
  );
}
