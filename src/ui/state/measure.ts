/** Actions of the Measure tab: numbers of the table are measured, merges are tried, and a tried one is taken over. */

import { protocolOptions } from '../../evaluate/options';
import type { EvaluatedModel } from '../../reports/evaluate';
import type {
  BestRow,
  BestStep,
  BestText,
  FindBestProgress,
  FindBestRequest,
  TextPart,
} from '../../reports/find-best';
import { isInRange } from '../../reports/option';
import type { ScoreTasksReport, TaskInfo, TaskItem, TasksProgress } from '../../reports/tasks';
import { aggregate } from '../../tasks/metrics';
import { savedCells } from '../local/saved-evaluations';
import { buildRecipe } from './built-recipe';
import { type EvaluationRow, isPinned, modelsKey, tableRows, targetKey } from './evaluation-rows';
import { runTool, whyBusy } from './job';
import { type JobProgress, runningProgress } from './job-state';
import type { Cell, Measured } from './measure-state';
import {
  cellKey,
  expectedSeconds,
  type MissingCell,
  measureTable,
  missingCells,
  type TableColumn,
  tableColumns,
} from './measure-table';
import { openTaskList, scoredCell, taskProblem, taskRequest } from './measure-tasks';
import { openSampleTexts, reportedText, searchedText } from './measure-texts';
import { whyNotOpen } from './named-models';
import { recipeState } from './opened-recipe';
import { recipeProblems } from './recipe-validation';
import { editRecipe, editSlice, methodOf, notifyError, type Studio } from './studio';
import type { StudioState } from './studio-state';

/** Opens what the tab needs: the sample texts, the list of tasks, the numbers of earlier visits. */
export async function openMeasure(studio: Studio): Promise<void> {
  await Promise.all([openSampleTexts(studio), openTaskList(studio), recallCells(studio)]);
}

/** Numbers of earlier visits come back, once; none without storage. */
export async function recallCells(studio: Studio): Promise<void> {
  const { engine, measure } = studio.store.getState();
  if (!engine.info || measure.recalled) return;
  editSlice(studio, 'measure', { recalled: true });
  const saved = await savedCells.load(engine.info.version).catch(() => []);
  const earlier = saved.map(({ key, at, measured }) => [key, { ...measured, earlier: at }] as const);
  editSlice(studio, 'measure', ({ cells }) => ({ cells: new Map<string, Cell>([...earlier, ...cells]) }));
}

/** Forgets what earlier visits measured; what this one measured stays in the table. */
export async function forgetEarlier(studio: Studio): Promise<void> {
  editSlice(studio, 'measure', ({ cells }) => ({
    cells: new Map([...cells].filter(([, cell]) => !('blocks' in cell && cell.earlier !== null))),
  }));
  try {
    await savedCells.clear();
  } catch (thrown) {
    notifyError(studio, thrown);
  }
}

// May something be measured now, and if not, why. Pure.

/** Why no model can be run now, or null. */
export function whyNotRun(state: StudioState): string | null {
  const busy = whyBusy(state);
  if (busy) return busy.why;
  if (state.recipe.base === null && !state.recipe.contributors.some((c) => c.enabled)) {
    return 'The recipe has no models yet.';
  }
  return whyNotOpen(state)?.why ?? null;
}

/** Why nothing can be measured now, or null. */
export function whyNotMeasure(state: StudioState): string | null {
  const { measure } = state;
  if (measure.opening === 'opening') return 'Opening the sample texts…';
  return protocolProblem(measure) ?? taskProblem(measure.tasks) ?? whyNotRun(state);
}

/** Why no merges can be tried now, or null. */
export function whyNotFind(state: StudioState): string | null {
  const { recipe, models } = state;
  const problem = recipe.base === null ? 'Choose a base first.' : recipe.asWritten ? WRITTEN : null;
  return (
    problem ?? whyNotMeasure(state) ?? recipeProblems(recipe, models, methodOf(recipe))[0]?.message ?? null
  );
}

const WRITTEN = 'The recipe is a text that the form does not cover: its own method is the only one.';

/** Why the windows would not score every token, or null. */
export function protocolProblem({ window, stride }: { window: number; stride: number }): string | null {
  const { window: w, stride: s } = protocolOptions;
  return isInRange(w, window) && isInRange(s, stride) && stride <= window
    ? null
    : 'Window and stride are whole numbers, the stride at least 1 and no longer than the window.';
}

/** Why nothing can be written now, or null. */
export function whyNotWrite(state: StudioState): string | null {
  const { prompt, maxTokens, temperature, topP, seed } = state.generation.settings;
  if (prompt.trim() === '') return 'Write a prompt first.';
  if (!Number.isInteger(maxTokens) || maxTokens < 1) return 'Tokens: a whole number from 1.';
  if (!(temperature >= 0)) return 'Temperature: 0 or more.';
  if (!(topP > 0 && topP <= 1)) return 'Top-p: above 0, up to 1.';
  if (!Number.isInteger(seed) || seed < 0 || seed >= 2 ** 32)
    return 'Seed: a whole number from 0 to 4294967295.';
  return whyNotRun(state);
}

// Measuring what is missing.

/**
 * Measures the cells of these rows that have no number yet: base and contributors first, then merges, more and more of them
 * side by side, so that the first number is soon there and files are read seldom; tasks last. A row that cannot be run says
 * why, the others go on. Without a text the contributors generate one. Never rejects.
 */
export async function measure(studio: Studio, rows?: readonly EvaluationRow[]): Promise<void> {
  const before = studio.store.getState();
  const asked = rows ?? tableRows(before).filter(({ group }) => group !== 'tried');
  if (whyNotMeasure(before) !== null || asked.length === 0) return;
  const table = measureTable(asked, before.measure);
  if (table.columns.every(({ kind }) => kind === 'generated')) return find(studio, [], asked);
  const missing = missingCells(table);
  const texts = missing.filter(({ column }) => column.kind === 'text');
  const tasks = missing.filter(({ column }) => column.kind === 'task');
  const groups = textGroups(texts);
  if (missing.length === 0) return;
  const secondsIn = (cells: readonly MissingCell[]) => expectedSeconds(cells, table);
  await working(studio, 'evaluation', missing.map(keyOf), async (onProgress) => {
    let done = 0;
    for (const group of groups) {
      if (studio.store.getState().job?.canceling) return;
      const begun = done;
      const later = secondsIn([...groups.slice(groups.indexOf(group) + 1).flat(), ...tasks]);
      await measureTexts(studio, group, before, (progress) => {
        const own = runningProgress(progress, rowWords(group));
        const share =
          (begun + (progress.phase === 'running' ? own.share : 0) * group.length) / missing.length;
        const left = own.secondsLeft === null || later === null ? null : own.secondsLeft + later;
        onProgress({ ...own, share, secondsLeft: left });
      });
      done += group.length;
    }
    if (tasks.length > 0 && !studio.store.getState().job?.canceling) {
      await scoreTasks(studio, tasks, before, (progress) => {
        const own = runningProgress(progress, rowWords(tasks));
        onProgress({ ...own, share: (done + own.share * tasks.length) / missing.length });
      });
    }
  });
}

/** Marks cells as running while a job of the tab is at work, and shows its failure as a whole. */
async function working(
  studio: Studio,
  kind: 'evaluation' | 'search',
  running: readonly string[],
  work: (onProgress: (progress: JobProgress) => void) => Promise<void>,
): Promise<void> {
  editSlice(studio, 'measure', { running: new Set(running), error: null });
  const outcome = await runTool<JobProgress, void>(studio, kind, work, (progress) => progress);
  editSlice(studio, 'measure', {
    running: new Set(),
    error: 'error' in outcome ? outcome.error : null,
  });
}

/** Rows that go side by side at most: more read their files less often, fewer are done sooner. */
const MOST_TOGETHER = 8;

/** Rows that lack the same texts side by side: 1, 2, 4, then 8 at a time. */
function textGroups(missing: readonly MissingCell[]): MissingCell[][] {
  const rows = new Map<EvaluationRow, MissingCell[]>();
  const order = ({ row }: MissingCell) =>
    row.group === 'models' ? 0 : row.method?.compute.kind === 'solved' ? 2 : 1;
  for (const cell of [...missing].sort((a, b) => order(a) - order(b))) {
    rows.set(cell.row, [...(rows.get(cell.row) ?? []), cell]);
  }
  const alike = new Map<string, MissingCell[][]>();
  for (const own of rows.values()) {
    const key = JSON.stringify([order(own[0]!), own.map(({ column }) => column.id)]);
    alike.set(key, [...(alike.get(key) ?? []), own]);
  }
  return [...alike.values()].flatMap((same) => {
    const groups: MissingCell[][] = [];
    for (let at = 0, size = 1; at < same.length; at += size / 2) {
      groups.push(same.slice(at, at + size).flat());
      size = Math.min(2 * size, 2 * MOST_TOGETHER);
    }
    return groups;
  });
}

function rowWords(cells: readonly MissingCell[]): string {
  const labels = [...new Set(cells.map(({ row }) => row.label))];
  return labels.length > 3
    ? `${labels.slice(0, 2).join(', ')} and ${labels.length - 2} more`
    : labels.join(', ');
}

const keyOf = ({ row, column }: MissingCell): string =>
  cellKey(column.key, column.kind === 'task' ? 'all' : 'reporting', targetKey(row.target));

async function measureTexts(
  studio: Studio,
  group: readonly MissingCell[],
  { measure: { amount, window, stride, texts }, engine }: StudioState,
  onProgress: Parameters<Studio['worker']['evaluateMany']>[1],
): Promise<void> {
  const rows = [...new Set(group.map(({ row }) => row))];
  const columns = [...new Set(group.map(({ column }) => column))];
  const inputs = columns.map(({ id }) => ({
    text: reportedText(texts.find((text) => text.id === id)?.text ?? '', amount),
  }));
  const done = new Set<number>();
  const take = (index: number, { outcomes }: EvaluatedModel) => {
    const row = rows[index];
    if (!row || done.has(index)) return;
    done.add(index);
    const fresh = outcomes.map((outcome, t): [MissingCell, Cell] => {
      const cell = { row, column: columns[t]! };
      if ('error' in outcome) return [cell, outcome];
      const { blocks = [], seconds, bitsPerByte, leftOut = 0 } = outcome.report;
      return [cell, { blocks, seconds, bitsPerByte, leftOut, earlier: null }];
    });
    takeCells(studio, fresh);
  };
  const { models } = await studio.worker.evaluateMany(
    { targets: rows.map(({ target }) => target), inputs, window, stride, engine: engine.choice },
    (progress) => {
      // what does not fit side by side goes in batches; a batch that is done stays, also when the next is stopped
      for (const { index, model } of progress.finished ?? []) take(index, model);
      onProgress(progress);
    },
  );
  for (const [index, model] of models.entries()) take(index, model);
}

/** Items are shown as they are done, and stay when it is stopped. */
async function scoreTasks(
  studio: Studio,
  missing: readonly MissingCell[],
  { measure: { tasks }, engine }: StudioState,
  onProgress: (progress: TasksProgress) => void,
): Promise<void> {
  const rows = [...new Set(missing.map(({ row }) => row))];
  const columns = tableColumns(studio.store.getState().measure).filter(({ kind }) => kind === 'task');
  let info: readonly TaskInfo[] = [];
  const items = rows.map(() => columns.map((): TaskItem[] => []));
  const request = { ...taskRequest(tasks), targets: rows.map(({ target }) => target), engine: engine.choice };
  const report = await studio.worker.scoreTasks(request, (progress) => {
    onProgress(progress);
    info = progress.info ?? info;
    const fresh = progress.items ?? [];
    for (const { model, task, item } of fresh) items[model]?.[task]?.push(item);
    const touched = new Set(fresh.map(({ model, task }) => `${model} ${task}`));
    takeCells(
      studio,
      rows.flatMap((row, m) =>
        columns.flatMap((column, t): [MissingCell, Cell][] => {
          const [known, own] = [info[t], items[m]![t]!];
          if (!known || !touched.has(`${m} ${t}`)) return [];
          const score = { metrics: aggregate(known.metrics, own), items: own };
          return [
            [
              { row, column },
              { ...scoredCell(known, score, 0), partial: true },
            ],
          ];
        }),
      ),
    );
  });
  takeCells(studio, scoredCells(rows, columns, report));
}

function scoredCells(
  rows: readonly EvaluationRow[],
  columns: readonly TableColumn[],
  { tasks, models }: ScoreTasksReport,
): [MissingCell, Cell][] {
  return rows.flatMap((row, m) =>
    columns.map((column, t): [MissingCell, Cell] => {
      const { seconds = 0, tasks: outcomes = [] } = models[m] ?? {};
      const outcome = outcomes[t]!;
      const cell = { row, column };
      return [
        cell,
        'error' in outcome ? outcome : scoredCell(tasks[t]!, outcome.score, seconds / columns.length),
      ];
    }),
  );
}

/** Puts numbers into the table, and saves those that hold on another day. */
function takeCells(studio: Studio, fresh: readonly (readonly [MissingCell, Cell])[]): void {
  const { models } = studio.store.getState();
  addCells(
    studio,
    fresh.map(([cell, found]) => [keyOf(cell), found]),
  );
  for (const [cell, found] of fresh) if (isPinned(cell.row.target, models)) save(studio, keyOf(cell), found);
}

/** A browser without storage: the number lives as long as the tab. */
function save(studio: Studio, key: string, cell: Cell): void {
  const { info } = studio.store.getState().engine;
  if (!info || 'error' in cell || cell.partial) return;
  savedCells.save({ key, measured: cell, at: Date.now(), version: info.version }).catch(() => {});
}

function addCells(studio: Studio, fresh: readonly (readonly [string, Cell])[]): void {
  if (fresh.length === 0) return;
  const done = new Set(fresh.filter(([, cell]) => !('partial' in cell)).map(([key]) => key));
  editSlice(studio, 'measure', ({ cells, running }) => ({
    cells: new Map([...cells, ...fresh]),
    running: new Set([...running].filter((key) => !done.has(key))),
  }));
}

// Trying merges.

/**
 * Tries merges of the recipe's models in memory, each at its own λ; rows come one by one, and stay when it is stopped.
 * @param also rows that are measured on the same text
 */
export async function find(
  studio: Studio,
  steps: readonly BestStep[],
  also: readonly EvaluationRow[] = [],
): Promise<void> {
  const before = studio.store.getState();
  if (whyNotFind(before) !== null) return;
  const { recipe, models, measure: asked, engine } = before;
  const of = modelsKey(recipe, models);
  const table = measureTable([], asked);
  const given = table.columns.filter(({ kind }) => kind === 'text');
  const byTasks = table.isAccuracy || (given.length === 0 && asked.tasks.chosen.length > 0);
  const request: FindBestRequest = {
    recipe: buildRecipe(recipe, models, methodOf(recipe)),
    texts: byTasks
      ? []
      : given.map(({ id, name }) => ({
          name,
          input: { text: searchedText(asked.texts.find((text) => text.id === id)!.text, asked.amount) },
        })),
    ...(byTasks ? { tasks: { ...taskRequest(asked.tasks), metric: 'acc' } } : {}),
    steps,
    budget: asked.budget,
    seed: 0,
    engine: engine.choice,
  };
  void also;
  const columns = byTasks ? table.columns.filter(({ kind }) => kind === 'task') : given;
  let texts: readonly BestText[] = [];
  const take = (rows: readonly BestRow[], known: readonly BestText[] | undefined) => {
    texts = known ?? texts;
    editSlice(studio, 'measure', ({ found }) => {
      const kept = found?.of === of ? found.rows.filter(({ id }) => !rows.some((row) => row.id === id)) : [];
      return { found: { of, texts, rows: [...kept, ...rows], report: null } };
    });
    addCells(
      studio,
      rows.flatMap((row) => foundCells(row, texts, columns)),
    );
  };
  await working(studio, 'search', [], async (onProgress) => {
    const report = await studio.worker.findBest(request, (progress) => {
      take(progress.rows, progress.texts);
      onProgress(findProgress(progress));
    });
    take(report.rows, report.texts);
    editSlice(studio, 'measure', ({ found }) => ({ found: found && { ...found, report } }));
  });
}

/** Losses of a row as cells: text by text, part by part. */
function foundCells(
  { target, blocks }: BestRow,
  texts: readonly BestText[],
  columns: readonly TableColumn[],
): [string, Cell][] {
  return Object.entries(blocks).flatMap(([part, each]) =>
    (each ?? []).flatMap((own, t): [string, Cell][] => {
      const text = texts[t];
      const key = text?.kind === 'generated' ? `generated ${text.name}` : columns[t]?.key;
      const measured: Measured = { blocks: own, seconds: 0, bitsPerByte: null, leftOut: 0, earlier: null };
      return key === undefined ? [] : [[cellKey(key, part as TextPart, targetKey(target)), measured]];
    }),
  );
}

function findProgress({ step, item, done, total, secondsLeft }: FindBestProgress): JobProgress {
  const unit = step === 'writing' ? 'tokens' : step === 'search' ? 'merges' : 'rows';
  const counted = { done, total, unit };
  const share = total > 0 ? Math.min(1, done / total) : 0;
  return { phase: step, item, share, counted, bytes: null, rate: null, secondsLeft };
}

/** Puts the method and the settings of a merge that was tried into the recipe. */
export function takeTried(studio: Studio, { target }: Pick<EvaluationRow, 'target'>): void {
  const { models } = studio.store.getState();
  if (!('recipe' in target)) return;
  const made = recipeState(target.recipe, models);
  editRecipe(studio, (recipe) => ({
    ...recipe,
    ...{ method: made.method, parameters: made.parameters, seed: made.seed, asWritten: made.asWritten },
    contributors: recipe.contributors.map((own) => {
      const found = made.contributors.find(({ ref }) => ref === own.ref);
      return found ? { ...own, parameters: found.parameters } : own;
    }),
  }));
}
