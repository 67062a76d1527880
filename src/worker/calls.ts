/**
 * Every call of the worker, by name: one row each. The window's half has their types (client.ts), arguments and results
 * stand in `reports`: plain serializable data. A progress callback comes last. Code of a job alone is loaded with the
 * job, so that the first plan does not wait for it.
 */

import type { Datasets } from '../dataset/job';
import { AmalgamError } from '../errors';
import { parseHubId } from '../formats/hub-id';
import { counted } from '../formats/quantity';
import { copyOf, type Recipe } from '../formats/recipe';
import { backendInfo } from '../host/backend-info';
import { type OpenModels, openModels, sampleCalibrationNames } from '../host/models';
import { followOtherTabs, oneJob, takeOver, withRunLock } from '../host/run-lock';
import { cleanStorage, storageInfo } from '../host/storage';
import { type Plan, requireClean } from '../merge/plan/plan';
import { AMALGAM_VERSION } from '../merge/version';
import { cleanStages, forgetInterrupted, interruptedRuns } from '../recipe/interrupted-runs';
import { mergeRecipe, planToRun, recipePlanReport } from '../recipe/recipe-jobs';
import type { BackendChoice } from '../reports/backend';
import type { DatasetRequest } from '../reports/dataset';
import type { DeltaStatisticsProgress, DeltaStatisticsRequest } from '../reports/delta-statistics';
import type {
  AnswersRequest,
  EffectsRequest,
  EvaluateManyRequest,
  GenerateRequest,
  LivePerplexityRequest,
  MemoryRequest,
  RunningProgress,
  RunTarget,
} from '../reports/evaluate';
import type { FindBestProgress, FindBestRequest } from '../reports/find-best';
import type { CalibrationText } from '../reports/importance';
import { amountOf, type Progress } from '../reports/job';
import type { MergeRequest, RunElsewhere, VerifyRequest } from '../reports/merge';
import type { HubQuery, LocalFile, ModelInfo } from '../reports/models';
import type { PushProgress, PushRequest, PushSource } from '../reports/push';
import type { ScoreTasksRequest, TasksProgress } from '../reports/tasks';
import type { CacheInfo, WorkerInfo } from '../reports/worker';
import { fileSource } from '../sources/file-source';
import type { ModelFolder } from '../sources/model-folder';
import { sampleFolders, sampleTexts } from '../sources/sample';
import { sha256Of } from '../sources/sha256';
import { deleteBlob, listBlobs } from '../store/blobs';
import type { ToolCalls } from '../tools';
import { TOOL_CALLS } from '../tools/calls';
import { deleteOutput, listOutputs, openOutputFile } from '../write/finished-outputs';
import { openHubSession } from './hub-session';
import type { LiveTexts } from './live-text';

/** The calls, as their callers see them. */
export type WorkerCalls = ReturnType<typeof createCalls>;

type Report<T> = (progress: T) => void;
/**
 * The calls of a new session, which has the Hub it talks to, the models it has opened and the job it runs.
 * @param openDisk opens a folder of the machine: of the command alone
 */
export function createCalls(openDisk?: (ref: string, folder: string) => ModelFolder) {
  const hubSession = openHubSession();
  const { hub, ...hubCalls } = hubSession;
  const slot = oneJob();
  let live: LiveTexts | undefined;
  const job: typeof slot = {
    ...slot,
    run: (work, options) =>
      slot.run(async (signal) => {
        live?.release();
        return work(signal);
      }, options),
  };
  const liveTexts = async () => {
    live ??= (await import('./live-text')).openLiveText();
    return live;
  };
  const models = openModels(hub);
  let opened: Datasets | undefined;
  const datasets = async () => {
    opened ??= (await import('../dataset/job')).openDatasets(hub);
    return opened;
  };
  const clean = async () => {
    await cleanStorage();
    await cleanStages();
  };
  const cleaned = clean();
  cleaned.catch(() => undefined); // thrown by the calls that wait for it

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
    // no backend can write the sum of a base and its LoRA
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
    const calibrated = await calibrate(made, {
      models,
      engine,
      signal,
      onProgress: (progress) =>
        onProgress({
          ...{ phase: 'preparing', ...amountOf(progress), rate: 0 },
          secondsLeft: progress.secondsLeft,
        }),
    });
    return {
      plan: calibrated?.plan ?? made,
      exact,
      ...(calibrated?.prepared ? { prepared: calibrated.prepared } : {}),
    };
  };

  /** Arguments of a job that measures several targets. */
  const targetsOf = <T extends Report<RunningProgress>>(
    { engine }: { engine: BackendChoice },
    signal: AbortSignal,
    onProgress: T,
  ) => ({
    plan: (target: RunTarget) => readyTarget(target, engine, signal, onProgress),
    models,
    signal,
    onProgress,
  });
  const tasksOf = async <T extends Report<RunningProgress>>(
    request: { engine: BackendChoice },
    signal: AbortSignal,
    onProgress: T,
  ) => ({ ...targetsOf(request, signal, onProgress), rows: (await datasets()).rows });

  /** What finding the best merge needs. */
  const bestHost = async <P>(signal: AbortSignal, onProgress: Report<P>) => ({
    ...{ plan: planTarget, models, signal, onProgress },
    rows: (await datasets()).rows,
  });

  return {
    /** Answers as soon as the worker comes to it. */
    async ping() {},
    ...callsOfTools(job, models, (model) => plan(copyOf(model))),
    async info(): Promise<WorkerInfo> {
      await cleaned;
      return {
        ...(await backendInfo()),
        storage: await storageInfo(),
        version: AMALGAM_VERSION,
      };
    },
    /** The sample family that ships inside, opened. */
    openSample: () => addAll(sampleFolders()),
    /** Opens every model folder found in the files (a folder with a config or weights is a model). */
    async openLocal(files: LocalFile[]) {
      const folders = (await import('../sources/local-folder')).foldersFromFiles(files);
      if (folders.length === 0) {
        throw new AmalgamError(
          'NotFound',
          `No model is among ${files.length === 1 ? 'this file' : `these ${counted(files.length, 'file')}`}: there is no config.json, adapter_config.json, *.safetensors or *.gguf.`,
          'Choose the folder that directly holds the model’s files.',
        );
      }
      return addAll(folders);
    },
    /** Opens `owner/name[@revision]` or a Hub URL; the revision is resolved to a commit and pinned. */
    async openHub(idOrUrl: string, signal?: AbortSignal) {
      const { id, revision } = parseHubId(idOrUrl, hub().url);
      return models.addHub(id, revision, signal);
    },
    /** Opens a folder of the machine under the given recipe name. */
    async openDisk(ref: string, folder: string) {
      if (!openDisk) throw new Error('a browser reads no folders by their path');
      return models.add(openDisk(ref, folder), ref);
    },
    ...hubCalls,
    searchHub: async (query: HubQuery, signal?: AbortSignal) =>
      (await import('../sources/hub')).searchModels(hub(), query, signal),
    plan: (recipe: Recipe, merges?: boolean) => recipePlanReport(recipe, models, merges),
    /** What the models of a recipe changed, by a few rows of them; null where that cannot be read in part. */
    sampleChanges: async (recipe: Recipe, signal?: AbortSignal) =>
      (await import('../merge/prediction/sampled-changes')).sampleChanges(await plan(recipe), models, signal),
    merge: (request: MergeRequest, onProgress: Report<Progress>) =>
      job.run(async (signal) =>
        withRunLock(request, onProgress, async (report) => {
          const { recommended } = request;
          const loadCut = () => import('../tools/lora/merge-job');
          if (!recommended) return mergeRecipe(request, models, signal, report, undefined, loadCut);
          const { runRecommended } = await import('../recipe/recommended-merge');
          return runRecommended({ ...request, recommended }, await bestHost(signal, report));
        }),
      ),
    /** The statistics pass: task vectors measured, nothing merged. Any other job stops it (`Canceled`). */
    deltaStatistics: (request: DeltaStatisticsRequest, onProgress: Report<DeltaStatisticsProgress>) =>
      job.run(
        async (signal) => {
          const { runDeltaStatistics } = await import('../merge/prediction/job');
          return runDeltaStatistics(request, await plan(request.recipe), models, signal, onProgress);
        },
        { yields: 1 },
      ),
    /** Hashes the written files, merges again by their metadata, stores nothing, and compares the bytes. */
    verify: (request: VerifyRequest, onProgress: Report<Progress>) =>
      job.run(async (signal) =>
        (await import('../recipe/verification-job')).runVerify(
          request,
          (again, watch) => mergeRecipe(again, models, signal, onProgress, watch),
          models,
          signal,
          onProgress,
        ),
      ),
    /** Several models and merges on the same texts, side by side. */
    evaluateMany: (request: EvaluateManyRequest, onProgress: Report<RunningProgress>) =>
      job.run(async (signal) =>
        (await import('../evaluate/job')).runEvaluations(request, targetsOf(request, signal, onProgress)),
      ),
    /** Accuracy of several models and merges on tasks, item by item as they are done. */
    scoreTasks: (request: ScoreTasksRequest, onProgress: Report<TasksProgress>) =>
      job.run(async (signal) =>
        (await import('../evaluate/task-job')).runTasks(request, await tasksOf(request, signal, onProgress)),
      ),
    /** The best merge of a recipe's models, row by row as they are measured; nothing is written. */
    findBest: (request: FindBestRequest, onProgress: Report<FindBestProgress>) =>
      job.run(async (signal) =>
        (await import('../recipe/best-bench')).runFindBest(request, await bestHost(signal, onProgress)),
      ),
    /** The tasks that ship. */
    shippedTasks: async () => (await import('../tasks/shipped')).shippedTasks(),
    /** A conversation as the output's chat template writes it; null where it has none. */
    chatPreview: async (recipe: Recipe, signal: AbortSignal) => {
      const { chatPreview } = await import('../evaluate/running-model');
      return chatPreview((await planTarget({ recipe })).plan, models, signal);
    },
    generate: (request: GenerateRequest, onProgress: Report<RunningProgress>) =>
      (request.live ? slot : job).run(async (signal) => {
        const { target, engine } = request;
        const ready = await readyTarget(target, engine, signal, onProgress);
        const against = request.against && (await planTarget(request.against));
        const { runGeneration } = await import('../evaluate/generation-job');
        const options = { ...ready, models, engine, signal, onProgress, ...(against && { against }) };
        if (!request.live) return runGeneration(request, options);
        return (await liveTexts()).write(
          (recipe) => readyTarget({ recipe }, engine, signal, () => undefined),
          (liveText) => runGeneration(request, { ...options, liveText }),
        );
      }),
    /** What a text of the model that takes most would take of memory; nothing is opened. */
    memoryOf: async (request: MemoryRequest) =>
      (await import('../evaluate/memory-plan')).planMemory(request, planTarget, models),
    /** Several models continue the same prompts: texts by model and prompt. */
    answers: (request: AnswersRequest, onProgress: Report<RunningProgress>) =>
      job.run(async (signal) => {
        const { runAnswers } = await import('../evaluate/generation-job');
        return runAnswers(request, targetsOf(request, signal, onProgress));
      }),
    /** Whether the live text that is being written goes on with another recipe from its next token on. */
    steer: async (recipe: Recipe) => (await live?.steer(recipe)) ?? false,
    /** Losses of a merge on the beginning of a text, in blocks. Any other job stops it (`Canceled`). */
    livePerplexity: ({ recipe, stretches, weights, engine }: LivePerplexityRequest) =>
      slot.run(
        async (signal) => {
          const onProgress = () => undefined;
          const ready = await readyTarget({ recipe }, engine, signal, onProgress);
          const { runLivePerplexity } = await import('../evaluate/job');
          const options = { ...ready, models, engine, signal, onProgress };
          return (await liveTexts()).use((kept) => runLivePerplexity(stretches, kept, options, weights));
        },
        { yields: 2 },
      ),
    /** What every weight of a merge does to a text, against those of others; nothing is written. */
    effects: (request: EffectsRequest, onProgress: Report<RunningProgress>) =>
      job.run(async (signal) => {
        const { runEffects } = await import('../evaluate/generation-job');
        return runEffects(request, targetsOf(request, signal, onProgress));
      }),
    /** Opens a dataset on the Hub, `owner/name[@revision]` or its page's address, pinned to a commit. */
    openDataset: async (idOrUrl: string, signal?: AbortSignal) => (await datasets()).open(idOrUrl, signal),
    /** The text columns of a file of a dataset. */
    datasetColumns: async (ref: string, path: string, signal?: AbortSignal) =>
      (await datasets()).columns(ref, path, signal),
    /** Text out of a file of a dataset; of a large file only the parts that are needed are read. */
    readDataset: (request: DatasetRequest, onProgress: Report<RunningProgress>) =>
      job.run(async (signal) => (await datasets()).read(request, signal, onProgress)),
    /** The evaluation texts of the sample family. */
    sampleTexts: () => sampleTexts(),
    /** Names of the sample's calibration texts, known without being added. */
    calibrationTexts: async () => sampleCalibrationNames,
    /** Makes a text known by the name that a recipe’s `calibration` uses. */
    async addCalibrationText(name: string, text: CalibrationText) {
      models.texts.add(name, text);
    },
    /** Whom the token belongs to. @throws Unauthorized without a token, or with one the hub does not know */
    hubAccount: async (signal?: AbortSignal) =>
      (await import('../sources/hub-upload')).hubAccount(hub(), signal),
    /** Looks at the repository that an output would go to. */
    pushTarget: async (repo: string, source: PushSource, signal?: AbortSignal) =>
      (await import('../push/job')).lookAtTarget(hub(), repo, source, signal),
    /**
     * Sends a finished output to a model repository, created where it is missing, as one commit at the end.
     * @throws DestinationNotEmpty when files would be replaced that `replace` does not name
     */
    push: (request: PushRequest, onProgress: Report<PushProgress>) =>
      job.run(async (signal) => (await import('../push/job')).runPush(request, hub(), signal, onProgress)),
    /**
     * Cancels the running job; it rejects with `Canceled` and leaves nothing that looks complete. What a merge has
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
    discardInterrupted: forgetInterrupted,
    /** Follows the merge of another tab: what it does, and null when there is none. Never resolves. */
    follow: (onRun: Report<RunElsewhere | null>) => followOtherTabs(onRun),
    /** Makes the tab that merges stop; its merge can then be resumed here. @throws Busy when it does not */
    takeOver: () => takeOver(),
    /** A finished output file of a `downloads` merge, disk-backed. */
    outputFile: openOutputFile,
    /** The plain sha256 of a file, which the Hub and `sha256sum` know it by. */
    sha256: (file: File) => sha256Of(fileSource(file, file.name)),
    async cache(): Promise<CacheInfo> {
      const { listMasks } = await import('../store/masks');
      const [blobs, finished, masks] = await Promise.all([listBlobs(), listOutputs(), listMasks()]);
      return {
        blobs: blobs.map(({ sha256, bytes, name }) => ({ sha256, bytes, name })),
        outputs: finished.map((o) => ({ ...o, files: o.files.map(({ path }) => path) })),
        masks,
      };
    },
    async deleteCached(kind: 'blob' | 'output' | 'masks', id: string) {
      if (kind === 'masks') await (await import('../store/masks')).deleteMasks(id);
      else await (kind === 'blob' ? deleteBlob(id) : deleteOutput(id));
    },
  };

  async function addAll(folders: Parameters<typeof models.add>[0][]): Promise<ModelInfo[]> {
    const infos: ModelInfo[] = [];
    for (const folder of folders) infos.push(await models.add(folder));
    return infos;
  }
}

type AnyJob = (
  request: unknown,
  models: OpenModels,
  signal: AbortSignal,
  onProgress: Report<unknown>,
  copyPlan: (model: string) => Promise<Plan>,
) => Promise<unknown>;
const TOOL_JOBS = import.meta.glob<{ jobs: Readonly<Record<string, AnyJob>> }>('../tools/*/job.ts');

/** The calls of the tools; a job is loaded when it is first asked for. */
function callsOfTools(
  job: ReturnType<typeof oneJob>,
  models: OpenModels,
  copyPlan: (model: string) => Promise<Plan>,
): ToolCalls {
  const calls = Object.entries(TOOL_CALLS).flatMap(([id, names]) =>
    names.map((name) => [
      name,
      (request: unknown, onProgress: Report<unknown>) =>
        job.run(async (signal) => {
          const file = await TOOL_JOBS[`../tools/${id}/job.ts`]!();
          return file.jobs[name]!(request, models, signal, onProgress, copyPlan);
        }),
    ]),
  );
  return Object.fromEntries(calls) as ToolCalls;
}
