/** Reading a stored tensor, and its known properties. */
import { AmalgamError } from '../errors';
import { isWeightDtype, type WeightDtype } from '../formats/dtype';
import { decodeToF32 } from '../formats/half';
import { giveBack, spareArray } from '../sources/spare-arrays';
import type { LowRank, ReadTensor, TensorRef, TensorView } from './tensor-view';

export type { ReadTensor };

/** Columns of a tensor seen as a matrix: its last dimension. */
export function columns({ shape }: { shape: readonly number[] }): number {
  return shape.at(-1) ?? 1;
}

export function weightDtype(ref: TensorRef): WeightDtype {
  if (isWeightDtype(ref.dtype)) return ref.dtype;
  throw new AmalgamError(
    'PlanHasErrors',
    `${ref.key} in ${ref.file} is ${ref.dtype}, which cannot be computed with.`,
    'Copy it with passthrough, or leave the model out.',
  );
}

// The values of a low-rank update's two factors, in memory.

/** The factors as they multiply the stored weight [rows, cols]: L [rows, rank] and R [rank, cols], row after row. */
export async function loadFactorValues(
  { a, b, rank, layout }: LowRank,
  read: ReadTensor,
): Promise<{ left: Float32Array<ArrayBuffer>; right: Float32Array<ArrayBuffer> }> {
  const [aValues, bValues] = await Promise.all([readF32(a, read), readF32(b, read)]);
  if (layout === 'linear') return { left: bValues, right: aValues };
  return { left: transpose(aValues, rank), right: transpose(bValues, bValues.length / rank) };
}

/** The values of a stored tensor in f32. @throws AmalgamError `PlanHasErrors` for a dtype that cannot be computed with */
export async function readF32(ref: TensorRef, read: ReadTensor): Promise<Float32Array<ArrayBuffer>> {
  const dtype = weightDtype(ref);
  const bytes = await read(ref, 0, ref.end - ref.begin);
  const count = ref.shape.reduce((x, y) => x * y, 1);
  // what is derived comes as floats in memory of its own
  const values = ref.derived
    ? new Float32Array(bytes.buffer, bytes.byteOffset, count)
    : new Float32Array(spareArray(count * 4).buffer, 0, count);
  if (!ref.derived) {
    decodeToF32(bytes, dtype, values);
    giveBack(bytes.buffer);
  }
  // infinities and NaN make NaN of zero
  let zero = 0;
  for (let i = 0; i < values.length; i++) zero += 0 * values[i]!;
  if (zero !== 0) nonFinite.add(ref);
  return values;
}

const nonFinite = new WeakSet<TensorRef>();

/** The first stored tensor that an update is computed from in which a value was NaN or infinite when it was read. */
export function nonFinitePart({
  origin,
  lowRank,
  addend,
}: Omit<TensorView, 'onBase'>): TensorRef | undefined {
  const from = origin.derived?.from ?? [];
  const parts = [lowRank?.a, lowRank?.b, lowRank?.magnitude, addend?.tensor, ...from];
  return parts.find((ref) => ref !== undefined && nonFinite.has(ref));
}

/** [rows, n/rows] → [n/rows, rows]. */
export function transpose(values: Float32Array, rows: number): Float32Array<ArrayBuffer> {
  const cols = values.length / rows;
  const out = new Float32Array(values.length);
  for (let i = 0; i < rows; i++) for (let j = 0; j < cols; j++) out[j * rows + i] = values[i * cols + j]!;
  return out;
}

/** How the metadata and the report name an input file. */
export function inputName(folder: string, file: string): string {
  return `${folder}/${file}`;
}
