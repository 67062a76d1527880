/** A task: where its rows are, and what is asked of a model for each. */

import { AmalgamError } from '../errors';
import type { Row, RowValue } from '../foreign/parquet';
import { displayName } from '../formats/names';
import { counted } from '../formats/quantity';
import type { OutputType } from '../reports/tasks';

export interface Task {
  name: string;
  version: number | null;
  outputType: OutputType;
  /** On the Hub, or the text of a file of rows, one JSON object a line. */
  data: { dataset: string; subset: string | null } | { name: string; lines: string };
  training: string | null;
  validation: string | null;
  test: string | null;
  /** Split that examples are taken from; null: training rows, else those of validation, else those of test. */
  fewshotSplit: string | null;
  sampler: 'default' | 'first_n';
  description: string;
  metrics: string[];
  /** Columns that `ask` reads. */
  columns: string[];
  /** @throws RowFault */
  ask(row: Row): Question;
}

/** Question of one row: continuations, each after its own context or after the same. */
export interface Question {
  contexts: string[];
  continuations: string[];
  /** Texts whose lengths normalize; empty where there is no choice. */
  choices: string[];
  /** The right choice; null where there is none. */
  target: number | null;
  /** mc2: which choices are true; of two texts how alike they are; of the texts behind a question which answer it. */
  labels?: number[];
  written?: WrittenQuestion;
}

/** Of a question whose answer the model writes. */
interface WrittenQuestion {
  /** Texts that end the answer. */
  until: string[];
  maxTokens: number;
  /** Asked by the chat template, where the model has one. */
  chat: boolean;
  /** Checks that count each for itself. */
  checks?: number;
  /** Metrics of an answer. */
  values(answer: string): Record<string, number>;
}

/** A row that cannot be asked, and why: it is left out and counted. */
export class RowFault extends Error {}

/** Choices after one context, as lm-evaluation-harness joins them. */
export function choiceQuestion(context: string, choices: string[], target: number): Question {
  if (!(Number.isInteger(target) && target >= 0 && target < choices.length)) {
    throw new RowFault(`its answer is none of the ${counted(choices.length, 'choice')}`);
  }
  const continuations = choices.map((choice) => ` ${choice}`);
  return { contexts: choices.map(() => context), continuations, choices, target };
}

/** A text of a row. Python would print other values in its own way: they are no part of a prompt. @throws RowFault */
export function textOf(row: Row, column: string): string {
  return asText(row[column], column);
}

/** A list of texts of a row. @throws RowFault */
export function textsOf(row: Row, column: string): string[] {
  const value = row[column];
  if (Array.isArray(value) && value.length > 0) return value.map((item) => asText(item, column));
  throw new RowFault(`its “${column}” is no list of texts`);
}

function asText(value: RowValue | undefined, column: string): string {
  if (typeof value === 'string') return value;
  throw new RowFault(
    `its “${column}” holds ${value === null || value === undefined ? 'nothing' : JSON.stringify(value).slice(0, 40)}, which is no text`,
  );
}

/** An object of a row, for its own columns. @throws RowFault */
export function recordOf(row: Row, column: string): Row {
  const value = row[column];
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw new RowFault(`its “${column}” has no fields`);
}

/** A whole number, or the text of one. @throws RowFault */
export function numberOf(row: Row, column: string): number {
  const value = row[column];
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  if (typeof number === 'number' && Number.isInteger(number)) return number;
  throw new RowFault(`its “${column}” is no number`);
}

/** The error for a task that cannot be used. */
export function taskInvalid(name: string, why: string, hint: string): AmalgamError {
  return new AmalgamError('TaskInvalid', `The task ${displayName(name)} cannot be used: ${why}.`, hint);
}

// Tasks of embeddings: their questions are texts alone.

const texts = (contexts: string[], labels: number[]): Question => ({
  ...{ contexts, labels, choices: [], target: null },
  continuations: contexts.map(() => ''),
});

/** Two texts, and how alike they are by somebody's judgment, on any scale. */
export const similarity = {
  outputType: 'similarity',
  metrics: ['spearman'],
  columns: ['sentence1', 'sentence2', 'score'],
  ask({ score, ...row }) {
    const value = typeof score === 'string' && score.trim() !== '' ? Number(score) : score;
    if (typeof value !== 'number' || !Number.isFinite(value)) throw new RowFault('its “score” is no number');
    return texts([textOf(row, 'sentence1'), textOf(row, 'sentence2')], [value]);
  },
} as const satisfies Partial<Task> as Pick<Task, 'outputType' | 'metrics' | 'columns' | 'ask'>;

/** A question, texts that answer it, and some that do not; it is asked among those of all rows. */
export const retrieval = {
  outputType: 'retrieval',
  metrics: ['ndcg_at_10'],
  columns: ['query', 'positive'],
  ask(row) {
    const list = (column: string) => (typeof row[column] === 'string' ? [row[column]] : textsOf(row, column));
    const [right, wrong] = [list('positive'), row.negative === undefined ? [] : list('negative')];
    return texts([textOf(row, 'query'), ...right, ...wrong], [...right.map(() => 1), ...wrong.map(() => 0)]);
  },
} as const satisfies Partial<Task> as Pick<Task, 'outputType' | 'metrics' | 'columns' | 'ask'>;

/** A table of two texts and a score a line, parted by tabs, as JSON lines; a first line without a number names its columns. */
export function pairLines(table: string): string {
  const rows = table
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '')
    .map((line) => line.split('\t'));
  const headed = Number.isNaN(Number(rows[0]?.at(-1)?.trim() || Number.NaN));
  return rows
    .slice(headed ? 1 : 0)
    .map((cells) => {
      const [sentence1 = '', sentence2 = '', score = ''] = cells.slice(-3);
      return JSON.stringify({ sentence1, sentence2, score });
    })
    .join('\n');
}
