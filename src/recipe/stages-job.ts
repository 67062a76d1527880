/**
 * A recipe of several stages: each stage's output is the next one's input and never leaves the browser's storage. There
 * it lies under a scratch name, is read back and compared with what was hashed while it was written, and goes away at
 * the end, however that comes. The destination of the result is begun by the last stage only.
 */

import { AmalgamError } from '../errors';
import type { Recipe } from '../formats/recipe';
import type { OpenModels } from '../host/models';
import { type PlannedPhase, trackPhases } from '../host/progress-meter';
import { openModel } from '../inputs/opened-model';
import { methodById } from '../merge/methods';
import { requireClean } from '../merge/plan/plan';
import { makePlan } from '../merge/plan/recipe-plan';
import type { Progress } from '../reports/job';
import type { MergeReport, MergeRequest } from '../reports/merge';
import { fileSource } from '../sources/file-source';
import type { ModelFile } from '../sources/model-folder';
import { hashLike } from '../sources/tree-hash';
import { deleteOutput, listOutputs, openOutputFile } from '../write/finished-outputs';
import { STAGE_PREFIX, STAGES_LOCK } from './interrupted-runs';
import { mergePhases, runMerge } from './job';
import { planStages, stagedModels } from './stages-plan';
import type { ShardWatch } from './verification-job';

/**
 * Runs the stages of a recipe, and then the recipe.
 *
 * @param watch gets what the shards of the result get
 * @returns the report of the result, with those of the stages
 * @throws AmalgamError as `runMerge`, naming the stage; `IntegrityError` when an output is not read back as written
 */
export async function runStages(
  request: MergeRequest,
  models: OpenModels,
  signal: AbortSignal,
  onProgress: (progress: Progress) => void,
  watch?: ShardWatch,
): Promise<MergeReport> {
  const { recipe, ...rest } = request;
  const phases = trackPhases(await plannedPhases(recipe, models));
  const staged = stagedModels(models);
  const plan = (part: Recipe) => makePlan(part, (path) => staged.open(path), methodById);
  const stages = recipe.stages ?? [];
  const scratch: string[] = [];
  const reports: NonNullable<MergeReport['stagesMerged']> = [];
  return navigator.locks.request(STAGES_LOCK, { mode: 'shared' }, async () => {
    try {
      for (const [at, stage] of stages.entries()) {
        const output = `${STAGE_PREFIX}${crypto.randomUUID()}`;
        scratch.push(output);
        const begun = performance.now();
        const report = await runMerge(
          await plan(stage),
          { ...rest, resume: false, recipe: stage, destination: { kind: 'downloads', name: output } },
          staged,
          signal,
          // its tensors are not those of the result
          (progress) => onProgress({ ...progress, finished: [], step: step(stage.name, at, stages.length) }),
          phases,
        );
        staged.addStage(stage.name, await openStage(stage.name, output, report, signal));
        reports.push({ ...report, name: stage.name, seconds: (performance.now() - begun) / 1000 });
      }
      const report = await runMerge(
        await plan(recipe),
        { ...rest, recipe },
        staged,
        signal,
        (progress) =>
          onProgress({ ...progress, step: step(recipe.name ?? 'result', stages.length, stages.length) }),
        phases,
        watch,
      );
      const spent = phases.seconds();
      return {
        ...report,
        seconds: Object.values(spent).reduce((a, b) => a + b, 0),
        phases: spent,
        stagesMerged: reports,
      };
    } finally {
      for (const name of scratch) await deleteOutput(name);
    }
  });
}

function step(name: string, at: number, stages: number): NonNullable<Progress['step']> {
  return { name, at: at + 1, of: stages + 1 };
}

/** Every stage is planned before the first is merged: they are clean, and what all of them take is known. */
async function plannedPhases(recipe: Recipe, models: OpenModels): Promise<PlannedPhase[]> {
  const { stages, result } = await planStages(recipe, models, methodById, new Map());
  for (const { plan } of stages) requireClean(plan);
  if (result) requireClean(result);
  const plans = [...stages.map(({ plan }) => plan), ...(result ? [result] : [])];
  const names = new Set(stages.map(({ name }) => name));
  return plans.flatMap((plan) => {
    // the output of a stage is hashed while it is written
    const inputs = plan.inputs.filter(({ folder }) => !names.has(folder));
    return mergePhases({ ...plan, inputs }, models);
  });
}

/** The output of a stage as a model, once its shards were read back and have the hashes they were written with. */
async function openStage(name: string, output: string, report: MergeReport, signal: AbortSignal) {
  const finished = (await listOutputs()).find((found) => found.name === output && found.complete);
  const files: ModelFile[] = [];
  for (const { path, bytes } of finished?.files ?? []) {
    const file = await openOutputFile(output, path);
    files.push({ path, byteLength: bytes, open: () => fileSource(file, `${name}/${path}`) });
  }
  for (const { file, hash } of report.shards) {
    const stored = files.find((f) => f.path === file);
    if (stored && (await hashLike(hash, stored.open(), signal)) === hash) continue;
    throw new AmalgamError(
      'IntegrityError',
      `${file} of the stage ${name} is not in the browser’s storage as it was written.`,
      'Check the disk, free some space and merge again.',
    );
  }
  return openModel({ path: name, origin: { kind: 'local' }, files }, name);
}
