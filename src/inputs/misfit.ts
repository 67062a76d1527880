/** An adapter whose tensors are of other sizes than the weights of the base. */
import { fullPrecisionName } from '../formats/hub-id';
import type { PlanProblem } from '../reports/plan';
import type { Adapter } from './adapter';

/** The problem of one tensor; those of one adapter are told together. */
export function misfit(adapter: Adapter, name: string, what: string): PlanProblem {
  return {
    severity: 'error',
    code: 'AdapterShape',
    message: `The tensors of ${adapter.path} do not fit the weights they are for.`,
    remedy: `Put the adapter on the base it was trained on${trainedOn(adapter)}.`,
    tensors: [`${name}: ${what}`],
  };
}

/** `, roberta-base` where the adapter says what it was trained on; of a copy in fewer bits the model that it was made from. */
export function trainedOn({ config: { baseModel } }: Adapter): string {
  if (baseModel === undefined) return '';
  const full = fullPrecisionName(baseModel);
  return baseModel.endsWith(full) ? `, ${baseModel}` : `, ${full} in full precision`;
}
