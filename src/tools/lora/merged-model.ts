/** The model that a plan would write, as one side of a difference: a tensor is merged when it is read, in F32 and whole. */
import type { Backend } from '../../backend/backend';
import { castPlans, openMerged } from '../../evaluate/planned-weights';
import { isWeightDtype } from '../../formats/dtype';
import type { Model, ModelTensor } from '../../inputs/model';
import { derivedTensor } from '../../inputs/row-map';
import type { ReadTensor } from '../../inputs/stored-tensor';
import type { Plan, TensorPlan } from '../../merge/plan/plan';
import { storedInputs } from '../../merge/plan/plan-bytes';
import type { Prepared } from '../../merge/tensor/prepared';
import { tensorKey } from '../../models/families';

/**
 * @param base whose tensors the merge has
 * @param read of the inputs of the plan
 */
export async function openMergedModel(
  plan: Plan,
  base: Model,
  engine: Backend,
  read: ReadTensor,
  prepared: Prepared | undefined,
): Promise<{ model: Model; close(): void }> {
  const planned = castPlans(plan.tensors).map((tensor) =>
    tensor.copy || !isWeightDtype(tensor.dtype) ? tensor : { ...tensor, dtype: 'F32' as const },
  );
  const computed = planned.filter(({ copy }) => !copy);
  const merged = await openMerged(plan, computed, [engine], read, prepared);
  const family = base.checkpoint.family;
  const viewOf = (tensor: TensorPlan): ModelTensor['view'] => {
    if (tensor.copy) return { origin: tensor.copy };
    const place = { folder: plan.cut?.base ?? base.ref, file: 'merged', key: tensor.name };
    const origin = derivedTensor(place, tensor.shape, storedInputs(tensor), async () => {
      const bytes = await merged.read(tensor, 0, 4 * tensor.elements);
      const values = new Float32Array(bytes.buffer, bytes.byteOffset, tensor.elements);
      return async (begin, end) => values.subarray(begin, end);
    });
    return { origin };
  };
  const tensors = new Map(
    planned.map((tensor): [string, ModelTensor] => {
      const { name, shape, dtype } = tensor;
      return [tensorKey(name, family), { name, shape, dtype, view: viewOf(tensor) }];
    }),
  );
  const hasHead = base.head !== undefined && tensors.has(base.head);
  return {
    model: { ...base, ref: 'the merge', tensors, tied: base.tied && !hasHead },
    close: () => merged.rest(),
  };
}
