/** Tasks that models are scored on: which there are, which are chosen, and what a merge scored. */

import type { CardResult } from '../../formats/card-results';
import { utf8Text } from '../../formats/conversations';
import { textSha256 } from '../../formats/hashes';
import type { Recipe } from '../../formats/recipe';
import { bytesOf } from '../../platform';
import type { TextPart } from '../../reports/find-best';
import type { LossBlock } from '../../reports/paired-error';
import type { ScoreTasksRequest, TaskInfo, TaskScore, TaskSource } from '../../reports/tasks';
import { cardResult } from '../../tasks/harness-report';
import { mainMetric } from '../../tasks/metrics';
import { taskBlocks } from '../../tasks/objective';
import { targetKey } from './evaluation-rows';
import type { Measured, MeasureSlice, TaskRecord, TasksSlice } from './measure-state';

import { editSlice, noticed, type Studio } from './studio';

/** Asks which tasks there are, once. */
export async function openTaskList(studio: Studio): Promise<void> {
  if (studio.store.getState().measure.tasks.shipped) return;
  await noticed(studio, async () => {
    editTasks(studio, { shipped: await studio.worker.shippedTasks() });
  });
}

export function editTasks(studio: Studio, change: Partial<TasksSlice>): void {
  editSlice(studio, 'measure', ({ tasks }) => ({ tasks: { ...tasks, ...change } }));
}

export function toggleTask(studio: Studio, name: string): void {
  const { chosen } = studio.store.getState().measure.tasks;
  editTasks(studio, {
    chosen: chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name],
  });
}

/** Tasks of one's own, each a .jsonl. */
export async function addTaskFiles(studio: Studio, picked: readonly File[]): Promise<void> {
  await noticed(studio, async () => {
    for (const file of picked) {
      const text = utf8Text(await bytesOf(file), file.name);
      const added = { name: file.name, text, sha256: await textSha256(text) };
      const { own, chosen } = studio.store.getState().measure.tasks;
      editTasks(studio, {
        own: [...own.filter(({ name }) => name !== added.name), added],
        chosen: [...chosen.filter((name) => name !== added.name), added.name],
      });
    }
  });
}

/** The chosen tasks: a shipped one by its name, with its subset, one of one's own with its hash. */
export function chosenTaskNames({
  chosen,
  own,
  shipped,
  subset,
}: TasksSlice): { name: string; sha256?: string }[] {
  return chosen.map((name) => {
    const { sha256: hash } = own.find((one) => one.name === name) ?? {};
    if (hash !== undefined) return { name, sha256: hash };
    const subsets = shipped?.find((one) => one.name === name)?.subsets ?? [];
    return { name: subsets.length > 0 ? `${name}_${subset || subsets[0]}` : name };
  });
}

/** The chosen tasks and their items, as a request names them. */
export function taskRequest(tasks: TasksSlice): Pick<ScoreTasksRequest, 'tasks' | 'limit' | 'fewshot'> {
  return {
    tasks: chosenTaskNames(tasks).map(({ name, sha256: hash }): TaskSource => {
      const { text = '' } = tasks.own.find((one) => one.name === name) ?? {};
      return hash === undefined ? { name } : { file: { name, text } };
    }),
    limit: tasks.limit,
    fewshot: tasks.fewshot,
  };
}

/** Why tasks cannot be scored as they are chosen, or null. */
export function taskProblem({ chosen, limit, fewshot, shipped }: TasksSlice): string | null {
  const isCount = (n: number, least: number) => Number.isInteger(n) && n >= least;
  if (chosen.length === 0) return null;
  const known = (shipped ?? []).filter(({ name }) => chosen.includes(name));
  if (known.some(({ embeds }) => embeds) && known.some(({ embeds }) => !embeds))
    return 'Similarity and retrieval are measured apart from other tasks.';
  if (!isCount(limit, 1)) return 'Items: a whole number from 1.';
  if (!isCount(fewshot, 0)) return 'Examples: a whole number from 0.';
  return null;
}

/** A score as cells, by part: every counted item a block, its loss 1 − the task's metric. */
export function scoredCells(
  info: TaskInfo,
  score: TaskScore,
  rest: Pick<Measured, 'seconds' | 'partial'>,
): Partial<Record<TextPart | 'all', Measured>> {
  const metric = mainMetric(info.metrics);
  const counted = score.items.filter(({ refused }) => refused === undefined);
  const all = counted.map(({ values }): LossBlock => ({ loss: 1 - (values[metric] ?? 0), tokens: 1 }));
  const [reporting = []] = taskBlocks([info], [{ score }], metric).reporting;
  const record: TaskRecord = { info, metrics: score.metrics, items: counted.length, at: Date.now() };
  const cell = (blocks: readonly LossBlock[]) => ({
    ...{ blocks, bitsPerByte: null, leftOut: 0, earlier: null, score: record, ...rest },
  });
  return { all: cell(all), reporting: cell(reporting) };
}

// Scores of merges, found again by the recipe.

/** The newest score of the merge of a recipe on each task. */
export function scoresOf({ cells }: Pick<MeasureSlice, 'cells'>, recipe: Recipe): TaskRecord[] {
  const newest = new Map<string, TaskRecord>();
  const target = targetKey({ recipe });
  for (const [key, cell] of cells) {
    if (!('blocks' in cell) || !cell.score || !key.endsWith(target)) continue;
    const known = newest.get(cell.score.info.task);
    if (!known || known.at < cell.score.at) newest.set(cell.score.info.task, cell.score);
  }
  return [...newest.values()];
}

/** `hellaswag acc 0.412 ± 0.049`; null without an item that counts. */
export function scoreWords({ info, metrics }: TaskRecord): string | null {
  const metric = mainMetric(info.metrics);
  const found = metrics[metric];
  if (!found) return null;
  const error = found.stderr === null ? '' : ` ± ${found.stderr.toFixed(3)}`;
  return `${info.task} ${metric} ${found.value.toFixed(3)}${error}`;
}

/** Scores of a merge for its model card. */
export function cardResults(measure: Pick<MeasureSlice, 'cells'>, recipe: Recipe): CardResult[] {
  return scoresOf(measure, recipe).map(({ info, metrics, items }) => cardResult(info, metrics, items));
}
