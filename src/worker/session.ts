/** The engine's state in its worker: the Hub it talks to, the models it has opened, the job it runs. */

import { runImportance } from '../calibration/importance-job';
import { workAhead } from '../calibration/job';
import { runCollapse, runMeasureDepth } from '../collapse/job';
import { runCompare } from '../compare/job';
import { openDatasets } from '../dataset/job';
import { AmalgamError } from '../errors';
import { runGeneration } from '../evaluate/generate-job';
import { runEvaluation } from '../evaluate/job';
import { runEvaluations } from '../evaluate/many-job';
import type { RunningOptions } from '../evaluate/running-model';
import { runExtractLora } from '../extract/job';
import { parseHubId } from '../formats/hub-id';
import type { Recipe } from '../formats/recipe';
import { backendFacts } from '../host/backends';
import { sampleCalibrationNames } from '../host/calibration-texts';
import { openModels } from '../host/models';
import { oneJob } from '../host/one-job';
import { followOtherTabs, takeOver, withRunLock } from '../host/run-lock';
import { storageFacts, sweepStorage } from '../host/storage';
import { requireClean } from '../merge/plan/require-clean';
import { runProfile } from '../merge/prediction/job';
import { AMALGAM_VERSION } from '../merge/version';
import { lookAtTarget, runPush } from '../push/job';
import { forgetInterrupted, interruptedRuns } from '../recipe/interrupted';
import { mergeRecipe, planRecipe, recipeFacts } from '../recipe/plan-and-merge';
import { sweepStages } from '../recipe/stages-job';
import { runVerify } from '../recipe/verify-job';
import { runVerifyTensor } from '../recipe/verify-tensor-job';
import type { BackendChoice } from '../reports/backend';
import type { EvaluateRequest, RunningProgress, RunTarget } from '../reports/evaluate';
import type { ModelFacts } from '../reports/models';
import { searchModels } from '../sources/hub';
import { hubAccount } from '../sources/hub-upload';
import { foldersFromFiles } from '../sources/local-folder';
import { sampleFolders, sampleTexts } from '../sources/sample';
import { openServedFolder } from '../sources/served-folder';
import { deleteBlob, listBlobs } from '../store/blobs';
import { deleteMasks, listMasks } from '../store/masks';
import { deleteOutput, listOutputs, openOutputFile } from '../write/finished-outputs';
import type { WorkerApi } from './api';
import { openHubSession } from './hub-session';

/** @param openServed opens a folder that the headless command names */
export function createSession(openServed: typeof openServedFolder = openServedFolder): WorkerApi {
  const hubSession = openHubSession();
  const { hub } = hubSession;
  const job = oneJob();
  const models = openModels(hub);
  const datasets = openDatasets(hub);
  const swept = sweepStorage().then(sweepStages);

  /** The plan of weights that are computed as they are read. @throws AmalgamError `RecipeInvalid` for several stages */
  const plan = async (recipe: Recipe) => {
    if (!recipe.stages) return planRecipe(recipe, models);
    throw new AmalgamError(
      'RecipeInvalid',
      'A recipe of several stages cannot be run before it is merged.',
      'Merge it, and open the result as a model.',
    );
  };

  const planTarget = async (target: RunTarget) => {
    const made = await plan('recipe' in target ? target.recipe : copyOf(target.model));
    requireClean(made);
    return { plan: made, exact: 'model' in target };
  };

  /** The same, with what its merge needs worked out ahead. */
  const readyTarget = async (
    target: RunTarget,
    engine: BackendChoice,
    signal: AbortSignal,
    onProgress: (progress: RunningProgress) => void,
  ) => {
    const { plan: made, exact } = await planTarget(target);
    const ahead = await workAhead(made, {
      models,
      engine,
      signal,
      onProgress: ({ done, total, secondsLeft }) =>
        onProgress({ stage: 'preparing', done, total, rate: 0, secondsLeft }),
    });
    return { plan: ahead?.plan ?? made, exact, ...(ahead?.prepared ? { prepared: ahead.prepared } : {}) };
  };

  /** What running a target takes: a single model is the plan of copying it. */
  const running = async (
    { target, engine }: Pick<EvaluateRequest, 'target' | 'engine'>,
    signal: AbortSignal,
    onProgress: (progress: RunningProgress) => void,
  ): Promise<RunningOptions> => {
    return { ...(await readyTarget(target, engine, signal, onProgress)), models, engine, signal, onProgress };
  };

  return {
    async facts() {
      await swept;
      return { ...(await backendFacts()), storage: await storageFacts(), version: AMALGAM_VERSION };
    },
    openSample: () => addAll(sampleFolders()),
    async openLocal(files) {
      const folders = foldersFromFiles(files);
      if (folders.length === 0) {
        throw new AmalgamError(
          'NotFound',
          `No model is among ${files.length === 1 ? 'this file' : `these ${files.length} files`}: there is no config.json, adapter_config.json or *.safetensors.`,
          'Choose the folder that directly holds the model’s files.',
        );
      }
      return addAll(folders);
    },
    async openHub(idOrUrl) {
      const { id, revision } = parseHubId(idOrUrl, hub().url);
      return models.addHub(id, revision);
    },
    openServed: async (ref, url) => models.add(await openServed(ref, url), ref),
    setHub: (change) => hubSession.setHub(change),
    beginSignIn: (request) => hubSession.beginSignIn(request),
    finishSignIn: (answer) => hubSession.finishSignIn(answer),
    hubWaits: (onWaits) => hubSession.hubWaits(onWaits),
    searchHub: (query) => searchModels(hub(), query),
    plan: (recipe) => recipeFacts(recipe, models),
    merge: (request, onProgress) =>
      job.run(async (signal) =>
        withRunLock(request, job.cancel, onProgress, (tell) => mergeRecipe(request, models, signal, tell)),
      ),
    profile: (request, onProgress) =>
      job.run(async (signal) => runProfile(await plan(request.recipe), request, models, signal, onProgress), {
        yields: true,
      }),
    verify: (request, onProgress) =>
      job.run(async (signal) =>
        runVerify(request, (again) => mergeRecipe(again, models, signal, onProgress), models, signal),
      ),
    verifyTensor: ({ recipe, tensor }, onProgress) =>
      job.run(async (signal) => {
        const ready = await readyTarget({ recipe }, 'auto', signal, onProgress);
        return runVerifyTensor(tensor, { ...ready, models, signal, onProgress });
      }),
    evaluate: (request, onProgress) =>
      job.run(async (signal) => runEvaluation(request, await running(request, signal, onProgress))),
    evaluateMany: (request, onProgress) =>
      job.run((signal) =>
        runEvaluations(request, {
          plan: (target) => readyTarget(target, request.engine, signal, onProgress),
          models,
          signal,
          onProgress,
        }),
      ),
    generate: (request, onProgress) =>
      job.run(async (signal) => runGeneration(request, await running(request, signal, onProgress))),
    compare: (request, onProgress) => job.run((signal) => runCompare(request, models, signal, onProgress)),
    extractLora: (request, onProgress) =>
      job.run((signal) => runExtractLora(request, models, signal, onProgress)),
    measureDepth: (request, onProgress) =>
      job.run(async (signal) =>
        runMeasureDepth(request, await plan(copyOf(request.model)), models, signal, onProgress),
      ),
    collapse: (request, onProgress) =>
      job.run(async (signal) =>
        runCollapse(request, await plan(copyOf(request.model)), models, signal, onProgress),
      ),
    openDataset: (idOrUrl) => datasets.open(idOrUrl),
    datasetColumns: (ref, path) => datasets.columns(ref, path),
    readDataset: (request, onProgress) => job.run((signal) => datasets.read(request, signal, onProgress)),
    sampleTexts: () => sampleTexts(),
    calibrationTexts: async () => sampleCalibrationNames,
    async addCalibrationText(name, text) {
      models.texts.add(name, text);
    },
    importance: (request, onProgress) =>
      job.run(async (signal) =>
        runImportance(request, await plan(request.recipe), models, signal, onProgress),
      ),
    hubAccount: () => hubAccount(hub()),
    pushTarget: (repo, source) => lookAtTarget(hub(), repo, source),
    push: (request, onProgress) => job.run((signal) => runPush(request, hub(), signal, onProgress)),
    async cancel() {
      job.cancel();
    },
    async interrupted() {
      await swept;
      return interruptedRuns();
    },
    discardInterrupted: (destination) => forgetInterrupted(destination),
    follow: (onRun) => followOtherTabs(onRun),
    takeOver: () => takeOver(),
    outputFile: (name, file) => openOutputFile(name, file),
    async cache() {
      const [blobs, outputs, masks] = await Promise.all([listBlobs(), listOutputs(), listMasks()]);
      return {
        blobs: blobs.map(({ sha256, bytes, name }) => ({ sha256, bytes, name })),
        outputs: outputs.map(({ name, bytes, complete }) => ({ name, bytes, complete })),
        masks,
      };
    },
    async deleteCached(kind, id) {
      if (kind === 'masks') await deleteMasks(id);
      else await (kind === 'blob' ? deleteBlob(id) : deleteOutput(id));
    },
  };

  async function addAll(folders: Parameters<typeof models.add>[0][]): Promise<ModelFacts[]> {
    const facts: ModelFacts[] = [];
    for (const folder of folders) facts.push(await models.add(folder));
    return facts;
  }
}

/** The recipe of a model as it is. */
function copyOf(model: string): Recipe {
  return {
    mergeMethod: 'passthrough',
    models: [{ model, parameters: {} }],
    parameters: {},
    amalgam: {},
  };
}
