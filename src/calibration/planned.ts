/** What a plan says of the work ahead of it. */

import { plannedConfig } from '../evaluate/running-model';
import type { OpenModels } from '../host/models';
import { methodById } from '../merge/methods';
import type { Plan } from '../merge/plan/plan';
import type { Architecture } from '../models/architecture';
import { resolveArchitecture } from '../models/resolve';
import { aheadBytes, aheadProblems, calibrationChoice } from './plan-problems';
import { importanceKind } from './prepare';

/** The plan with the problems and the memory of the work ahead of it. Reads the config only. */
export async function withAheadProblems(plan: Plan, models: OpenModels): Promise<Plan> {
  if (plan.tensors.length === 0) return plan;
  let architecture: Architecture | undefined;
  const kind = importanceKind(plan, methodById);
  const problems = await aheadProblems(plan, {
    kind,
    hasText: (name) => models.texts.has(name),
    async architecture() {
      architecture = resolveArchitecture(await plannedConfig(plan, models, new AbortController().signal));
      return architecture;
    },
  });
  if (!architecture && problems.length === 0) return plan;
  const order = ['error', 'warning', 'note'];
  const all = [...plan.problems, ...problems];
  const bytes = architecture && kind ? aheadBytes(architecture, calibrationChoice(plan)) : 0;
  return {
    ...plan,
    problems: all.sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity)),
    peakBytes: Math.max(plan.peakBytes, bytes),
  };
}
