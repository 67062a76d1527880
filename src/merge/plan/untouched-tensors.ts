/** What needs no arithmetic: contributors that are the base itself, and tensors that can be copied byte for byte. */

import { sameTensor } from '../../inputs/row-map';
import type { TensorRef, TensorView } from '../../inputs/tensor-view';
import type { MergeMethod } from '../method';
import type { ResolvedParameters, TensorPlan } from './plan';

/** True when a contributor starts from the very bytes the base is, and the base is nothing but them. */
export function isOnBase(view: Omit<TensorView, 'onBase'>, base: TensorView | undefined): boolean {
  return base !== undefined && sameTensor(view.origin, base.origin) && isPlain(base);
}

/** True where the values are those of the file, which can then be copied; others are worked out, if only from their scales. */
export function isStored(ref: TensorRef): boolean {
  return ref.derived === undefined;
}

/** True for weights with nothing added to them. */
export function isPlain(view: Omit<TensorView, 'onBase'>): boolean {
  return view.lowRank === undefined && view.addend === undefined;
}

/**
 * The stored tensor that the result is equal to without any arithmetic, if there is one: the base where no
 * contributor adds anything to it (whatever the method: a model beside itself gives itself), or the one model that
 * counts in a weighted sum with coefficients that add up to 1.
 */
export function copiedTensor(
  method: MergeMethod,
  base: TensorView | undefined,
  models: TensorPlan['models'],
  parameters: ResolvedParameters,
): TensorRef | undefined {
  const { compute } = method;
  if (base && isPlain(base)) {
    const idle = (model: TensorPlan['models'][number]) => model.view.onBase && isPlain(model.view);
    if (models.every(idle)) return base.origin;
    if (compute.kind === 'delta') {
      const { lambda, select } = compute.preset(parameters);
      const adds = ({ parameters: p }: TensorPlan['models'][number]) =>
        p.weight !== 0 && (select === 'all' || p.density !== 0);
      if (lambda === 0 || models.every((model) => idle(model) || !adds(model))) return base.origin;
    }
  }
  if (compute.kind !== 'weights') return undefined;
  const coefficients = compute.coefficients(
    models.map((m) => m.parameters),
    parameters,
  );
  const counting = models.filter((_, i) => coefficients[i] !== 0);
  const origin = counting[0]?.view.origin;
  const sum = coefficients.reduce((total, c) => total + c, 0);
  const same = counting.every(({ view }) => sameTensor(view.origin, origin) && isPlain(view));
  return same && Math.abs(sum - 1) < 1e-12 ? origin : undefined;
}
