/** Measuring the cells of the Evaluate tab's table, and taking a row's method into the recipe. */

import { errorReport } from '../../errors';
import type { EvaluatedModel, RunningProgress } from '../../reports/evaluate';
import { saveOutcome } from '../local/saved-evaluations';
import { editEvaluation } from './evaluation';
import { whyNotMeasure } from './evaluation-gate';
import { type EvaluationRow, isPinned, recipeOfRow, targetKey } from './evaluation-rows';
import type { Outcome, PlannedCell } from './evaluation-state';
import { cellsByRow, groupCells, measuringProgress, missingCells } from './evaluation-table';
import { scoredText } from './evaluation-texts';
import { beginJob, reportProgress } from './job';
import { editRecipe, notifyError, type Studio } from './studio';
import type { StudioState } from './studio-state';

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
  const secondsSince = () => (performance.now() - begun) / 1000;
  editEvaluation(studio, { work: { groups, at: 0 }, cost: null });
  const end = beginJob(studio, 'evaluation');
  try {
    for (const [at, group] of groups.entries()) {
      if (studio.store.getState().job?.canceling) return;
      const work = { groups, at };
      editEvaluation(studio, { work });
      const report = (progress: RunningProgress | null) =>
        reportProgress(studio, 'evaluation', measuringProgress(work, progress, secondsSince()));
      report(null);
      await measureGroup(studio, group, before, report);
    }
  } catch (thrown) {
    if (errorReport(thrown).code !== 'Canceled') notifyError(studio, thrown);
  } finally {
    editEvaluation(studio, { work: null });
    end();
  }
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
  const kept = new Set<number>();
  const keepModel = (index: number, { outcomes, bytes }: EvaluatedModel) => {
    if (kept.has(index)) return;
    kept.add(index);
    for (const [t, outcome] of outcomes.entries()) {
      const cell = rows[index]?.[t];
      if (cell) keep(studio, cell, 'report' in outcome ? { ...outcome, bytes } : outcome);
    }
  };
  const report = await studio.worker.evaluateMany(
    { targets, inputs, window, stride, engine: choice },
    (progress) => {
      // what does not fit side by side goes in batches; a batch that is done stays, also when the next is stopped
      for (const { index, model } of progress.finished ?? []) keepModel(index, model);
      onProgress(progress);
    },
  );
  const { cost } = studio.store.getState().evaluation;
  editEvaluation(studio, {
    cost: {
      models: (cost?.models ?? 0) + targets.length,
      bytesRead: (cost?.bytesRead ?? 0) + report.bytesRead,
      peakBytes: Math.max(cost?.peakBytes ?? 0, report.peakBytes),
    },
  });
  for (const [index, model] of report.models.entries()) keepModel(index, model);
}

function keep(studio: Studio, cell: PlannedCell, outcome: Outcome): void {
  const { models, engine } = studio.store.getState();
  if ('report' in outcome && engine.info && isPinned(cell.target, models)) {
    const { report, bytes } = outcome;
    const kept = { key: cell.key, report, bytes, at: Date.now(), version: engine.info.version };
    // a browser without storage: the number lives as long as the tab
    saveOutcome(kept).catch(() => {});
  }
  studio.store.setState(({ evaluation: e }) => ({
    evaluation: {
      ...e,
      outcomes: new Map(e.outcomes).set(cell.key, outcome),
      lastOf: new Map(e.lastOf).set(cell.rowId, {
        target: targetKey(cell.target),
        title: cell.rowLabel,
      }),
    },
  }));
}
