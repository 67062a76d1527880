/** Rows of weights → the blocks of a GGUF tensor. */
import type { Backend } from '../backend/backend';
import { DTYPE_CODE, encodeBlocks } from '../backend/kernels/encoding';
import { AmalgamError } from '../errors';
import { type WeightDtype, weightBytes } from '../formats/dtype';
import { decodeToF32, encodeFromF32 } from '../formats/half';
import { BLOCK_TYPES, type BlockType, rowBytes } from './block-types';

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
