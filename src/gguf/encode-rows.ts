/** Rows of weights → the blocks of a GGUF tensor. */
import { AmalgamError } from '../errors';
import { type WeightDtype, weightBytes } from '../formats/dtype';
import { decodeToF32, encodeFromF32 } from '../formats/half';
import { type BlockType, rowBytes } from './block-types';
import { encodeQ4K, encodeQ5K, encodeQ6K } from './blocks/k-blocks';
import { encodeQ4_0, encodeQ5_0, encodeQ5_1, encodeQ8_0 } from './blocks/simple-blocks';

export interface RowsToEncode {
  /** Whole rows, as the merge wrote them. */
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

type Blocks = Exclude<BlockType, 'F32' | 'F16' | 'BF16'>;

const ENCODERS: Record<Blocks, (x: Float32Array, out: Uint8Array, importance?: Float32Array) => void> = {
  Q8_0: encodeQ8_0,
  Q4_0: encodeQ4_0,
  Q5_0: encodeQ5_0,
  Q5_1: encodeQ5_1,
  Q4_K: encodeQ4K,
  Q5_K: encodeQ5K,
  Q6_K: encodeQ6K,
};

/**
 * Blocks of the rows, one row after the other.
 * @throws AmalgamError `NonFinite` for values that no block can hold, or that F16 cannot
 */
export function encodeRows({
  bytes,
  dtype,
  type,
  columns,
  plus,
  importance,
  tensor,
}: RowsToEncode): Uint8Array<ArrayBuffer> {
  if (dtype === type && plus === 0) return bytes;
  const values = new Float32Array(bytes.byteLength / weightBytes(dtype));
  decodeToF32(bytes, dtype, values);
  if (plus !== 0) for (let i = 0; i < values.length; i++) values[i]! += plus;
  const out = new Uint8Array((values.length / columns) * rowBytes(type, columns));
  if (type === 'F32' || type === 'BF16') {
    encodeFromF32(values, type, out);
    return out;
  }
  requireWithin(values, type === 'F16' ? MOST_F16 : MOST_F32, type, tensor);
  if (type === 'F16') encodeFromF32(values, type, out);
  else ENCODERS[type](values, out, importance);
  return out;
}

const MOST_F32 = 3.4028234663852886e38;
/** Above it binary16 rounds to infinity. */
const MOST_F16 = 65_519;

function requireWithin(values: Float32Array, most: number, type: BlockType, tensor: string): void {
  for (let i = 0; i < values.length; i++) {
    if (Math.abs(values[i]!) <= most) continue;
    throw new AmalgamError(
      'NonFinite',
      `${tensor} has the value ${values[i]}, which ${type} cannot hold.`,
      type === 'F16' ? 'Write BF16 or F32 instead.' : 'Look for the broken model, or leave the tensor out.',
    );
  }
}
