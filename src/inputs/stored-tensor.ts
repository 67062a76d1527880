/** Reading a stored tensor, and its known properties. */

import { AmalgamError } from '../errors';
import { isWeightDtype, type WeightDtype } from '../formats/dtype';
import type { TensorRef } from './tensor-view';

export type { ReadTensor } from './tensor-view';

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
