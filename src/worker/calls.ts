/**
 * Everything the worker can be asked for, by name: one row a call. The window's half has their types (client.ts), what
 * they take and give stands in `reports`: plain serialisable data. A function that is told of progress comes last. What only
 * a job needs is loaded with the job, so that the first plan does not wait for it.
 */

import type { Datasets } from '../dataset/job';
import { AmalgamError } from '../errors';
import type { RunningOptions } from '../evaluate/running-model';
import { parseHubId } from '../formats/hub-id';
import type { Recipe } from '../formats/recipe';
import { backendFacts } from '../host/backend-facts';
import { sampleCalibrationNames } from '../host/calibration-texts';
import { openModels } from '../host/models';
import { oneJob } from '../host/one-job';
import { followOtherTabs, takeOver, withRunLock } from '../host/run-lock';
import { cleanStorage, storageFacts } from '../host/storage';
import { requireClean } from '../merge/plan/require-clean';
import { AMALGAM_VERSION } from '../merge/version';
import { forgetInterrupted, interruptedRuns } from '../recipe/interrupted';
import { copyOf, mergeRecipe, planToRun, recipeFacts } from '../recipe/plan-and-merge';
import { cleanStages } from '../recipe/stage-outputs';
import type { BackendChoice } from '../reports/backend';
import type {
  CollapseProgress,
  CollapseReport,
  CollapseRequest,
  MeasureDepthReport,
  MeasureDepthRequest,
} from '../reports/collapse';
import type {
  CompareProgress,
  CompareReport,
  CompareRequest,
  ExtractLoraReport,
  ExtractLoraRequest,
} from '../reports/compare';
import type { DatasetRequest } from '../reports/dataset';
import type {
  EvaluateManyReport,
  EvaluateManyRequest,
  EvaluateReport,
  EvaluateRequest,
  GenerateReport,
  GenerateRequest,
  RunningProgress,
  RunTarget,
} from '../reports/evaluate';
import type { CalibrationText, ImportanceReport, ImportanceRequest } from '../reports/importance';
import type { Progress } from '../reports/job';
import type {
  InterruptedRun,
  MergeReport,
  MergeRequest,
  RunElsewhere,
  VerifyReport,
  VerifyRequest,
  VerifyTensorReport,
  VerifyTensorRequest,
} from '../reports/merge';
import type { HubHit, HubQuery, LocalFile, ModelFacts } from '../reports/models';
import type { MaskOverlap, OverlapProgress, OverlapRequest } from '../reports/overlap';
import type { PlanFacts } from '../reports/plan';
import type { ProfileProgress, ProfileReport, ProfileRequest } from '../reports/profile';
import type { PushProgress, PushRequest, PushSource } from '../reports/push';
import type { SearchProgress, SearchReport, SearchRequest } from '../reports/search';
import type { ScoreTasksReport, ScoreTasksRequest, TasksProgress } from '../reports/tasks';
import type { CacheFacts, WorkerFacts } from '../reports/worker';
import { fileSource } from '../sources/file-source';
import { searchModels } from '../sources/hub';
import { foldersFromFiles } from '../sources/local-folder';
import { sampleFolders, sampleTexts } from '../sources/sample';
import { openServedFolder } from '../sources/served-folder';
import { sha256Of } from '../sources/sha256';
import { deleteBlob, listBlobs } from '../store/blobs';
import { deleteMasks, listMasks } from '../store/masks';
import { deleteOutput, listOutputs, openOutputFile } from '../write/finished-outputs';
import { openHubSession } from './hub-session';

/** The calls, as their callers see them. */
export type WorkerCalls = ReturnType<typeof createCalls>;

type Tell<T> = (progress: T) => void;

/**
 * The calls of a new session, which has the Hub it talks to, the models it has opened and the job it runs.
 * @param openServed opens a folder that the headless command names
 */
export function createCalls(openServed: typeof openServedFolder = openServedFolder) {
  const hubSession = openHubSession();
  const { hub } = hubSession;
  const job = oneJob();
  const models = openModels(hub);
  let opened: Datasets | undefined;
  const datasets = async () => {
    opened ??= (await import('../dataset/job')).openDatasets(hub);
    return opened;
  };
  const cleaned = cleanStorage().then(cleanStages);

  /** The plan of weights that are computed as they are read. @throws AmalgamError `RecipeInvalid` for several stages */
  const plan = async (recipe: Recipe) => {
    if (!recipe.stages) return planToRun(recipe, models);
    throw new AmalgamError(
      'RecipeInvalid',
      'A recipe of several stages cannot be run before it is merged.',
      'Merge it, and open the result as a model.',
    );
  };

  const planTarget = async (target: RunTarget) => {
    const made = await plan('recipe' in target ? target.recipe : copyOf(target.model));
    requireClean(made);
    // nobody writes the sum of a base and its LoRA
    return { plan: made, exact: 'model' in target || target.recipe.amalgam.output === 'adapter' };
  };

  /** The same, with what its merge needs worked out ahead. */
  const readyTarget = async (
    target: RunTarget,
    engine: BackendChoice,
    signal: AbortSignal,
    onProgress: (progress: RunningProgress) => void,
  ) => {
    const { plan: made, exact } = await planTarget(target);
    const { calibrate } = await import('../calibration/job');
    const ahead = await calibrate(made, {
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
    async facts(): Promise<WorkerFacts> {
      await cleaned;
      return { ...(await backendFacts()), storage: await storageFacts(), version: AMALGAM_VERSION };
    },
    /** The sample family that ships inside, opened. */
    openSample: () => addAll(sampleFolders()),
    /** Opens every model folder found in the files (a folder with a config or weights is a model). */
    async openLocal(files: LocalFile[]) {
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
    /** Opens `owner/name[@revision]` or a Hub URL; the revision is resolved to a commit and pinned. */
    async openHub(idOrUrl: string) {
      const { id, revision } = parseHubId(idOrUrl, hub().url);
      return models.addHub(id, revision);
    },
    /** Opens a folder that the page's own origin serves under `url` (headless only), under the given recipe name. */
    openServed: async (ref: string, url: string) => models.add(await openServed(ref, url), ref),
    setHub: hubSession.setHub,
    beginSignIn: hubSession.beginSignIn,
    finishSignIn: hubSession.finishSignIn,
    hubWaits: hubSession.hubWaits,
    searchHub: (query: HubQuery): Promise<HubHit[]> => searchModels(hub(), query),
    plan: (recipe: Recipe): Promise<PlanFacts> => recipeFacts(recipe, models),
    merge: (request: MergeRequest, onProgress: Tell<Progress>): Promise<MergeReport> =>
      job.run(async (signal) =>
        withRunLock(request, job.cancel, onProgress, (tell) => mergeRecipe(request, models, signal, tell)),
      ),
    /** The statistics pass: task vectors measured, nothing merged. Any other job stops it (`Cancelled`). */
    profile: (request: ProfileRequest, onProgress: Tell<ProfileProgress>): Promise<ProfileReport> =>
      job.run(
        async (signal) => {
          const { runProfile } = await import('../merge/prediction/job');
          return runProfile(await plan(request.recipe), request, models, signal, onProgress);
        },
        { yields: true },
      ),
    /** Merges again what a merged model's metadata says, keeps nothing, and compares the bytes. */
    verify: (request: VerifyRequest, onProgress: Tell<Progress>): Promise<VerifyReport> =>
      job.run(async (signal) =>
        (await import('../recipe/verify-job')).runVerify(
          request,
          (again, watch) => mergeRecipe(again, models, signal, onProgress, watch),
          models,
          signal,
        ),
      ),
    /** Computes one tensor of a merge on both engines. */
    verifyTensor: (
      { recipe, tensor }: VerifyTensorRequest,
      onProgress: Tell<RunningProgress>,
    ): Promise<VerifyTensorReport> =>
      job.run(async (signal) => {
        const ready = await readyTarget({ recipe }, 'auto', signal, onProgress);
        const { runVerifyTensor } = await import('../recipe/verify-tensor-job');
        return runVerifyTensor(tensor, { ...ready, models, signal, onProgress });
      }),
    /** Perplexity of a model or of a merge that is not written. */
    evaluate: (request: EvaluateRequest, onProgress: Tell<RunningProgress>): Promise<EvaluateReport> =>
      job.run(async (signal) => {
        const { runEvaluation } = await import('../evaluate/job');
        return runEvaluation(request, await running(request, signal, onProgress));
      }),
    /** Several models and merges on the same texts, side by side. */
    evaluateMany: (
      request: EvaluateManyRequest,
      onProgress: Tell<RunningProgress>,
    ): Promise<EvaluateManyReport> =>
      job.run(async (signal) =>
        (await import('../evaluate/many-job')).runEvaluations(request, {
          plan: (target) => readyTarget(target, request.engine, signal, onProgress),
          models,
          signal,
          onProgress,
        }),
      ),
    /** Accuracy of several models and merges on tasks, item by item as they are done. */
    scoreTasks: (request: ScoreTasksRequest, onProgress: Tell<TasksProgress>): Promise<ScoreTasksReport> =>
      job.run(async (signal) =>
        (await import('../evaluate/task-job')).runTasks(request, {
          plan: (target) => readyTarget(target, request.engine, signal, onProgress),
          models,
          rows: (await datasets()).rows,
          signal,
          onProgress,
        }),
      ),
    /** Weights, λ and density of a recipe searched for on texts or tasks; nothing is written. */
    search: (request: SearchRequest, onProgress: Tell<SearchProgress>): Promise<SearchReport> =>
      job.run(async (signal) =>
        (await import('../recipe/search-job')).runSearch(request, {
          measure: async (many) =>
            (await import('../evaluate/many-job')).runEvaluations(many, {
              plan: (target) => readyTarget(target, many.engine, signal, () => undefined),
              models,
              signal,
              onProgress: () => undefined,
            }),
          score: async (request) =>
            (await import('../evaluate/task-job')).runTasks(request, {
              plan: (target) => readyTarget(target, request.engine, signal, () => undefined),
              models,
              rows: (await datasets()).rows,
              signal,
              onProgress: () => undefined,
            }),
          signal,
          onProgress,
        }),
      ),
    /** The tasks that ship. */
    shippedTasks: async () => (await import('../tasks/shipped')).shippedTasks(),
    /** A conversation as the output's chat template writes it; null where it has none. */
    chatPreview: async (recipe: Recipe): Promise<string | null> => {
      const { chatPreview } = await import('../evaluate/chat-preview');
      return chatPreview((await planTarget({ recipe })).plan, models, new AbortController().signal);
    },
    generate: (request: GenerateRequest, onProgress: Tell<RunningProgress>): Promise<GenerateReport> =>
      job.run(async (signal) => {
        const { runGeneration } = await import('../evaluate/generate-job');
        return runGeneration(request, await running(request, signal, onProgress));
      }),
    /** How two models differ, tensor by tensor. */
    compare: (request: CompareRequest, onProgress: Tell<CompareProgress>): Promise<CompareReport> =>
      job.run(async (signal) =>
        (await import('../compare/job')).runCompare(request, models, signal, onProgress),
      ),
    /** How far the masks of one model agree in two recipes; nothing is merged. */
    overlap: (request: OverlapRequest, onProgress: Tell<OverlapProgress>): Promise<MaskOverlap[]> =>
      job.run(async (signal) => {
        const plan = (recipe: Recipe) => readyTarget({ recipe }, request.engine, signal, () => undefined);
        const { runMaskOverlap } = await import('../compare/mask-overlap');
        return runMaskOverlap(request, { plan, models, signal, onProgress });
      }),
    /** The difference of two models as a LoRA adapter in PEFT's format. */
    extractLora: (
      request: ExtractLoraRequest,
      onProgress: Tell<CompareProgress>,
    ): Promise<ExtractLoraReport> =>
      job.run(async (signal) =>
        (await import('../extract/job')).runExtractLora(request, models, signal, onProgress),
      ),
    /** Which layers could go: block influence, angular distances, similarity curve. Nothing is written. */
    measureDepth: (
      request: MeasureDepthRequest,
      onProgress: Tell<CollapseProgress>,
    ): Promise<MeasureDepthReport> =>
      job.run(async (signal) =>
        (await import('../collapse/job')).runMeasureDepth(
          request,
          await plan(copyOf(request.model)),
          models,
          signal,
          onProgress,
        ),
      ),
    /** A shallower model: layers collapsed, measured, and written as a checkpoint. */
    collapse: (request: CollapseRequest, onProgress: Tell<CollapseProgress>): Promise<CollapseReport> =>
      job.run(async (signal) =>
        (await import('../collapse/job')).runCollapse(
          request,
          await plan(copyOf(request.model)),
          models,
          signal,
          onProgress,
        ),
      ),
    /** Opens a dataset on the Hub, `owner/name[@revision]` or its page's address, pinned to a commit. */
    openDataset: async (idOrUrl: string) => (await datasets()).open(idOrUrl),
    /** The text columns of a file of a dataset. */
    datasetColumns: async (ref: string, path: string) => (await datasets()).columns(ref, path),
    /** Text out of a file of a dataset; of a large file only the parts that are needed are read. */
    readDataset: (request: DatasetRequest, onProgress: Tell<RunningProgress>) =>
      job.run(async (signal) => (await datasets()).read(request, signal, onProgress)),
    /** The evaluation texts of the sample family. */
    sampleTexts: () => sampleTexts(),
    /** Names of the sample's calibration texts, known without being added. */
    calibrationTexts: async () => sampleCalibrationNames,
    /** Makes a text known by the name that a recipe’s `calibration` uses. */
    async addCalibrationText(name: string, text: CalibrationText) {
      models.texts.add(name, text);
    },
    /** Masks of what matters in the contributors of a recipe, written as files. */
    importance: (request: ImportanceRequest, onProgress: Tell<Progress>): Promise<ImportanceReport> =>
      job.run(async (signal) =>
        (await import('../calibration/importance-job')).runImportance(
          request,
          await plan(request.recipe),
          models,
          signal,
          onProgress,
        ),
      ),
    /** Whom the token belongs to. @throws Unauthorized without a token, or with one the hub does not know */
    hubAccount: async () => (await import('../sources/hub-upload')).hubAccount(hub()),
    /** Looks at the repository that an output would go to. */
    pushTarget: async (repo: string, source: PushSource) =>
      (await import('../push/job')).lookAtTarget(hub(), repo, source),
    /**
     * Sends a finished output to a model repository, created where it is missing, as one commit at the end.
     * @throws DestinationNotEmpty when files would be replaced that `replace` does not name
     */
    push: (request: PushRequest, onProgress: Tell<PushProgress>) =>
      job.run(async (signal) => (await import('../push/job')).runPush(request, hub(), signal, onProgress)),
    /**
     * Cancels the running job; it rejects with `Cancelled` and leaves nothing that looks complete. What a merge has
     * written stays to be resumed where its destination can keep it, and can be discarded.
     */
    async cancel() {
      job.cancel();
    },
    /** Merges that were cut off and can go on, none of them running, the newest first. */
    async interrupted() {
      await cleaned;
      return interruptedRuns();
    },
    /** Forgets an interrupted merge. Files in a picked folder stay. */
    discardInterrupted: (destination: InterruptedRun['destination']) => forgetInterrupted(destination),
    /** Follows the merge of another tab: what it does, and null when there is none. Never resolves. */
    follow: (onRun: Tell<RunElsewhere | null>) => followOtherTabs(onRun),
    /** Makes the tab that merges stop; its merge can then be resumed here. @throws Busy when it does not */
    takeOver: () => takeOver(),
    /** A finished output file of a `downloads` merge, disk-backed. */
    outputFile: (name: string, file: string) => openOutputFile(name, file),
    /** The plain sha256 of a file, which the Hub and `sha256sum` know it by. */
    sha256: (file: File): Promise<string> => sha256Of(fileSource(file, file.name)),
    async cache(): Promise<CacheFacts> {
      const [blobs, outputs, masks] = await Promise.all([listBlobs(), listOutputs(), listMasks()]);
      return {
        blobs: blobs.map(({ sha256, bytes, name }) => ({ sha256, bytes, name })),
        outputs: outputs.map((o) => ({ ...o, files: o.files.map(({ path }) => path) })),
        masks,
      };
    },
    async deleteCached(kind: 'blob' | 'output' | 'masks', id: string) {
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
