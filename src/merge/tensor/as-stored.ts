import type { TensorRef, TensorView } from '../../inputs/tensor-view';
import type { TensorPlan } from '../plan/plan';

/** Whether all that a tensor is made from is read as it is stored, and nothing is added to it. */
export function isAsStored({ base, copy, models }: TensorPlan): boolean {
  const isWhole = ({ rows, derived }: TensorRef) => !rows && !derived;
  const holds = ({ origin, lowRank, addend }: TensorView) => !lowRank && !addend && isWhole(origin);
  return (!base || holds(base)) && (!copy || isWhole(copy)) && models.every(({ view }) => holds(view));
}
