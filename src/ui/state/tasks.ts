/** Tasks in the Evaluate tab: which are chosen, how long they will take, and what came of them item by item. */

import type { CardResult } from '../../formats/card-results';
import type { Recipe } from '../../formats/recipe';
import type {
  MetricValue,
  ScoredModel,
  ScoreTasksRequest,
  TaskInfo,
  TaskItem,
  TaskSource,
  TasksProgress,
} from '../../reports/tasks';
import { cardResult } from '../../tasks/harness-report';
import { aggregate } from '../../tasks/metrics';
import { savedScores } from '../local/saved-evaluations';
import { whyNotRun } from './evaluation';
import { type EvaluationRow, isPinned, targetKey } from './evaluation-rows';
import type { SavedScore, TaskRun, TasksSlice } from './evaluation-state';
import { runTool } from './job';
import { runningProgress } from './job-state';
import { editSlice, notifyError, type Studio } from './studio';
import type { StudioState } from './studio-state';

/** Asks which tasks there are, once. */
export async function openTaskList(studio: Studio): Promise<void> {
  if (studio.store.getState().tasks.shipped) return;
  try {
    editSlice(studio, 'tasks', { shipped: await studio.worker.shippedTasks() });
  } catch (thrown) {
    notifyError(studio, thrown);
  }
}

export function toggleTask(studio: Studio, name: string): void {
  editSlice(studio, 'tasks', ({ chosen }) => ({
    chosen: chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name],
  }));
}

/** Tasks of one's own, each a .jsonl. */
export async function addTaskFiles(studio: Studio, picked: readonly File[]): Promise<void> {
  try {
    for (const file of picked) {
      const { name } = file;
      const text = await file.text();
      editSlice(studio, 'tasks', ({ own, chosen }) => ({
        own: [...own.filter((one) => one.name !== name), { name, text }],
        chosen: [...chosen.filter((one) => one !== name), name],
      }));
    }
  } catch (thrown) {
    notifyError(studio, thrown);
  }
}

/** The models of the table that are scored: those of the recipe and its merge. */
export function scoredRows(rows: readonly EvaluationRow[]): EvaluationRow[] {
  return rows.filter((row) => row.group === 'models' || row.current);
}

/** Why nothing can be scored now, or null. */
export function whyNotScore(state: StudioState): string | null {
  const { chosen, limit, fewshot, sampleSeed } = state.tasks;
  if (chosen.length === 0) return 'Choose a task first.';
  if (!Number.isInteger(limit) || limit < 1) return 'Items: a whole number from 1.';
  if (!Number.isInteger(fewshot) || fewshot < 0) return 'Examples: a whole number from 0.';
  if (sampleSeed !== null && (!Number.isInteger(sampleSeed) || sampleSeed < 0)) {
    return 'Seed: a whole number from 0.';
  }
  return whyNotRun(state);
}

/** Key of the settings: a prediction for others does not count. */
function taskSettingsKey({ chosen, subset, limit, fewshot, sampleSeed }: TasksSlice, rows: number): string {
  return JSON.stringify([[...chosen].sort(), subset, limit, fewshot, sampleSeed, rows]);
}

/** The chosen tasks and their items, as a request names them. */
export function chosenTasks(
  tasks: TasksSlice,
): Pick<ScoreTasksRequest, 'tasks' | 'limit' | 'sampleSeed' | 'fewshot'> {
  const sources = tasks.chosen.map((name): TaskSource => {
    const own = tasks.own.find((one) => one.name === name);
    if (own) return { file: own };
    const subsets = tasks.shipped?.find((one) => one.name === name)?.subsets ?? [];
    return { name: subsets.length > 0 ? `${name}_${tasks.subset || subsets[0]}` : name };
  });
  return {
    tasks: sources,
    limit: tasks.limit,
    ...(tasks.sampleSeed === null ? {} : { sampleSeed: tasks.sampleSeed }),
    fewshot: tasks.fewshot,
  };
}

function requestOf({ tasks, engine }: StudioState, rows: readonly EvaluationRow[]): ScoreTasksRequest {
  return { targets: rows.map(({ target }) => target), ...chosenTasks(tasks), engine: engine.choice };
}

/** Seconds beyond which scoring shows a prediction first and begins when it is asked for once more. */
export const LONG_SECONDS = 120;

/** Runs the first items of the first model, and predicts the time of all. Never rejects. */
export async function predictTasks(studio: Studio, rows: readonly EvaluationRow[]): Promise<void> {
  const before = studio.store.getState();
  if (whyNotScore(before) !== null || rows.length === 0) return;
  await running(studio, (onProgress) => predict(studio, before, rows, onProgress));
}

/** @returns whether it could be predicted */
async function predict(
  studio: Studio,
  before: StudioState,
  rows: readonly EvaluationRow[],
  onProgress: (progress: TasksProgress) => void,
): Promise<boolean> {
  const request = { ...requestOf(before, rows), trial: true };
  editSlice(studio, 'tasks', { predicting: true });
  const { models, tokens } = await studio.worker
    .scoreTasks(request, onProgress)
    .finally(() => editSlice(studio, 'tasks', { predicting: false }));
  const [first] = models;
  const failed = first?.tasks.find((outcome) => 'error' in outcome);
  if (failed && 'error' in failed) editSlice(studio, 'tasks', { error: failed.error });
  if (failed || !first || first.tokens === 0) return false;
  const seconds = (first.seconds / first.tokens) * tokens * rows.length;
  const key = taskSettingsKey(before.tasks, rows.length);
  editSlice(studio, 'tasks', { predicted: { key, seconds, tokens: tokens * rows.length } });
  return true;
}

/** The prediction for these settings, or null. */
export function predictionOf(tasks: TasksSlice, rows: number): TasksSlice['predicted'] {
  return tasks.predicted?.key === taskSettingsKey(tasks, rows) ? tasks.predicted : null;
}

/**
 * Scores the chosen tasks on every row; items are shown as they are done, and stay when it is stopped. Where it is not known
 * how long that takes, it is predicted first; what takes long begins when it is asked for again. Never rejects.
 */
export async function scoreTasks(studio: Studio, rows: readonly EvaluationRow[]): Promise<void> {
  const before = studio.store.getState();
  if (whyNotScore(before) !== null || rows.length === 0) return;
  await running(studio, async (onProgress) => {
    if (!predictionOf(before.tasks, rows.length)) {
      if (!(await predict(studio, before, rows, onProgress))) return;
      const { job, tasks } = studio.store.getState();
      if (job?.canceling || (tasks.predicted?.seconds ?? 0) > LONG_SECONDS) return;
    }
    const shown = rows.map((row) => shownRow(row, targetKey(row.target)));
    const { models } = await studio.worker.scoreTasks(requestOf(before, rows), (progress) => {
      onProgress(progress);
      if (progress.info) beginRun(studio, shown, progress.info);
      if (progress.items) addItems(studio, progress.items);
    });
    const failed = models.flatMap(({ tasks }) => tasks).find((outcome) => 'error' in outcome);
    editSlice(studio, 'tasks', ({ run }) => ({
      run: run && { ...run, models, items: finalItems(run, models) },
      error: failed && 'error' in failed ? failed.error : null,
    }));
    const { run } = studio.store.getState().tasks;
    if (run) saveScores(studio, rows, run, models);
  });
}

/** The items of the report: the last messages may come after it, and are not heard then. */
function finalItems({ items }: TaskRun, models: readonly ScoredModel[]): TaskRun['items'] {
  return items.map((row, m) =>
    row.map((own, t) => {
      const outcome = models[m]?.tasks[t];
      return outcome && 'score' in outcome ? outcome.score.items : own;
    }),
  );
}

async function running(
  studio: Studio,
  act: (onProgress: (progress: TasksProgress) => void) => Promise<unknown>,
): Promise<void> {
  editSlice(studio, 'tasks', { error: null });
  const outcome = await runTool(studio, 'tasks', act, (progress: TasksProgress) => runningProgress(progress));
  if ('error' in outcome) editSlice(studio, 'tasks', { error: outcome.error });
}

function beginRun(studio: Studio, rows: TaskRun['rows'], info: readonly TaskInfo[]): void {
  editSlice(studio, 'tasks', {
    run: { tasks: info, rows, items: rows.map(() => info.map(() => [])), models: null },
  });
}

function addItems(studio: Studio, fresh: NonNullable<TasksProgress['items']>): void {
  editSlice(studio, 'tasks', ({ run }) => {
    const items = run?.items.map((row, m) =>
      row.map((own, t) => {
        const added = fresh.filter((one) => one.model === m && one.task === t);
        return added.length === 0 ? own : [...own, ...added.map(({ item }) => item)];
      }),
    );
    return run && items ? { run: { ...run, items } } : {};
  });
}

/** The running value of a metric and its standard error; null before the first item. */
export function runningValue(items: readonly TaskItem[], metric: string): MetricValue | null {
  return aggregate([metric], items)[metric] ?? null;
}

// Scores of models and merges on tasks: saved for later visits, found again by the recipe.

/** Key of a task: the same items, asked in the same way. */
function taskKey({ task, version, dataset, split, fewshot, effective, sampleSeed }: TaskInfo): string {
  return JSON.stringify([task, version, dataset, split, fewshot, effective, sampleSeed]);
}

/** Key of a saved score: the same target on the same items. */
export function scoreKey(target: string, info: TaskInfo): string {
  return `${taskKey(info)} ${target}`;
}

/** Restores the scores of earlier visits, once; none without storage. */
export async function recallScores(studio: Studio): Promise<void> {
  const { tasks, engine } = studio.store.getState();
  if (tasks.recalled || !engine.info) return;
  editSlice(studio, 'tasks', { recalled: true });
  const saved = await savedScores.load(engine.info.version).catch(() => []);
  editSlice(studio, 'tasks', ({ scores }) => ({
    scores: new Map([...saved.map((own) => [own.key, own] as const), ...scores]),
  }));
}

/** Saves scores: in this tab always, for later visits where names stand for the same weights then. */
function saveScores(
  studio: Studio,
  rows: readonly EvaluationRow[],
  { tasks: info, items }: TaskRun,
  models: readonly ScoredModel[],
): void {
  const { engine, models: opened } = studio.store.getState();
  if (!engine.info) return;
  const { version } = engine.info;
  const fresh = rows.flatMap((row, m) =>
    info.flatMap((own, t): { score: SavedScore; row: EvaluationRow }[] => {
      const outcome = models[m]?.tasks[t];
      if (!outcome || 'error' in outcome) return [];
      const target = targetKey(row.target);
      const { tokens, seconds } = models[m]!;
      const { metrics } = outcome.score;
      const score = {
        ...{ key: scoreKey(target, own), target, info: own, metrics, items: items[m]![t]! },
        ...{ tokens, seconds, at: Date.now(), version },
      };
      return [{ score, row }];
    }),
  );
  editSlice(studio, 'tasks', ({ scores }) => ({
    scores: new Map([...scores, ...fresh.map(({ score }) => [score.key, score] as const)]),
  }));
  for (const { score, row } of fresh) {
    // without storage the score lasts as long as the tab
    if (isPinned(row.target, opened)) savedScores.save(score).catch(() => {});
  }
}

/** Deletes all scores, here and of earlier visits. */
export async function forgetAllScores(studio: Studio): Promise<void> {
  editSlice(studio, 'tasks', { scores: new Map() });
  try {
    await savedScores.clear();
  } catch (thrown) {
    notifyError(studio, thrown);
  }
}

/** The newest score of a target on each task. */
export function scoresOf(scores: ReadonlyMap<string, SavedScore>, target: string): SavedScore[] {
  const newest = new Map<string, SavedScore>();
  for (const kept of scores.values()) {
    if (kept.target !== target) continue;
    const known = newest.get(kept.info.task);
    if (!known || known.at < kept.at) newest.set(kept.info.task, kept);
  }
  return [...newest.values()];
}

/** `hellaswag acc 0.412 ± 0.049`: a score by its accuracy, or else its first metric; null without an item that counts. */
export function scoreWords({ info, metrics }: SavedScore): string | null {
  const metric = info.metrics.includes('acc') ? 'acc' : info.metrics[0];
  const found = metric === undefined ? undefined : metrics[metric];
  if (!found) return null;
  const error = found.stderr === null ? '' : ` ± ${found.stderr.toFixed(3)}`;
  return `${info.task} ${metric} ${found.value.toFixed(3)}${error}`;
}

/** Scores of a merge for its model card. */
export function cardResults(scores: ReadonlyMap<string, SavedScore>, recipe: Recipe): CardResult[] {
  return scoresOf(scores, targetKey({ recipe })).map((kept) => cardResult(kept.info, kept));
}

/** Scores of these rows from earlier visits, as the table shows them; null where there are none. */
export function earlierRun(
  scores: ReadonlyMap<string, SavedScore>,
  rows: readonly EvaluationRow[],
): TaskRun | null {
  const known = rows.flatMap((row) => {
    const target = targetKey(row.target);
    const own = [...scores.values()].filter((kept) => kept.target === target);
    return own.length > 0 ? [{ row, target, own }] : [];
  });
  const info = new Map(known.flatMap(({ own }) => own.map((kept) => [taskKey(kept.info), kept.info])));
  if (info.size === 0) return null;
  return {
    tasks: [...info.values()],
    rows: known.map(({ row, target }) => shownRow(row, target)),
    items: known.map(({ target }) =>
      [...info.values()].map((own) => scores.get(scoreKey(target, own))?.items ?? []),
    ),
    models: known.map(({ own: [first] }) => ({ ...first!, tasks: [], engine: null })),
  };
}

/** A row as the table of tasks shows it. */
function shownRow({ id, label, color, method }: EvaluationRow, target: string): TaskRun['rows'][number] {
  return { id, label: method ? `merge, ${label}` : label, color, target };
}
