/** Reading a stored tensor, and what is known of it before. */

import { AmalgamError } from '../errors';
import { isWeightDtype, type WeightDtype } from '../formats/dtype';
import type { TensorRef } from './tensor-view';

/** Reads bytes [begin, end) of a stored tensor, counted from its first byte. */
export type ReadTensor = (ref: TensorRef, begin: number, end: number) => Promise<Uint8Array<ArrayBuffer>>;

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
