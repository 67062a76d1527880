/** Scores of models and merges on tasks: saved for later visits, found again by the recipe. */
import type { CardResult } from '../../formats/card-results';
import type { Recipe } from '../../formats/recipe';
import type { ScoredModel, TaskInfo } from '../../reports/tasks';
import { cardResult } from '../../tasks/harness-report';
import { savedScores } from '../local/saved-evaluations';
import { type EvaluationRow, isPinned, targetKey } from './evaluation-rows';
import type { SavedScore, TaskRun } from './evaluation-state';
import { editSlice, notifyError, type Studio } from './studio';

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
export function saveScores(
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
export function shownRow(
  { id, label, color, method }: EvaluationRow,
  target: string,
): TaskRun['rows'][number] {
  return { id, label: method ? `merge, ${label}` : label, color, target };
}
