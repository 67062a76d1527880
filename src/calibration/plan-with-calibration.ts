/** Problems and device memory of a plan's calibration. */

import type { OpenModels } from '../host/models';
import { methodById } from '../merge/methods';
import { imatrixChoice, importanceKind } from '../merge/plan/importance-kind';
import type { Plan } from '../merge/plan/plan';
import type { Architecture } from '../models/architecture';
import { resolveArchitecture } from '../models/resolution';
import { linearTensors } from './linear-tensors';
import {
  averagedLayers,
  calibrationBytes,
  calibrationChoice,
  calibrationProblems,
  matchOf,
} from './plan-problems';

/** The plan with the problems and the memory of its calibration. Reads the config only. */
export async function withCalibrationProblems(plan: Plan, opened: OpenModels): Promise<Plan> {
  if (plan.tensors.length === 0) return plan;
  let architecture: Architecture | undefined;
  const kind = importanceKind(plan, methodById);
  const imatrix = imatrixChoice(plan, methodById);
  const problems = await calibrationProblems(plan, {
    kind,
    imatrix,
    hasText: (name) => opened.texts.has(name),
    async architecture() {
      const { plannedConfig } = await import('../evaluate/running-model');
      architecture = resolveArchitecture(await plannedConfig(plan, opened, new AbortController().signal));
      return architecture;
    },
  });
  if (!architecture && problems.length === 0) return plan;
  const order = ['error', 'warning', 'note'];
  if (architecture && kind === 'solution' && !plan.recipe.slices) {
    const solved = new Set(linearTensors(architecture, plan).flatMap((of) => of.map((t) => t.plan.name)));
    problems.push(...averagedLayers(plan, solved, architecture.final.tied));
  }
  const all = [...plan.problems, ...problems];
  const choice = calibrationChoice(plan);
  const models = architecture && kind ? calibrationBytes(architecture, choice, matchOf(plan)) : 0;
  const output =
    architecture && imatrix ? calibrationBytes(architecture, { ...choice, texts: new Map() }) : 0;
  return {
    ...plan,
    problems: all.sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity)),
    peakBytes: Math.max(plan.peakBytes, models, output),
  };
}
