/**
 * The items of a task: what is asked of a model for each row, with examples in front, as lm-evaluation-harness 0.4.13 puts
 * them together (`ConfigurableTask.fewshot_context`, `construct_requests`).
 */
import type { Row, RowValue } from '../dataset/rows';
import { AmalgamError } from '../errors';
import { displayName } from '../formats/names';
import { pythonRandom } from './python';
import { type Task, type TaskField, taskInvalid } from './task-file';
import { type CompiledField, openTemplates, readListText } from './template';

/** What is asked for one row. */
export interface Item {
  /** Row of the split. */
  docId: number;
  /** Pairs to be scored, or a whole text. */
  requests: { context: string; continuation: string }[] | { text: string };
  /** Texts whose lengths normalize; empty where there is no choice. */
  choices: string[];
  target: number | number[] | null;
  /** mc2: which choices are true. */
  labels?: number[];
}

/** The rows a task needs. */
export interface TaskRows {
  /** What is scored. */
  rows: Row[];
  /** Where examples are from; not needed without examples. */
  examples: Row[];
  /** What the rows are called in messages. */
  name: string;
}

export interface ItemOptions {
  limit: number | null;
  sampleSeed: number | null;
  fewshot: number;
  fewshotSeed: number;
}

/**
 * @throws AmalgamError `ColumnMissing` naming the column and the field that reads it, `TaskInvalid`, `TextEmpty` for a
 *   split without rows
 */
export async function buildItems(task: Task, source: TaskRows, options: ItemOptions): Promise<Item[]> {
  const { fewshot, fewshotSeed, limit, sampleSeed } = options;
  if (source.rows.length === 0) {
    throw new AmalgamError('TextEmpty', `${source.name} has no rows.`, 'Choose another split.');
  }
  const prompt = await openPrompt(task, source);
  const examples = fewshot > 0 ? source.examples.map(prompt.process) : [];
  // as the harness has it: the row itself is kept out where examples and items may come from the same split
  const mayRepeat = task.fewshotSplit === task.test;
  if (fewshot > 0 && examples.length < fewshot + (mayRepeat ? 1 : 0)) {
    throw tooFewExamples(task.name, fewshot, examples.length);
  }
  const draw = exampleSampler(task, examples, fewshot, mayRepeat, fewshotSeed);
  const chosen = chooseRows(source.rows.length, limit, sampleSeed);
  return chosen.map((docId) => {
    const row = prompt.process(source.rows[docId]!);
    const shots = draw(row).map(prompt.example).join('');
    return { docId, ...prompt.ask(row, `${prompt.describe(row)}${shots}`) };
  });
}

function tooFewExamples(task: string, wanted: number, rows: number): AmalgamError {
  return taskInvalid(
    task,
    `${wanted} examples cannot be drawn from ${rows} other rows`,
    'Ask for fewer examples.',
  );
}

/** The first rows, or some by a seed, in their order. */
function chooseRows(count: number, limit: number | null, seed: number | null): number[] {
  const all = Array.from({ length: count }, (_, i) => i);
  const wanted = Math.min(count, limit ?? count);
  if (seed === null) return all.slice(0, wanted);
  return pythonRandom(seed)
    .sample(all, wanted)
    .sort((a, b) => a - b);
}

/** `ContextSampler.sample`, `FirstNSampler.sample`: one random generator for all items of the task. */
function exampleSampler(
  { name, sampler }: Task,
  examples: readonly Row[],
  count: number,
  mayRepeat: boolean,
  seed: number,
): (row: Row) => readonly Row[] {
  if (count === 0) return () => [];
  const random = pythonRandom(seed);
  const keys = new Map(examples.map((row) => [row, JSON.stringify(row)]));
  return (row) => {
    const own = mayRepeat ? JSON.stringify(row) : '';
    const others = (rows: readonly Row[]) => rows.filter((one) => keys.get(one) !== own);
    if (sampler === 'first_n') return (mayRepeat ? others(examples) : examples).slice(0, count);
    if (!mayRepeat) return random.sample(examples, count);
    const drawn = others(random.sample(examples, count + 1)).slice(0, count);
    if (drawn.length === count) return drawn;
    const rest = others(examples);
    if (rest.length < count) throw tooFewExamples(name, count, rest.length);
    return random.sample(rest, count);
  };
}

interface Prompt {
  process(row: Row): Row;
  describe(row: Row): string;
  /** A row with its answer, as an example. */
  example(row: Row): string;
  ask(row: Row, before: string): Omit<Item, 'docId'>;
}

async function openPrompt(task: Task, source: TaskRows): Promise<Prompt> {
  const templates = await openTemplates();
  const { targetDelimiter, fewshotDelimiter, outputType } = task;
  const compile = (name: string, field: TaskField) => templates.compile(name, field);
  const processing = task.processDocs ? compile('process_docs', { call: task.processDocs }) : null;
  const process = (row: Row): Row => (processing ? (processing.compute(row) as Row) : row);
  const choice = task.docToChoice && compile('doc_to_choice', task.docToChoice);
  const target = compile('doc_to_target', task.docToTarget);
  const text = compile('doc_to_text', task.docToText);
  const labels = task.processResults ? compile('process_results', { call: task.processResults }) : null;
  const description = compile('description', { template: task.description });

  const [first] = source.rows;
  const raw = new Set(Object.keys(first!));
  if (processing) requireColumns(processing, 'process_docs', raw, task, source.name);
  const columns = processing ? new Set(Object.keys(process(first!))) : raw;
  const fields: [string, CompiledField | null][] = [
    ['doc_to_text', text],
    ['doc_to_target', target],
    ['doc_to_choice', choice],
    ['process_results', labels],
    ...(task.description === '' ? [] : ([['description', description]] as [string, CompiledField][])),
  ];
  for (const [name, field] of fields) {
    // a word that is no column is a text
    const isWord = field && isPlainWord(task, name) && !columns.has(field.columns[0]!);
    if (field && !isWord) requireColumns(field, name, columns, task, source.name);
    else if (isWord) throw columnMissing(field.columns[0]!, name, columns, task, source.name);
  }

  /** A value that becomes part of a prompt. */
  const asText = (field: string, value: RowValue): string => {
    if (typeof value !== 'object' || value === null) return String(value);
    throw taskInvalid(task.name, `“${field}” gives a list or a mapping where a text is needed`);
  };
  const choicesOf = (row: Row): string[] => {
    if (!choice) return [];
    const value = choice.compute(row);
    const list = typeof value === 'string' ? readListText('doc_to_choice', value) : value;
    if (Array.isArray(list) && list.length > 0) return list.map((one) => asText('doc_to_choice', one));
    throw taskInvalid(task.name, '“doc_to_choice” gives no list of choices');
  };
  /** A whole number where the harness takes the text for one. */
  const numbered = (value: RowValue): RowValue =>
    typeof value === 'string' && choice && /^\d+$/.test(value) ? Number(value) : value;
  const targetOf = (row: Row): RowValue => {
    const value = numbered(target.compute(row));
    if (typeof value !== 'string' || !/^\[.*\]$/s.test(value)) return value;
    try {
      return readListText('doc_to_target', value);
    } catch {
      return value;
    }
  };
  const textOf = (row: Row): number | string => {
    const value = numbered(text.compute(row));
    return typeof value === 'number' ? value : asText('doc_to_text', value);
  };
  const labelsOf = (row: Row, compute: CompiledField): number[] => {
    const value = compute.compute(row);
    if (Array.isArray(value)) return value.map((one) => Number(asText('process_results', one)));
    throw taskInvalid(task.name, '“process_results” gives no list');
  };

  const answerText = (row: Row): string => {
    const value = targetOf(row);
    if (typeof value === 'number' && choice && typeof textOf(row) !== 'number') {
      return choicesOf(row)[value] ?? String(value);
    }
    return asText('doc_to_target', Array.isArray(value) ? (value[0] ?? '') : value);
  };
  return {
    process,
    describe: (row) => (task.description === '' ? '' : asText('description', description.compute(row))),
    example(row) {
      const question = textOf(row);
      // where the context changes with the choice, that of the right one
      const asked = typeof question === 'number' ? (choicesOf(row)[question] ?? '') : question;
      return `${asked}${targetDelimiter}${answerText(row)}${fewshotDelimiter}`;
    },
    ask(row, before) {
      if (outputType === 'loglikelihood_rolling') {
        return { requests: { text: asText('doc_to_target', targetOf(row)) }, choices: [], target: null };
      }
      const question = textOf(row);
      if (outputType === 'loglikelihood') {
        const pair = {
          context: `${before}${question}`,
          continuation: asText('doc_to_target', targetOf(row)),
        };
        return { requests: [pair], choices: [], target: null };
      }
      const choices = choicesOf(row);
      const own = labels ? { labels: labelsOf(row, labels) } : {};
      if (typeof question === 'number') {
        const continuation = `${targetDelimiter}${asText('doc_to_target', targetOf(row))}`;
        const requests = choices.map((context) => ({ context: `${before}${context}`, continuation }));
        return { requests, choices, target: question, ...own };
      }
      const context = `${before}${question}`;
      const requests = choices.map((one) => ({ context, continuation: `${targetDelimiter}${one}` }));
      return { requests, choices, target: rightChoice(task, targetOf(row), choices), ...own };
    },
  };
}

/** @throws AmalgamError `TaskInvalid` for an answer that is none of the choices */
function rightChoice(task: Task, value: RowValue, choices: readonly string[]): number | number[] {
  const one = (answer: RowValue): number => {
    const said = typeof answer === 'object' ? JSON.stringify(answer) : String(answer);
    const at = typeof answer === 'number' ? answer : choices.indexOf(said);
    if (Number.isInteger(at) && at >= 0 && at < choices.length) return at;
    throw taskInvalid(
      task.name,
      `the answer “${displayName(said)}” is none of the ${choices.length} choices`,
      'An answer is the number of a choice, counted from 0, or its text.',
    );
  };
  return Array.isArray(value) ? value.map(one) : one(value);
}

function isPlainWord(task: Task, name: string): boolean {
  const field = {
    doc_to_text: task.docToText,
    doc_to_target: task.docToTarget,
    doc_to_choice: task.docToChoice,
  }[name];
  return field !== null && field !== undefined && 'template' in field && /^\w+$/.test(field.template);
}

function requireColumns(
  { columns }: CompiledField,
  field: string,
  known: ReadonlySet<string>,
  task: Task,
  name: string,
): void {
  const missing = columns.find((column) => !known.has(column));
  if (missing !== undefined) throw columnMissing(missing, field, known, task, name);
}

function columnMissing(
  column: string,
  field: string,
  known: ReadonlySet<string>,
  task: Task,
  name: string,
): AmalgamError {
  const list = [...known].map((one) => `“${displayName(one)}”`).join(', ');
  return new AmalgamError(
    'ColumnMissing',
    `${name} has no column “${displayName(column)}”, which “${field}” of the task ${task.name} reads.`,
    `Its columns are ${list}.`,
  );
}
