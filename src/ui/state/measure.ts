/** Actions of the Measure tab: numbers of the table are measured, merges are tried, and a tried one is taken over. */

import { bestOptions } from '../../recipe/options';
import { type EvaluatedModel, overTexts, type RunTarget } from '../../reports/evaluate';
import {
  BEST_STEPS,
  type BestRow,
  type BestStep,
  type BestText,
  type FindBestRequest,
  type TextPart,
} from '../../reports/find-best';
import { defaultsOf } from '../../reports/option';
import type { LossBlock } from '../../reports/paired-error';
import type { TaskInfo, TaskItem, TaskScore, TasksProgress } from '../../reports/tasks';
import { aggregate } from '../../tasks/metrics';
import { savedCells, savedTests } from '../local/database';
import { buildRecipe } from './built-recipe';
import { type EvaluationRow, isPinned, modelsKey, tableRows, targetKey } from './evaluation-rows';
import { runTool, whyBusy } from './job';
import { findProgress, type JobProgress, runningProgress } from './job-state';
import type { Cell, Measured } from './measure-state';
import {
  cellKey,
  expectedSeconds,
  generatedKey,
  type MissingCell,
  measureTable,
  missingCells,
  type Part,
  tableColumns,
} from './measure-table';
import { openTaskList, scoredCells, taskProblem, taskRequest } from './measure-tasks';
import { openSampleTexts, partStretches, searchedText } from './measure-texts';
import { whyNotOpen } from './named-models';
import { takeSettings, withSettingsOf } from './predicted-runs';
import { isOfImages, recipeProblems } from './recipe-validation';
import { editSlice, methodOf, notify, type Studio, type StudioState, showTab } from './studio';

/** Opens what the tab needs: the sample texts, the list of tasks, the numbers of earlier visits. */
export async function openMeasure(studio: Studio): Promise<void> {
  await Promise.all([openSampleTexts(studio), openTaskList(studio), recallCells(studio)]);
}

/** Numbers and votes of earlier visits come back, once; none without storage. */
export async function recallCells(studio: Studio): Promise<void> {
  const { engine, measure } = studio.store.getState();
  if (!engine.info || measure.recalled) return;
  editSlice(studio, 'measure', { recalled: true });
  const saved = await savedCells.load(engine.info.version).catch(() => []);
  const tests = await savedTests.load().catch(() => []);
  editSlice(studio, 'generation', ({ blind }) => ({
    blind: { ...blind, tests: [...blind.tests, ...tests] },
  }));
  const earlier = saved.map(({ key, at, measured }) => [key, { ...measured, earlier: at }] as const);
  editSlice(studio, 'measure', ({ cells }) => ({ cells: new Map<string, Cell>([...earlier, ...cells]) }));
}

// May something be measured now, and if not, why. Pure.

/** Why no model can be run now, or null. */
export function whyNotRun(state: StudioState): string | null {
  const busy = whyBusy(state);
  if (busy) return busy.why;
  if (isOfImages(state.recipe, state.models)) return 'Image models cannot be run here.';
  if (state.recipe.base === null && !state.recipe.contributors.some((c) => c.enabled)) {
    return 'The recipe has no models yet.';
  }
  return whyNotOpen(state)?.why ?? null;
}

/** Why nothing can be measured now, or null; without a text and a task the contributors generate one. */
export function whyNotMeasure(state: StudioState): string | null {
  const { texts, tasks } = state.measure;
  const isGiven = texts.some(({ chosen }) => chosen) || tasks.chosen.length > 0;
  return isGiven ? whyNotBegin(state) : whyNotFind(state);
}

function whyNotBegin(state: StudioState): string | null {
  const { opening, tasks } = state.measure;
  if (opening === 'opening') return 'Opening the sample texts…';
  return taskProblem(tasks) ?? whyNotRun(state);
}

/** Why no merges can be tried now, or null. */
export function whyNotFind(state: StudioState): string | null {
  const { recipe, models } = state;
  const why = whyNotBegin(state);
  if (why !== null) return why;
  if (recipe.base === null) return 'Choose a base first.';
  if (recipe.asWritten) return 'The form does not cover this recipe: its own method is the only one.';
  return recipeProblems(recipe, models, methodOf(recipe))[0]?.message ?? null;
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
  const missing = missingCells(table);
  const isGenerated = missing.some(({ column }) => column.kind === 'generated');
  if (isGenerated || table.columns.length === 0) return find(studio, [], asked);
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
    for (let at = 0, size = 1; at < same.length; size = Math.min(2 * size, MOST_TOGETHER)) {
      groups.push(same.slice(at, at + size).flat());
      at += size;
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
  cellKey(column.key, column.parts.at(-1)!, targetKey(row.target));

async function measureTexts(
  studio: Studio,
  group: readonly MissingCell[],
  { measure: { amount, texts }, engine }: StudioState,
  onProgress: Parameters<Studio['worker']['evaluateMany']>[1],
): Promise<void> {
  const targets = [...new Set(group.map(({ row }) => row.target))];
  const columns = [...new Set(group.map(({ column }) => column))];
  const stretches = columns.map(({ id }) => {
    const text = texts.find((own) => own.id === id);
    return text ? partStretches(text, amount) : [];
  });
  const done = new Set<number>();
  const take = (index: number, { outcomes }: EvaluatedModel) => {
    const target = targets[index];
    if (!target || done.has(index)) return;
    done.add(index);
    let at = 0;
    for (const [c, { key, parts }] of columns.entries()) {
      const end = at + stretches[c]!.length;
      takeCell(studio, target, key, parts.at(-1)!, textCell(outcomes.slice(at, end)));
      at = end;
    }
  };
  const { models } = await studio.worker.evaluateMany(
    { targets, inputs: stretches.flat(), engine: engine.choice },
    (progress) => {
      // what does not fit side by side goes in batches; a batch that is done stays, also when the next is stopped
      for (const { index, model } of progress.finished ?? []) take(index, model);
      onProgress(progress);
    },
  );
  for (const [index, model] of models.entries()) take(index, model);
}

/** A text, measured stretch by stretch. */
function textCell(outcomes: EvaluatedModel['outcomes']): Cell {
  const failed = outcomes.find((outcome) => 'error' in outcome);
  if (failed) return failed as Cell;
  const reports = outcomes.flatMap((outcome) => ('report' in outcome ? [outcome.report] : []));
  const { seconds, bitsPerByte, leftOut = 0 } = overTexts(reports);
  return {
    blocks: reports.flatMap(({ blocks = [] }) => blocks),
    seconds,
    bitsPerByte,
    leftOut,
    earlier: null,
  };
}

/** Items are shown as they are done, and stay when it is stopped. */
async function scoreTasks(
  studio: Studio,
  missing: readonly MissingCell[],
  { measure: { tasks }, engine }: StudioState,
  onProgress: (progress: TasksProgress) => void,
): Promise<void> {
  const first = missing.filter(({ row }) => row.group === 'models');
  const targets = [...new Set([...first, ...missing].map(({ row }) => row.target))];
  const columns = tableColumns(studio.store.getState().measure).filter(({ kind }) => kind === 'task');
  const items = targets.map(() => columns.map((): TaskItem[] => []));
  let info: readonly TaskInfo[] = [];
  const take = (m: number, t: number, score: TaskScore, rest: Pick<Measured, 'seconds' | 'partial'>) => {
    for (const [part, cell] of Object.entries(scoredCells(info[t]!, score, rest))) {
      takeCell(studio, targets[m]!, columns[t]!.key, part as Part, cell);
    }
  };
  const request = { ...taskRequest(tasks), targets, engine: engine.choice };
  const report = await studio.worker.scoreTasks(request, (progress) => {
    onProgress(progress);
    info = progress.info ?? info;
    const fresh = progress.items ?? [];
    for (const { model, task, item } of fresh) items[model]![task]!.push(item);
    for (const place of new Set(fresh.map(({ model, task }) => `${model} ${task}`))) {
      const [m, t] = place.split(' ').map(Number) as [number, number];
      const own = items[m]![t]!;
      take(m, t, { metrics: aggregate(info[t]!.metrics, own), items: own }, { seconds: 0, partial: true });
    }
  });
  info = report.tasks;
  for (const [m, { seconds, tasks: outcomes }] of report.models.entries()) {
    for (const [t, outcome] of outcomes.entries()) {
      if ('score' in outcome) take(m, t, outcome.score, { seconds: seconds / outcomes.length });
      else takeCell(studio, targets[m]!, columns[t]!.key, columns[t]!.parts.at(-1)!, outcome);
    }
  }
}

/** Puts a number into the table, and saves one that holds on another day. */
function takeCell(studio: Studio, target: RunTarget, column: string, part: Part, cell: Cell): void {
  const key = cellKey(column, part, targetKey(target));
  editSlice(studio, 'measure', ({ cells, running }) => ({
    cells: new Map(cells).set(key, cell),
    running: new Set([...running].filter((one) => one !== key || 'partial' in cell)),
  }));
  const { models, engine } = studio.store.getState();
  if (!engine.info || 'error' in cell || cell.partial || !isPinned(target, models)) return;
  // a browser without storage: the number lives as long as the tab
  savedCells.save({ key, measured: cell, at: Date.now(), version: engine.info.version }).catch(() => {});
}

// Trying merges.

/**
 * Tries merges of the recipe's models in memory, each at its own λ; rows come one by one, and stay when it is stopped.
 * Never rejects.
 *
 * @param asked merges that are measured as well on text that the contributors generate: nothing else can. The runs unless given
 */
export async function find(
  studio: Studio,
  steps: readonly BestStep[],
  asked?: readonly EvaluationRow[],
): Promise<void> {
  const before = studio.store.getState();
  if (whyNotFind(before) !== null) return;
  const { recipe, models, measure: slice, engine } = before;
  const of = modelsKey(recipe, models);
  const { columns: all, isAccuracy } = measureTable([], slice);
  const given = all.filter(({ kind }) => kind === 'text');
  const scored = all.filter(({ kind }) => kind === 'task');
  const byTasks = isAccuracy || (given.length === 0 && scored.length > 0);
  const columns = byTasks ? scored : given;
  const texts = (byTasks ? [] : given).map(({ id, name }) => {
    const text = slice.texts.find((one) => one.id === id)!;
    return { name, input: { text: searchedText(text, slice.amount) } };
  });
  const own = columns.length === 0;
  const rows = asked ?? tableRows(before).filter(({ group }) => group === 'runs');
  const also = own ? rows.filter(({ group }) => group !== 'models') : [];
  const request: FindBestRequest = {
    // a method without a base is one of the rows, and the others merge differences from the base of the form
    recipe: { ...buildRecipe(recipe, models, methodOf(recipe)), baseModel: recipe.base! },
    texts,
    ...(byTasks ? { tasks: taskRequest(slice.tasks) } : {}),
    ...(also.length > 0 ? { also: also.map(({ label, target }) => ({ label, target })) } : {}),
    ...{ ...defaultsOf(bestOptions), steps, budget: slice.budget, engine: engine.choice },
  };
  // as the form writes it: taken over, it is this row
  const formed = (row: BestRow): BestRow => {
    if (!('recipe' in row.target) || row.kind === 'also') return row;
    const form = withSettingsOf(recipe, row.target.recipe, models);
    return { ...row, target: { recipe: buildRecipe(form, models, methodOf(form)) } };
  };
  const take = (rows: readonly BestRow[], known: readonly BestText[]) => {
    editSlice(studio, 'measure', ({ found }) => {
      const same = found?.of === of ? found : null;
      const kept = (same?.rows ?? []).filter(({ id }) => !rows.some((row) => row.id === id));
      // what was tried before stays the choice while nothing else is tried
      const report = steps.length === 0 ? (same?.report ?? null) : null;
      return { found: { of, own, texts: known, rows: [...kept, ...rows], report } };
    });
    for (const { target, blocks } of rows) {
      for (const [part, each] of Object.entries(blocks) as [TextPart, LossBlock[][] | null][]) {
        for (const [t, losses] of (each ?? []).entries()) {
          const key = own ? generatedKey(known[t]!.name) : columns[t]!.key;
          const measured = { blocks: losses, seconds: 0, bitsPerByte: null, leftOut: 0, earlier: null };
          const was = studio.store.getState().measure.cells.get(cellKey(key, part, targetKey(target)));
          // what was measured alone says more
          const more = was && 'blocks' in was && !was.partial && { ...was, blocks: losses };
          takeCell(studio, target, key, part, more || measured);
        }
      }
    }
  };
  await working(studio, 'search', [], async (onProgress) => {
    let known: readonly BestText[] = [];
    const { rows, ...rest } = await studio.worker.findBest(request, (progress) => {
      known = progress.texts ?? known;
      if (progress.rows.length > 0) take(progress.rows.map(formed), known);
      onProgress(findProgress(progress));
    });
    const report = { ...rest, rows: rows.map(formed) };
    take(report.rows, report.texts);
    if (steps.length > 0)
      editSlice(studio, 'measure', ({ found }) => ({ found: found && { ...found, report } }));
  });
}

/** *Find the best* in one press: shows what is tried, and puts the best into the recipe. Never rejects. */
export async function findTheBest(studio: Studio): Promise<void> {
  const opened = openMeasure(studio);
  showTab(studio, 'measure');
  await opened;
  const before = studio.store.getState();
  await find(studio, BEST_STEPS);
  const { recipe, measure } = studio.store.getState();
  const report = measure.found?.report;
  const best = report?.rows.find(({ id }) => id === report.best);
  // stopped, or edited meanwhile: what was tried is in the table
  const isNew = report !== before.measure.found?.report && recipe === before.recipe;
  if (!isNew || !best) return;
  if (!('recipe' in best.target)) {
    const hint = 'Give it more time, or take other contributors.';
    return notify(studio, 'note', `No merge that was tried is better than ${best.label}.`, hint);
  }
  takeSettings(studio, best.target.recipe);
  // how good it is says the table, which may learn more
  notify(studio, 'note', `The recipe is now ${best.label}.`, 'Merge writes it; undo brings yours back.');
}
