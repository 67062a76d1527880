/** A mixture of experts, from its recipe to a committed model: planned alone, or written as a merge is. */
import { namedFiles } from '../../formats/gguf-type';
import type { OpenModels } from '../../host/models';
import { progressMeter } from '../../host/progress-meter';
import { warningsOf } from '../../inputs/problems';
import { type Plan, requireClean } from '../../merge/plan/plan';
import { planReport } from '../../merge/plan/plan-report';
import { runMerge } from '../../recipe/job';
import type { Progress } from '../../reports/job';
import { gateRows, gateWarnings, randomRows } from './gates';
import { planMoe } from './plan';
import { readsPrompts } from './recipe';
import type { MoeFigures, MoePlanReport, MoePlanRequest, MoeReport, MoeRequest } from './report';

async function runPlanMoe(
  request: MoePlanRequest,
  models: OpenModels,
  _signal: AbortSignal,
  _onProgress: (progress: Progress) => void,
): Promise<MoePlanReport> {
  const { plan, ...made } = await planMoe(request, models);
  return { ...planReport(plan), elsewhere: [], ...figuresOf(made) };
}

function figuresOf({ title, experts, expertsPerToken, parameters }: MoeFigures): MoeFigures {
  return { title, experts, expertsPerToken, parameters };
}

/**
 * Makes the routers, and writes the mixture.
 * @param copyPlan the plan of copying a model
 * @throws AmalgamError as `planMoe`, `gateRows` and a merge
 */
async function runMoe(
  request: MoeRequest,
  models: OpenModels,
  signal: AbortSignal,
  onProgress: (progress: Progress) => void,
  copyPlan: (model: string) => Promise<Plan>,
): Promise<MoeReport> {
  const { recipe, engine, destination, resume } = request;
  const { plan, ...made } = await planMoe(request, models);
  requireClean(plan);
  const { architecture, gates } = made;
  const meter = progressMeter(onProgress, () => undefined);
  const rows = readsPrompts(recipe)
    ? await gateRows(recipe, await copyPlan(recipe.baseModel), {
        ...{ models, engine, signal },
        onProgress({ done, total }) {
          meter.begin('downloading', total);
          meter.advance(done, recipe.baseModel);
        },
      })
    : randomRows(recipe, architecture.blocks.length, architecture.hidden);
  for (const [layer, own] of rows.entries()) gates[layer]!.push(...own);
  const merge = { recipe: plan.recipe, engine, destination, ...(resume && { resume }) };
  const { recipe: _, recipeSha256: __, ...report } = await runMerge(plan, merge, models, signal, onProgress);
  const { outputFiles, problems } = planReport(plan);
  return {
    ...report,
    recipe: plan.madeBy!.text,
    figures: figuresOf(made),
    notes: [...gateWarnings(recipe, gates), ...warningsOf(problems)],
    files: 'name' in destination ? namedFiles(outputFiles, destination.name) : outputFiles,
  };
}

/** The calls of the tool. */
export const jobs = { planMoe: runPlanMoe, writeMoe: runMoe } as const;
