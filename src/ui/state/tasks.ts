/** Tasks in the Evaluate tab: which are chosen, how long they will take, and what came of them item by item. */

import type {
  MetricValue,
  ScoredModel,
  ScoreTasksRequest,
  TaskInfo,
  TaskItem,
  TaskSource,
  TasksProgress,
} from '../../reports/tasks';
import { aggregate } from '../../tasks/metrics';
import { whyNotRun } from './evaluation';
import { type EvaluationRow, targetKey } from './evaluation-rows';
import type { TaskRun, TasksSlice } from './evaluation-state';
import { runTool } from './job';
import { runningProgress } from './job-state';
import { editSlice, notifyError, type Studio } from './studio';
import type { StudioState } from './studio-state';
import { saveScores, shownRow } from './task-scores';

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
