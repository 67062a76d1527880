/**
 * The items of a task: what is asked of a model for each row, with examples in front, as lm-evaluation-harness 0.4.13 puts
 * them together (`ConfigurableTask.fewshot_context`, `construct_requests`).
 */

import { AmalgamError } from '../errors';
import type { Row } from '../foreign/parquet';
import { counted } from '../formats/quantity';
import { pythonRandom } from './python';
import { type Question, RowFault, type Task, taskInvalid } from './task';

/** Requests of one row. */
export interface Item extends Pick<Question, 'choices' | 'target' | 'labels' | 'written'> {
  /** Row of the split. */
  docId: number;
  /** Pairs to be scored. */
  requests: { context: string; continuation: string }[];
  /** Why the row cannot be asked: it is left out, and counted. */
  refused?: string;
}

/** The rows a task needs. */
interface TaskRows {
  /** Rows that are scored. */
  rows: readonly Row[];
  /** Rows that examples are taken from; not needed without examples. */
  examples: readonly Row[];
  /** Name of the rows in messages. */
  name: string;
}

export interface ItemOptions {
  limit: number | null;
  sampleSeed: number | null;
  fewshot: number;
  fewshotSeed: number;
}

/** @throws AmalgamError `TaskInvalid`, also where no row can be asked; `TextEmpty` for a split without rows */
export function buildItems(task: Task, source: TaskRows, options: ItemOptions): Item[] {
  const { fewshot, fewshotSeed, limit, sampleSeed } = options;
  if (source.rows.length === 0) {
    throw new AmalgamError('TextEmpty', `${source.name} has no rows.`, 'Choose another split.');
  }
  const questionOf = (row: Row): Question | RowFault => {
    try {
      return task.ask(row);
    } catch (thrown) {
      if (thrown instanceof RowFault) return thrown;
      throw thrown;
    }
  };
  const examples = fewshot > 0 ? source.examples.filter((row) => !(questionOf(row) instanceof RowFault)) : [];
  // as the harness has it: the row itself is left out where examples and items may come from the same split
  const mayRepeat = task.fewshotSplit === task.test;
  if (fewshot > 0 && examples.length < fewshot + (mayRepeat ? 1 : 0)) {
    throw tooFewExamples(task.name, fewshot, examples.length);
  }
  const draw = exampleSampler(task, examples, fewshot, mayRepeat, fewshotSeed);
  const example = (row: Row) => {
    const { contexts, continuations, target } = task.ask(row);
    const between = task.outputType === 'loglikelihood' ? ' ' : '';
    return `${contexts[target ?? 0]}${between}${continuations[target ?? 0]}\n\n`;
  };
  const items = chooseRows(source.rows.length, limit, sampleSeed).map((docId): Item => {
    const row = source.rows[docId]!;
    const shots = draw(row).map(example).join('');
    const question = questionOf(row);
    if (question instanceof RowFault) {
      return {
        docId,
        requests: [],
        choices: [],
        target: null,
        refused: `The row is left out: ${question.message}.`,
      };
    }
    const { contexts, continuations, ...more } = question;
    const before = `${task.description}${shots}`;
    const requests = contexts.map((context, i) => ({
      context: `${before}${context}`,
      continuation: continuations[i]!,
    }));
    return { docId, requests, ...more };
  });
  const [first] = items;
  if (items.every(({ refused }) => refused !== undefined)) {
    throw taskInvalid(
      task.name,
      `no row of ${source.name} can be asked. Row ${first!.docId + 1}: ${first!.refused}`.replace(/\.$/, ''),
      `The task reads ${task.columns.map((column) => `“${column}”`).join(', ')}.`,
    );
  }
  return items;
}

function tooFewExamples(task: string, wanted: number, rows: number): AmalgamError {
  return taskInvalid(
    task,
    `${counted(wanted, 'example')} cannot be drawn from ${counted(rows, 'other row')}`,
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
