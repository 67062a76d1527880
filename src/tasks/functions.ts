/**
 * What some of the harness's tasks compute with Python (0.4.13, `lm_eval/tasks/<task>`), as functions of ours. A task file
 * names one with `!function`.
 */
import type { Row, RowValue } from '../dataset/rows';
import { capitalize, strip } from './python';

interface TaskFunction {
  /** Columns that it reads. */
  columns: readonly string[];
  run(row: Row): RowValue;
}

/** One value of a row, as text. */
const text = (row: Row, column: string): string => String(row[column] ?? '');

/** HellaSwag: marks of WikiHow's headings are artifacts (`hellaswag/utils.py`, `preprocess`). */
function withoutMarks(raw: string): string {
  return strip(raw)
    .replaceAll(' [title]', '. ')
    .replace(/\[[^\n]*?\]/g, '')
    .replaceAll('  ', ' ');
}

/** WinoGrande: where the blank is (`winogrande/preprocess_winogrande.py`). */
const blank = (row: Row): number => text(row, 'sentence').indexOf('_');

export const FUNCTIONS: Record<string, TaskFunction> = {
  'hellaswag.process_docs': {
    columns: ['ctx_a', 'ctx_b', 'activity_label', 'endings', 'label'],
    run: (row) => ({
      ...row,
      query: withoutMarks(
        `${text(row, 'activity_label')}: ${text(row, 'ctx_a')} ${capitalize(text(row, 'ctx_b'))}`,
      ),
      choices: (row.endings as RowValue[]).map((ending) => withoutMarks(String(ending))),
      gold: Number(row.label),
    }),
  },
  'winogrande.doc_to_text': {
    columns: ['answer'],
    run: (row) => Number(row.answer) - 1,
  },
  'winogrande.doc_to_target': {
    columns: ['sentence'],
    run: (row) => strip(text(row, 'sentence').slice(blank(row) + 1)),
  },
  'winogrande.doc_to_choice': {
    columns: ['sentence', 'option1', 'option2'],
    run: (row) =>
      [text(row, 'option1'), text(row, 'option2')].map(
        (option) => text(row, 'sentence').slice(0, blank(row)) + option,
      ),
  },
  // which choices are true; their share of the probability is the metric (`truthfulqa/utils.py`, `process_results_mc2`)
  'truthfulqa.process_results_mc2': {
    columns: ['mc2_targets'],
    run: (row) => (row.mc2_targets as { labels: RowValue[] }).labels,
  },
};
