import { AmalgamError } from '../../errors';
import type { Plan } from './plan';

/** @throws AmalgamError `PlanHasErrors` with the first error's words and remedy */
export function requireClean(plan: Plan): void {
  const errors = plan.problems.filter((p) => p.severity === 'error');
  const first = errors[0];
  if (!first) return;
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  throw new AmalgamError('PlanHasErrors', `${first.message}${more}`, first.remedy);
}
