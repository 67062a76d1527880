import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { readRecords } from '../dataset/parquet-file';
import type { Row } from '../dataset/rows';
import { AmalgamError } from '../errors';
import { bufferSource } from '../sources/buffer-source';
import { openTask, shippedTasks } from './shipped';
import { parseYaml, readTask } from './task-file';
import { buildItems, type Item, type ItemOptions } from './task-items';

const FIXTURES = new URL('../../e2e/fixtures/tasks/', import.meta.url);
const read = (name: string) => new Uint8Array(readFileSync(new URL(name, FIXTURES)));

async function records(name: string): Promise<Row[]> {
  const rows: Row[] = [];
  for await (const part of readRecords(bufferSource(read(name), name), name)) rows.push(...part);
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
  buildItems(openTask({ name }).task, { rows, examples, name: `rows of ${name}` }, { ...NONE, ...options });

function asPrompt({ requests, target }: Item): Prompt {
  if (!Array.isArray(requests)) throw new Error('a whole text');
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
      const [rows, train] = [await records(items), await records(examples)];
      for (const [shots, wanted] of Object.entries(prompts[name]!)) {
        const made = await build(name, rows, train, { fewshot: Number(shots) });
        expect(made.map(asPrompt)).toEqual(wanted);
      }
    },
  );

  test.each(Object.keys(prompts).filter((name) => prompts[name]!.row))(
    '%s: a row of its schema',
    async (name) => {
      const made = await build(name, [prompts[name]!.row!]);
      expect(made.map(asPrompt)).toEqual(prompts[name]!['0']);
      if (name === 'truthfulqa_mc2') expect(made[0]!.labels).toEqual([1, 1, 0]);
    },
  );
});

describe('which items', () => {
  const rows = Array.from({ length: 40 }, (_, i) => ({ text: `row ${i} ends here` }));
  const ids = async (options: Partial<ItemOptions>) =>
    (await build('lambada_openai', rows, [], options)).map(({ docId }) => docId);

  test('the first ones, or some drawn by a seed', async () => {
    expect(await ids({ limit: 3 })).toEqual([0, 1, 2]);
    const drawn = await ids({ limit: 5, sampleSeed: 7 });
    expect(drawn).toEqual([...drawn].sort((a, b) => a - b));
    expect(new Set(drawn).size).toBe(5);
    expect(await ids({ limit: 5, sampleSeed: 7 })).toEqual(drawn);
    expect(await ids({ limit: 5, sampleSeed: 8 })).not.toEqual(drawn);
  });
});

describe('rows that do not fit', () => {
  const refusal = async (name: string, row: Row) => {
    const thrown = await build(name, [row]).catch((e: unknown) => e as { code: string; message: string });
    return 'code' in thrown ? `${thrown.code}: ${thrown.message}` : 'none';
  };
  test('a missing column is named with the field that reads it', async () => {
    expect(await refusal('piqa', { goal: 'a', sol1: 'b', label: 0 })).toMatch(
      /^ColumnMissing: rows of piqa has no column “sol2”, which “doc_to_choice” of the task piqa reads/,
    );
    expect(await refusal('hellaswag', { ctx_a: 'a', ctx_b: 'b', endings: [], label: '0' })).toMatch(
      /^ColumnMissing: .*“activity_label”, which “process_docs”/,
    );
    expect(
      await refusal('openbookqa', { question: 'a', choices: { text: [], label: [] }, answerKey: 'A' }),
    ).toMatch(/^ColumnMissing: .*“question_stem”, which “doc_to_text”/);
  });
  test('an answer that is none of the choices', async () => {
    expect(await refusal('piqa', { goal: 'a', sol1: 'b', sol2: 'c', label: 2 })).toMatch(
      /^TaskInvalid: .*the answer “2” is none of the 2 choices/,
    );
    const row = { question: 'q', choices: { text: ['a', 'b'], label: ['A', 'B'] }, answerKey: 'E' };
    expect(await refusal('arc_easy', row)).toMatch(
      /^TaskInvalid: The template of “doc_to_target”.*“E” is not in the list/,
    );
  });
});

test('every shipped task opens, and one that is a whole group says how', () => {
  for (const { name, subsets } of shippedTasks()) {
    const { task } = openTask({ name: subsets[0] ? `${name}_${subsets[0]}` : name });
    expect(task.name.startsWith(name)).toBe(true);
  }
  expect(() => openTask({ name: 'mmlu' })).toThrow(/is 57 tasks/);
  expect(() => openTask({ name: 'mmlu_sailing' })).toThrow(/There is no task “mmlu_sailing”/);
});

describe('tasks of one’s own', () => {
  const lines = '{"question":"Two and two?","choices":["four","five"],"answer":0}\n';
  test('rows alone: question, choices and the answer by number or text', async () => {
    const { task, lines: own } = openTask({ files: [{ name: 'sums.jsonl', text: lines }] });
    expect(task.name).toBe('sums');
    expect(own?.text).toBe(lines);
    const rows = [
      { question: 'Two and two?', choices: ['four', 'five'], answer: 0 },
      { question: 'Two and three?', choices: ['four', 'five'], answer: 'five' },
    ];
    const items = await buildItems(task, { rows, examples: [], name: 'sums' }, NONE);
    expect(items.map(({ target }) => target)).toEqual([0, 1]);
    expect(asPrompt(items[0]!)).toEqual({
      context: 'Question: Two and two?\nAnswer:',
      continuations: [' four', ' five'],
      target: 0,
    });
  });

  const yaml = (more: string) => ({
    name: 'own.yaml',
    text: `task: own\ndataset_path: json\ndataset_kwargs: { data_files: rows.jsonl }\noutput_type: multiple_choice\ntest_split: test\ndoc_to_text: "{{q}}"\ndoc_to_target: "{{a}}"\ndoc_to_choice: "{{[x, y]}}"\n${more}`,
  });
  test('a task file with its rows; blocks and line feeds stand as in jinja2', async () => {
    const file = yaml('description: "{% for w in [1, 2] %}\\n{{w}}{% endfor %}\\n\\n"\n');
    const { task } = openTask({ files: [file, { name: 'rows.jsonl', text: '' }] });
    const rows = [{ q: 'Q', a: 'B b', x: 'A “a”', y: 'B b' }];
    const [item] = await buildItems(task, { rows, examples: [], name: 'rows.jsonl' }, NONE);
    expect(asPrompt(item!)).toEqual({
      context: '\n1\n2\n\nQ',
      continuations: [' A “a”', ' B b'],
      target: 1,
    });
  });
  test.each([
    ['doc_to_image: x', /the field “doc_to_image” is not supported/],
    ['process_docs: !function utils.clean', /calls the Python function “utils.clean”/],
    ['metric_list: [{ metric: f1 }]', /the metric “f1” is not computed/],
    ['include: other.yaml', /the field “include” is not supported/],
    ['fewshot_config: { sampler: mine }', /the sampler “mine” is unknown/],
    ['num_fewshot: -1', /“num_fewshot” is not a whole number/],
    ['task: again', /unique/],
  ])('%s is refused', (more, why) => {
    expect(() => openTask({ files: [yaml(more), { name: 'rows.jsonl', text: '' }] })).toThrow(why);
  });
  test('what cannot be scored here is refused', () => {
    const generate = { name: 'g.yaml', text: 'task: g\ndataset_path: a/b\noutput_type: generate_until\n' };
    expect(() => openTask({ files: [generate] })).toThrow(/its output type is “generate_until”/);
    expect(() => openTask({ files: [yaml('')] })).toThrow(/its rows are in rows.jsonl/);
  });
});

describe('R59: task files and rows of somebody else', () => {
  const task = (more: string) =>
    `task: t\ndataset_path: json\ndataset_kwargs: { data_files: rows.jsonl }\noutput_type: multiple_choice\ntest_split: test\ndoc_to_text: ""\ndoc_to_target: 0\n${more}`;
  const ask = async (yaml: string, rows: Row[] = [{ a: 1 }], options: Partial<ItemOptions> = {}) => {
    try {
      const own = readTask(parseYaml(yaml, 't.yaml'), 't.yaml');
      const items = await buildItems(own, { rows, examples: rows, name: 'rows' }, { ...NONE, ...options });
      return `${items.length} items`;
    } catch (thrown) {
      if (!(thrown instanceof AmalgamError)) throw thrown;
      return `${thrown.code}: ${thrown.message}`;
    }
  };

  test.each([
    [
      'a function by the name of one of JavaScript’s',
      'doc_to_choice: !function constructor',
      /Python function/,
    ],
    ['a choice that is no text', 'doc_to_choice: [{ toString: 1 }, b]', /a choice in “doc_to_choice”/],
    [
      'lists in lists by the thousand',
      `doc_to_choice: ${'['.repeat(20_000)}`,
      /Maximum call stack|Flow sequence/,
    ],
    ['aliases', 'doc_to_choice: &a [x, y]\ntag: [*a, *a]', /no plain YAML/],
    ['a file without an end', `doc_to_choice: "${'x'.repeat(100_000)}"`, /longer than 100000 characters/],
    [
      'a metric without a name',
      'doc_to_choice: [x, y]\nmetric_list: [{ metric: { toString: 1 } }]',
      /“object” is not/,
    ],
  ])('%s is refused in words', async (_, more, message) => {
    expect(await ask(task(more))).toMatch(message);
  });

  test('an output type and a task by the name of what every object has', async () => {
    const yaml = task('doc_to_choice: [x, y]').replace('multiple_choice', 'constructor');
    expect(await ask(yaml)).toMatch(/TaskInvalid: .*its output type is “constructor”/);
    expect(() => openTask({ name: 'constructor' })).toThrow(/There is no task/);
  });

  test('rows in which something else stands where a text or a list should', async () => {
    expect(await ask(task('doc_to_choice: a'), [{ a: ['x', { b: 1 }] }])).toMatch(
      /“doc_to_choice” gives a list or a mapping/,
    );
    const labels = task('doc_to_choice: [x, y]\nprocess_results: !function truthfulqa.process_results_mc2');
    expect(await ask(labels, [{ mc2_targets: null }])).toMatch(/“process_results” cannot be computed/);
    expect(await ask(labels, [{ mc2_targets: {} }])).toMatch(/“process_results” gives no list/);
    const same = Array.from({ length: 3 }, () => ({ a: 'x' }));
    expect(await ask(task('doc_to_choice: [x, y]\nfewshot_split: test'), same, { fewshot: 1 })).toMatch(
      /1 examples cannot be drawn from 0 other rows/,
    );
  });
});
