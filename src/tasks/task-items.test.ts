import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { openParquet, type Row, type RowValue } from '../foreign/parquet';
import { openTask, ownTask, shippedTasks } from './shipped';
import { buildItems, type Item, type ItemOptions } from './task-items';

const FIXTURES = new URL('../../e2e/fixtures/tasks/', import.meta.url);
const read = (name: string) => new Uint8Array(readFileSync(new URL(name, FIXTURES)));

async function records(name: string, columns: readonly string[]): Promise<Row[]> {
  const bytes = read(name);
  const file = await openParquet(name, bytes.length, async (begin, end) => bytes.slice(begin, end));
  file.select(columns, Number.POSITIVE_INFINITY);
  const rows: Row[] = [];
  for (let part = await file.next(); part.length > 0; part = await file.next()) rows.push(...part);
  return rows;
}

interface Prompt {
  context?: string;
  contexts?: string[];
  continuation?: string;
  continuations?: string[];
  target: number | null;
}
/** Made by the task files of lm-evaluation-harness 0.4.13 with jinja2 and CPython's random. */
const prompts = JSON.parse(new TextDecoder().decode(read('prompts.json'))) as Record<
  string,
  { row?: Row } & Record<string, Prompt[]>
>;

const NONE: ItemOptions = { limit: null, sampleSeed: null, fewshot: 0, fewshotSeed: 1234 };
const build = (name: string, rows: Row[], examples: Row[] = [], options: Partial<ItemOptions> = {}) =>
  buildItems(openTask({ name }), { rows, examples, name: `rows of ${name}` }, { ...NONE, ...options });

function asPrompt({ requests, target }: Item): Prompt {
  const contexts = [...new Set(requests.map((r) => r.context))];
  const continuations = requests.map((r) => r.continuation);
  const [continuation = ''] = continuations;
  return contexts.length > 1
    ? { contexts, continuation, target: target as number }
    : { context: contexts[0]!, continuations, target: target as number | null };
}

describe('prompts as the harness makes them', () => {
  const splits: [string, string, string][] = [
    [
      'hellaswag',
      'hellaswag/data/validation-00000-of-00001.parquet',
      'hellaswag/data/train-00000-of-00001.parquet',
    ],
    [
      'arc_easy',
      'ai2_arc/ARC-Easy/test-00000-of-00001.parquet',
      'ai2_arc/ARC-Easy/train-00000-of-00001.parquet',
    ],
  ];
  test.each(splits)(
    '%s: without examples, and with some drawn by the seed',
    async (name, items, examples) => {
      const { columns } = openTask({ name });
      const [rows, train] = [await records(items, columns), await records(examples, columns)];
      for (const [shots, wanted] of Object.entries(prompts[name]!)) {
        const made = build(name, rows, train, { fewshot: Number(shots) });
        expect(made.map(asPrompt)).toEqual(wanted);
      }
    },
  );

  test.each(Object.keys(prompts).filter((name) => prompts[name]!.row))(
    '%s: a row of its schema',
    async (name) => {
      const made = build(name, [prompts[name]!.row!]);
      expect(made.map(asPrompt)).toEqual(prompts[name]!['0']);
      if (name === 'truthfulqa_mc2') expect(made[0]!.labels).toEqual([1, 1, 0]);
    },
  );
});

describe('which items', () => {
  const rows = Array.from({ length: 40 }, (_, i) => ({ text: `row ${i} ends here` }));
  const ids = (options: Partial<ItemOptions>) =>
    build('lambada_openai', rows, [], options).map(({ docId }) => docId);

  test('the first ones, or some drawn by a seed', async () => {
    expect(ids({ limit: 3 })).toEqual([0, 1, 2]);
    const drawn = ids({ limit: 5, sampleSeed: 7 });
    expect(drawn).toEqual([...drawn].sort((a, b) => a - b));
    expect(new Set(drawn).size).toBe(5);
    expect(ids({ limit: 5, sampleSeed: 7 })).toEqual(drawn);
    expect(ids({ limit: 5, sampleSeed: 8 })).not.toEqual(drawn);
  });
});

describe('R59: rows that do not fit', () => {
  const piqa = { goal: 'a', sol1: 'b', sol2: 'c', label: 1 };
  const arc = { question: 'q', choices: { text: ['a', 'b'], label: ['A', 'B'] }, answerKey: 'B' };
  const swag = { ctx_a: 'a', ctx_b: 'b', activity_label: 'c', endings: ['d', 'e'], label: '1' };
  const winogrande = { sentence: 'x _ y', option1: 'a', option2: 'b', answer: '2' };
  test.each<[string, Row, Row, RegExp]>([
    ['piqa', piqa, { ...piqa, label: 2 }, /its answer is none of the 2 choices/],
    ['piqa', piqa, { ...piqa, label: -1 }, /its answer is none of the 2 choices/],
    ['piqa', piqa, { ...piqa, goal: true }, /its “goal” holds true, which is no text/],
    ['piqa', piqa, { ...piqa, sol1: 1.5 }, /its “sol1” holds 1.5, which is no text/],
    ['piqa', piqa, { ...piqa, sol1: null }, /its “sol1” holds nothing/],
    ['arc_easy', arc, { ...arc, answerKey: 'E' }, /its answer is none of the 2 choices/],
    [
      'arc_easy',
      arc,
      { ...arc, choices: { text: ['a', ['b']], label: ['A', 'B'] } },
      /holds \["b"\], which is no text/,
    ],
    ['arc_easy', arc, { ...arc, choices: 'a' }, /its “choices” has no fields/],
    ['hellaswag', swag, { ...swag, label: '' }, /its “label” is no number/],
    ['hellaswag', swag, { ...swag, endings: [] }, /its “endings” is no list of texts/],
    ['winogrande', winogrande, { ...winogrande, answer: '' }, /its “answer” is no number/],
  ])('%s: one is left out and counted, all of them are an error', (name, good, bad, why) => {
    const items = build(name, [good, bad, good]);
    expect(items.map(({ refused }) => refused)).toEqual([undefined, expect.stringMatching(why), undefined]);
    expect(items[2]!.target).toBe(1);
    expect(items[1]!.requests).toEqual([]);
    expect(() => build(name, [bad, bad])).toThrow(why);
    // nor is it an example
    const shown = build(name, [good], [bad, bad, good, { ...good, extra: 1 }], { fewshot: 1 });
    expect(shown[0]!.refused).toBeUndefined();
  });
});

test('every shipped task opens, and one that is a whole group says how', () => {
  for (const { name, subsets } of shippedTasks()) {
    const task = openTask({ name: subsets[0] ? `${name}_${subsets[0]}` : name });
    expect(task.name.startsWith(name)).toBe(true);
  }
  expect(shippedTasks().find(({ name }) => name === 'mmlu')!.subsets).toHaveLength(57);
  expect(() => openTask({ name: 'mmlu' })).toThrow(/is 57 tasks/);
  for (const name of ['mmlu_sailing', 'constructor']) {
    expect(() => openTask({ name })).toThrow(`There is no task “${name}”`);
  }
});

describe('tasks of one’s own', () => {
  const task = ownTask('sums.jsonl', '');
  const ask = (rows: Row[], options: Partial<ItemOptions> = {}) =>
    buildItems(task, { rows, examples: rows, name: 'sums' }, { ...NONE, ...options });

  test('question, choices and the answer by number or text', () => {
    const items = ask([
      { question: 'Two and two?', choices: ['four', 'five'], answer: 0 },
      { question: 'Two and three?', choices: ['four', 'five'], answer: 'five' },
    ]);
    expect(task.name).toBe('sums');
    expect(items.map(({ target }) => target)).toEqual([0, 1]);
    expect(asPrompt(items[0]!)).toEqual({
      context: 'Question: Two and two?\nAnswer:',
      continuations: [' four', ' five'],
      target: 0,
    });
  });

  test.each<[RowValue, RowValue[], number | undefined]>([
    [true, ['True', 'False'], 0],
    [false, ['True', 'False'], 1],
    [false, ['yes', 'no'], 1],
    [true, ['no', 'yes'], 1],
    [true, ['four', 'five'], undefined],
    [true, ['yes', 'true'], undefined],
    [1, [true, false], undefined],
    ['1', ['a', 'b'], undefined],
    [0.5, ['a', 'b'], undefined],
    [null, ['a', 'b'], undefined],
    [['a'], ['a', 'b'], undefined],
  ])('the answer %j to %j is the choice %s', (answer, choices, target) => {
    const sound = { question: 'q', choices: ['x'], answer: 0 };
    const [item] = ask([{ question: 'q', choices, answer }, sound]);
    expect(item!.refused === undefined ? item!.target : undefined).toBe(target);
  });

  test('another kind of file is refused, and examples that are all the row itself', () => {
    expect(() => openTask({ file: { name: 'own.yaml', text: 'task: own' } })).toThrow(
      /it is no file of rows/,
    );
    const same = Array.from({ length: 3 }, () => ({ question: 'q', choices: ['a'], answer: 0 }));
    expect(() =>
      buildItems(task, { rows: same, examples: same, name: 'sums' }, { ...NONE, fewshot: 1 }),
    ).toThrow(/1 example cannot be drawn from 0 other rows/);
  });
});
