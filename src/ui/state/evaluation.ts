/** Actions of the Evaluate tab: the texts that models are measured on, and what earlier visits measured. */

import { AmalgamError, errorReport, fromErrorReport } from '../../errors';
import { protocolOptions } from '../../evaluate/options';
import { textOfFile } from '../../formats/conversations';
import { formatBytes } from '../../formats/quantity';
import { bytesOf } from '../../platform';
import type { EvaluatedModel, RunningProgress } from '../../reports/evaluate';
import { isInRange } from '../../reports/option';
import { savedOutcomes } from '../local/saved-evaluations';
import { type EvaluationRow, isPinned, recipeOfRow, targetKey } from './evaluation-rows';
import type { EvaluationText, Outcome, PlannedCell } from './evaluation-state';
import { cellsByRow, groupCells, measuringProgress, missingCells } from './evaluation-table';
import { freeName, MAX_TEXT_BYTES, scoredText, textHashes } from './evaluation-texts';
import { runTool, whyBusy } from './job';
import type { JobProgress } from './job-state';
import { whyNotOpen } from './named-models';
import { planNow } from './plan';
import { isOfSample } from './sample-texts';
import { editRecipe, editSlice, notifyError, type Studio } from './studio';
import type { StudioState } from './studio-state';

/** Opens the sample texts and what earlier visits measured, once. A failure is shown in the tab, which offers to try again. */
export async function openSampleTexts(studio: Studio): Promise<void> {
  const { opening } = studio.store.getState().evaluation;
  if (opening === 'opening' || opening === 'done') return;
  editSlice(studio, 'evaluation', { opening: 'opening', openError: null });
  const chosen = isOfSample(studio.store.getState());
  try {
    const opened = await Promise.all(
      (await studio.worker.sampleTexts()).map(
        async ({ name, text }): Promise<EvaluationText> => ({
          id: `sample ${name}`,
          name,
          text,
          sha256: await textHashes(text),
          origin: 'sample',
          chosen,
        }),
      ),
    );
    await recallOutcomes(studio);
    editSlice(studio, 'evaluation', ({ texts }) => ({
      opening: 'done' as const,
      texts: [...opened, ...texts],
    }));
  } catch (thrown) {
    editSlice(studio, 'evaluation', { opening: 'failed', openError: errorReport(thrown) });
  }
}

/** Numbers of earlier visits come back; none without storage. */
async function recallOutcomes(studio: Studio): Promise<void> {
  const { version } = await studio.worker.info();
  const saved = await savedOutcomes.load(version).catch(() => []);
  const earlier = saved.map(({ key, report, bytes, at }) => [key, { report, bytes, earlier: at }] as const);
  editSlice(studio, 'evaluation', ({ outcomes }) => ({ outcomes: new Map([...earlier, ...outcomes]) }));
}

/** Forgets what earlier visits measured; what this one measured stays in the table. */
export async function forgetEarlier(studio: Studio): Promise<void> {
  editSlice(studio, 'evaluation', ({ outcomes }) => ({
    outcomes: new Map([...outcomes].filter(([, o]) => !('report' in o && o.earlier !== undefined))),
  }));
  try {
    await savedOutcomes.clear();
  } catch (thrown) {
    notifyError(studio, thrown);
  }
}

/**
 * Adds a text under an id and a name that no other has, and makes it known to the engine, which may calibrate on it.
 *
 * @param chosen whether it is a column of the table
 * @returns the name
 */
export async function addText(studio: Studio, name: string, text: string, chosen = true): Promise<string> {
  const sha256 = await textHashes(text);
  const { texts } = studio.store.getState().evaluation;
  const own = texts.filter((t) => t.origin === 'own').map((t) => Number(t.id.split(' ')[1]));
  const unique = freeName(
    name,
    texts.map((t) => t.name),
  );
  const id = `own ${Math.max(0, ...own) + 1}`;
  const added: EvaluationText = { id, name: unique, text, sha256, origin: 'own', chosen };
  editSlice(studio, 'evaluation', { texts: [...texts, added] });
  await studio.worker.addCalibrationText(unique, text);
  const { report } = studio.store.getState().plan;
  // it may be what the plan misses
  if (report?.problems.some(({ code }) => code === 'CalibrationUnknown')) await planNow(studio);
  return unique;
}

/** Adds text files; other files show an error and are left out. */
export async function addTextFiles(
  studio: Studio,
  files: readonly File[],
  take: (name: string, text: string) => Promise<void>,
): Promise<void> {
  for (const file of files) {
    try {
      await take(file.name, await readTextFile(file));
    } catch (thrown) {
      notifyError(studio, thrown);
    }
  }
}

export function removeText(studio: Studio, id: string): void {
  editSlice(studio, 'evaluation', ({ texts }) => ({ texts: texts.filter((t) => t.id !== id) }));
}

export function chooseText(studio: Studio, id: string, chosen: boolean): void {
  editSlice(studio, 'evaluation', ({ texts }) => ({
    texts: texts.map((t) => (t.id === id ? { ...t, chosen } : t)),
  }));
}

async function readTextFile(file: File): Promise<string> {
  if (file.size > MAX_TEXT_BYTES) {
    throw new AmalgamError(
      'LimitExceeded',
      `${file.name} has ${formatBytes(file.size)}; the studio takes texts up to ${formatBytes(MAX_TEXT_BYTES)}.`,
      'Cut out a part of it: a few thousand words already tell models apart.',
    );
  }
  const bytes = await bytesOf(file);
  try {
    return textOfFile(file.name, new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (thrown) {
    if (!(thrown instanceof TypeError)) throw thrown;
    throw new AmalgamError(
      'TextEmpty',
      `${file.name} is not a UTF-8 text.`,
      'Save it as UTF-8 text, or choose a .txt or .jsonl file.',
      { cause: thrown },
    );
  }
}

// May a model be run now, and if not, why. Pure; one answer for every button of the Evaluate tab.

/** Why nothing can be measured or written now, or null. */
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
  const { evaluation } = state;
  if (evaluation.opening === 'opening') return 'Opening the sample texts…';
  if (!evaluation.texts.some((t) => t.chosen)) return 'Choose a text first.';
  return protocolProblem(evaluation) ?? whyNotRun(state);
}

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

// Measuring the cells of the Evaluate tab's table, and taking a row's method into the recipe.

/** Puts a method into the recipe, as the method picker does. */
export function takeMethod(studio: Studio, row: EvaluationRow): void {
  editRecipe(studio, (recipe) => recipeOfRow(recipe, row));
}

/**
 * Measures the cells of these rows that have no number yet: rows that lack the same texts side by side, so that their
 * files are read once. A row whose model cannot be run shows that, the others go on. Never rejects.
 */
export async function measure(studio: Studio, rows: readonly EvaluationRow[]): Promise<void> {
  const before = studio.store.getState();
  const groups = groupCells(missingCells(rows, before.evaluation));
  if (groups.length === 0 || whyNotMeasure(before) !== null) return;
  const begun = performance.now();
  editSlice(studio, 'evaluation', { work: { groups, at: 0 }, cost: null });
  const outcome = await runTool<JobProgress, void>(
    studio,
    'evaluation',
    async (onProgress) => {
      for (const [at, group] of groups.entries()) {
        if (studio.store.getState().job?.canceling) return;
        const work = { groups, at };
        editSlice(studio, 'evaluation', { work });
        const report = (progress: RunningProgress | null) =>
          onProgress(measuringProgress(work, progress, (performance.now() - begun) / 1000));
        report(null);
        await measureGroup(studio, group, before, report);
      }
    },
    (progress) => progress,
  );
  editSlice(studio, 'evaluation', { work: null });
  if ('error' in outcome) notifyError(studio, fromErrorReport(outcome.error));
}

async function measureGroup(
  studio: Studio,
  group: readonly PlannedCell[],
  { evaluation: { amount, window, stride, texts }, engine: { choice } }: StudioState,
  onProgress: (progress: RunningProgress) => void,
): Promise<void> {
  const rows = cellsByRow(group);
  const inputs = (rows[0] ?? []).map(({ textId }) => {
    const text = texts.find((t) => t.id === textId)?.text ?? '';
    return { text: scoredText(text, amount) };
  });
  const targets = rows.flatMap(([cell]) => (cell ? [cell.target] : []));
  const done = new Set<number>();
  const take = (index: number, { outcomes, bytes }: EvaluatedModel) => {
    if (done.has(index)) return;
    done.add(index);
    for (const [t, outcome] of outcomes.entries()) {
      const cell = rows[index]?.[t];
      if (cell) takeOutcome(studio, cell, 'report' in outcome ? { ...outcome, bytes } : outcome);
    }
  };
  const report = await studio.worker.evaluateMany(
    { targets, inputs, window, stride, engine: choice },
    (progress) => {
      // what does not fit side by side goes in batches; a batch that is done stays, also when the next is stopped
      for (const { index, model } of progress.finished ?? []) take(index, model);
      onProgress(progress);
    },
  );
  editSlice(studio, 'evaluation', ({ cost }) => ({
    cost: {
      models: (cost?.models ?? 0) + targets.length,
      bytesRead: (cost?.bytesRead ?? 0) + report.bytesRead,
      peakBytes: Math.max(cost?.peakBytes ?? 0, report.peakBytes),
    },
  }));
  for (const [index, model] of report.models.entries()) take(index, model);
}

function takeOutcome(studio: Studio, cell: PlannedCell, outcome: Outcome): void {
  const { models, engine } = studio.store.getState();
  if ('report' in outcome && engine.info && isPinned(cell.target, models)) {
    const { report, bytes } = outcome;
    // a browser without storage: the number lives as long as the tab
    savedOutcomes
      .save({ key: cell.key, report, bytes, at: Date.now(), version: engine.info.version })
      .catch(() => {});
  }
  const measured = { target: targetKey(cell.target), title: cell.rowLabel };
  editSlice(studio, 'evaluation', ({ outcomes, lastOf }) => ({
    outcomes: new Map(outcomes).set(cell.key, outcome),
    lastOf: new Map(lastOf).set(cell.rowId, measured),
  }));
}
