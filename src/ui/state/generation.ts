/** Actions of the Try tab: the same prompt continued by base, contributors and merge. */
import { errorReport } from '../../errors';
import type { GenerateReport, GenerationSettings, RunningProgress } from '../../reports/evaluate';
import { type EvaluationRow, evaluationRows } from './evaluation-rows';
import type { GenerationColumn } from './generation-state';
import { beginJob, reportProgress } from './job';
import { runningProgress } from './job-state';
import { whyNotWrite } from './measure';
import { editSlice, type Studio, showTab } from './studio';

export function editGenerationSettings(studio: Studio, change: Partial<GenerationSettings>): void {
  editSlice(studio, 'generation', ({ settings }) => ({ settings: { ...settings, ...change } }));
}

/** The columns of these rows, empty: the models and the recipe's own merge. */
export function emptyColumns(rows: readonly EvaluationRow[]): GenerationColumn[] {
  return rows
    .filter((r) => r.group === 'models' || r.current)
    .map(({ id, label, color, target, method }) => ({
      id,
      label: method ? `merge, ${label}` : label,
      color,
      target,
      status: 'waiting',
      text: '',
      progress: null,
      report: null,
      error: null,
    }));
}

/** Continues the prompt by every model, one after the other; a model that cannot shows why. Never rejects. */
export async function write(studio: Studio, rows: readonly EvaluationRow[]): Promise<void> {
  const before = studio.store.getState();
  if (whyNotWrite(before) !== null) return;
  const { settings } = before.generation;
  const columns = emptyColumns(rows);
  editSlice(studio, 'generation', { columns, written: settings });
  const end = beginJob(studio, 'generation');
  try {
    for (const { id, target } of columns) {
      if (studio.store.getState().job?.canceling) break;
      editColumn(studio, id, { status: 'writing' });
      try {
        const report: GenerateReport = await studio.worker.generate(
          { target, ...settings, engine: before.engine.choice },
          (progress) => follow(studio, id, progress),
        );
        editColumn(studio, id, { status: 'done', report, text: report.text });
      } catch (thrown) {
        const error = errorReport(thrown);
        if (error.code === 'Canceled') break;
        editColumn(studio, id, { status: 'failed', error });
      }
    }
  } finally {
    editColumns(studio, ({ status }) =>
      status === 'waiting' || status === 'writing' ? { status: 'canceled' } : {},
    );
    end();
  }
}

function follow(studio: Studio, id: string, progress: RunningProgress): void {
  reportProgress(studio, 'generation', runningProgress(progress));
  const { phase, done, rate, text } = progress;
  if (phase !== 'running') return;
  editColumns(studio, (c) =>
    // messages may arrive after the report, which has the whole text
    c.id === id && c.status === 'writing' ? { text: c.text + (text ?? ''), progress: { done, rate } } : {},
  );
}

function editColumn(studio: Studio, id: string, change: Partial<GenerationColumn>): void {
  editColumns(studio, (c) => (c.id === id ? change : {}));
}

function editColumns(studio: Studio, edit: (column: GenerationColumn) => Partial<GenerationColumn>): void {
  editSlice(studio, 'generation', ({ columns }) => ({ columns: columns.map((c) => ({ ...c, ...edit(c) })) }));
}

// The step after a merge.

/** Has base, contributors and merge continue the same prompt. Never rejects. */
export async function tryMerge(studio: Studio): Promise<void> {
  showTab(studio, 'try');
  const { recipe, models } = studio.store.getState();
  await write(studio, evaluationRows(recipe, models));
}
