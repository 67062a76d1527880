import { AmalgamError, REPORT_IT } from '../errors';
import { DTYPE_BITS, type Dtype } from './dtype';
import { checkTensorName, compareCodePoints, displayName } from './names';
import { counted } from './quantity';
import { MAX_HEADER_BYTES, tensorBytes } from './safetensors-header';

/** A tensor to be written: its bytes follow those of the tensor before it. */
export interface PlannedTensor {
  name: string;
  dtype: Dtype;
  shape: readonly number[];
  byteLength: number;
}

/**
 * Everything a safetensors file has in front of its data: the 8 bytes of the header's length and the JSON, padded
 * with spaces to a multiple of 8. Byte-identical to the Rust writer for tensors in {@link sortForFile} order.
 *
 * @param tensors in the order of their bytes
 * @param metadata strings for `__metadata__`; `format: pt`, without which transformers refuses a file, is always there
 * @throws AmalgamError `UnsafeName`, `DuplicateKey`, `ShapeMismatch`, `LimitExceeded`
 */
export function buildSafetensorsHeader(
  tensors: readonly PlannedTensor[],
  metadata: Readonly<Record<string, string>>,
): Uint8Array<ArrayBuffer> {
  for (const [key, value] of Object.entries(metadata)) {
    if (!key.isWellFormed() || !value.isWellFormed()) {
      throw new AmalgamError(
        'UnsafeName',
        `The metadata of the output, at “${displayName(key)}”, contains half of a surrogate pair.`,
        'Rename the model or file that it names.',
      );
    }
  }
  const members = [`"__metadata__":${JSON.stringify({ ...metadata, format: 'pt' })}`];
  const names = new Set<string>();
  let offset = 0;
  for (const tensor of tensors) {
    check(tensor, names);
    const end = offset + tensor.byteLength;
    members.push(
      `${JSON.stringify(tensor.name)}:{"dtype":"${tensor.dtype}","shape":[${tensor.shape.join(',')}],"data_offsets":[${offset},${end}]}`,
    );
    offset = end;
  }
  const json = new TextEncoder().encode(`{${members.join(',')}}`);
  const padded = Math.ceil(json.length / 8) * 8;
  if (padded > MAX_HEADER_BYTES || !Number.isSafeInteger(offset)) {
    throw new AmalgamError(
      'LimitExceeded',
      `A file of ${counted(tensors.length, 'tensor')} needs a header of ${padded} bytes for ${offset} bytes of data, more than the format allows.`,
      'Choose smaller shards.',
    );
  }
  const header = new Uint8Array(8 + padded).fill(0x20);
  new DataView(header.buffer).setBigUint64(0, BigInt(padded), true);
  header.set(json, 8);
  return header;
}

function check(tensor: PlannedTensor, names: Set<string>): void {
  checkTensorName(tensor.name, 'The output');
  if (names.has(tensor.name)) {
    throw new AmalgamError(
      'DuplicateKey',
      `The output would hold the tensor “${displayName(tensor.name)}” twice.`,
      'Check the slices of the recipe.',
    );
  }
  names.add(tensor.name);
  if (tensorBytes(tensor.dtype, tensor.shape) !== tensor.byteLength) {
    throw new AmalgamError(
      'ShapeMismatch',
      `The output tensor “${displayName(tensor.name)}” of ${tensor.dtype} [${tensor.shape}] cannot be ${counted(tensor.byteLength, 'byte')} long.`,
      REPORT_IT,
    );
  }
}

/**
 * The order of the Rust writer: dtype descending (its enumeration grows with the element size; {@link DTYPE_BITS}
 * lists it in the same order), then name by code points. With widest elements first, every tensor is aligned.
 */
export function sortForFile<T extends { name: string; dtype: Dtype }>(tensors: readonly T[]): T[] {
  const rank = new Map(Object.keys(DTYPE_BITS).map((dtype, index) => [dtype, index]));
  return [...tensors].sort(
    (a, b) => rank.get(b.dtype)! - rank.get(a.dtype)! || compareCodePoints(a.name, b.name),
  );
}
