import type { BufferRange } from '../../backend/backend';
import { DTYPE_CODE, encode } from '../../backend/kernels/encoding';
import { AmalgamError } from '../../errors';
import { isWeightDtype, weightBytes } from '../../formats/dtype';
import { counted } from '../../formats/quantity';
import { nonFinitePart } from '../../inputs/stored-tensor';
import { spareArray } from '../../sources/spare-arrays';
import type { TensorPlan } from '../plan/plan';
import type { TensorTask } from './tensor-task';

/** What kernels that pack the tile have to know: the output dtype, and the slot that counts what is not finite. */
export function packing({ plan, work }: TensorTask): { dtype: number; status: number } {
  if (!isWeightDtype(plan.dtype)) throw new Error(`${plan.name}: cannot encode ${plan.dtype}`);
  return { dtype: DTYPE_CODE[plan.dtype], status: work.models + 1 };
}

/** Enqueues packing `work.merged` into `work.packed`, and its change into `work.stats`. */
export function runEncode(task: TensorTask, elements: number): void {
  const { values, merged, packed, stats: sums, status, engine } = task.work;
  engine.run(encode, {
    params: { elements, ...packing(task) },
    buffers: { values, merged, packed, sums, status },
  });
}

/**
 * Reads a packed tile back together with `more`.
 * Returns [bytes, status, ...more]: the tile's bytes and the non-finite counts (one per slot, then the output).
 */
export async function readTile(
  { work, plan }: TensorTask,
  elements: number,
  more: BufferRange[],
): Promise<[Uint8Array<ArrayBuffer>, Uint32Array, ...Uint8Array<ArrayBuffer>[]]> {
  if (!isWeightDtype(plan.dtype)) throw new Error(`${plan.name}: cannot encode ${plan.dtype}`);
  const byteLength = elements * weightBytes(plan.dtype);
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
  const part = [...(plan.base ? [plan.base] : []), ...plan.models.map(({ view }) => view)]
    .map(nonFinitePart)
    .find((ref) => ref !== undefined);
  if (part) {
    throw new AmalgamError(
      'NonFinite',
      `${plan.name}: ${part.key} of ${part.folder} holds values that are NaN or infinite.`,
      'Its training has diverged, or the file is damaged: take an earlier checkpoint of it, or another copy.',
    );
  }
  const slot = status.findIndex((n) => n > 0);
  const where =
    slot === 0
      ? 'the base'
      : slot > work.models
        ? 'the merged result'
        : `${plan.models[slot - 1]?.id ?? 'a contributor'}${otherKey(plan, slot - 1)}`;
  throw new AmalgamError(
    'NonFinite',
    `${plan.name}: ${counted(status[slot]!, 'value')} of ${where} ${status[slot] === 1 ? 'is' : 'are'} NaN or infinite.`,
    slot > work.models
      ? 'Choose a wider output dtype (bfloat16 or float32), smaller weights, or set non-finite values to be carried through.'
      : 'Check that model’s files, or set non-finite values to be carried through.',
  );
}

/** The key and file of a contributor's tensor, where it is stored under another than the tensor of the output. */
function otherKey({ name, models }: TensorPlan, index: number): string {
  const origin = models[index]?.view.origin;
  return origin === undefined || origin.key === name ? '' : ` (${origin.key} of ${origin.folder})`;
}
