/** An adapter whose tensors are of other sizes than the weights of the base. */
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

/** `, roberta-base` where the adapter says what it was trained on. */
export function trainedOn({ config }: Adapter): string {
  return config.baseModel === undefined ? '' : `, ${config.baseModel}`;
}
