import type { BufferRange, EngineBuffer } from '../../compute/engine';
import { blockCount } from '../../compute/kernel';
import { DTYPE_CODE } from '../../compute/kernels/decode';
import { encode } from '../../compute/kernels/encode';
import { AmalgamError } from '../../errors';
import { isWeightDtype, weightBytes } from '../../formats/dtype';
import { spareArray } from '../../sources/spare-arrays';
import type { TensorTask } from './tensor-task';

/**
 * Packs the merged f32 values of a tile into the output dtype and reads them back together with `more`.
 * Returns [bytes, status, ...more]: the tile's bytes and the non-finite counts (one per slot, then the output).
 */
export async function encodeTile(
  task: TensorTask,
  values: EngineBuffer,
  elements: number,
  more: BufferRange[],
): Promise<[Uint8Array<ArrayBuffer>, Uint32Array, ...Uint8Array<ArrayBuffer>[]]> {
  const { work, plan } = task;
  if (!isWeightDtype(plan.dtype)) throw new Error(`${plan.name}: cannot encode ${plan.dtype}`);
  const byteLength = elements * weightBytes(plan.dtype);
  work.engine.run(encode, {
    params: { elements, dtype: DTYPE_CODE[plan.dtype], values_begin: 0, status: work.models + 1 },
    buffers: { values, packed: work.packed, status: work.status },
    groups: blockCount(elements),
    elements,
  });
  const words = Math.ceil(byteLength / 4) * 4;
  const [packed, status, ...rest] = await work.engine.read([
    { buffer: work.packed, byteLength: words, into: spareArray(words).buffer },
    { buffer: work.status, byteLength: work.status.byteLength },
    ...more,
  ]);
  return [packed!.subarray(0, byteLength), new Uint32Array(status!.buffer), ...rest];
}

/**
 * Checks the non-finite counts of a tile and returns their sum.
 * @throws AmalgamError `NonFinite` naming tensor and model, unless the recipe carries them through
 */
export function requireFinite(task: TensorTask, status: Uint32Array, policy: 'stop' | 'carry'): number {
  const { plan, work } = task;
  const total = status.reduce((a, b) => a + b, 0);
  if (total === 0 || policy === 'carry') return total;
  const slot = status.findIndex((n) => n > 0);
  const where =
    slot === 0
      ? 'the base'
      : slot > work.models
        ? 'the merged result'
        : (plan.models[slot - 1]?.id ?? 'a contributor');
  throw new AmalgamError(
    'NonFinite',
    `${plan.name}: ${status[slot]} values of ${where} are NaN or infinite.`,
    slot > work.models
      ? 'Choose a wider output dtype (bfloat16 or float32), smaller weights, or set non-finite values to be carried through.'
      : 'Check that model’s files, or set non-finite values to be carried through.',
  );
}
