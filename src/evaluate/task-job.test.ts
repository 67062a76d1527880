import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { diskFolder, SAMPLES, smallSample } from '../../e2e/disk-folder';
import type { Row } from '../foreign/parquet';
import { copyOf, type Recipe } from '../formats/recipe';
import { openModels } from '../host/models';
import { methodById } from '../merge/methods';
import { requireClean } from '../merge/plan/plan';
import { makePlan } from '../merge/plan/recipe-plan';
import type { RunTarget } from '../reports/evaluate';
import type { ScoreTasksRequest, TaskScore, TasksProgress } from '../reports/tasks';
import { openTask } from '../tasks/shipped';
import { encodePairs, type PairIds } from './encoded-pairs';
import { runAnswers } from './generation-job';
import { scoreAll } from './log-likelihood.test.cases';
import { openSample, sampleTokenizer } from './sample.test.fixture';
import { runTasks } from './task-job';

const ARITHMETIC: RunTarget = {
  recipe: {
    mergeMethod: 'task_arithmetic',
    baseModel: 'samples/base',
    models: ['samples/base+samples/kitchen', 'samples/base+samples/harbour', 'samples/workshop'].map(
      (model) => ({ model, parameters: { weight: 0.5 } }),
    ),
    parameters: {},
    amalgam: {},
  } as Recipe,
};
const FAMILY = [
  'samples/base',
  'samples/base+samples/kitchen',
  'samples/base+samples/harbour',
  'samples/workshop',
];

const NAMES = ['base', 'kitchen', 'harbour', 'workshop'];
const LEARNED = await Promise.all(NAMES.map((name) => diskFolder(`samples/${name}`, join(SAMPLES, name))));
const SMALL = await Promise.all(
  NAMES.map((name) => smallSample(`samples/${name}`, join(SAMPLES, name), { layers: 2, narrower: 4 })),
);

async function score(
  change: Partial<ScoreTasksRequest>,
  rows = vi.fn(),
  signal = new AbortController().signal,
  folders = SMALL,
) {
  const models = openModels(() => ({ url: 'https://hub.invalid' }));
  for (const folder of folders) await models.add(folder);
  const told: TasksProgress[] = [];
  const plan = vi.fn(async (target: RunTarget) => {
    const recipe = 'recipe' in target ? target.recipe : copyOf(target.model);
    const made = await makePlan(recipe, (ref) => models.open(ref), methodById);
    requireClean(made);
    return { plan: made, exact: 'model' in target };
  });
  const request: ScoreTasksRequest = {
    targets: [{ model: 'samples/base' }],
    tasks: [{ name: 'sample_trades' }],
    limit: null,
    fewshot: null,
    engine: 'cpu',
    ...change,
  };
  const heard = vi.fn();
  const onProgress = (p: TasksProgress) => {
    told.push(p);
    heard(p);
  };
  const options = { plan, models, rows, signal, onProgress };
  return { report: () => runTasks(request, options), told, heard, plan };
}

// one core: models take turns in this thread
vi.stubGlobal('navigator', { hardwareConcurrency: 1 });

const scoreOf = (outcome: { score: TaskScore } | object): TaskScore =>
  (outcome as { score: TaskScore }).score;

describe('the sample task', () => {
  test('the workshop model knows its trade, a merge that is never written more than the base; items come as they are done', async () => {
    const targets = [{ model: 'samples/base' }, { model: 'samples/workshop' }, ARITHMETIC];
    const { report, told } = await score({ targets }, undefined, undefined, LEARNED);
    const { models, tasks } = await report();
    expect(tasks).toEqual([
      expect.objectContaining({
        task: 'sample_trades',
        original: 48,
        effective: 48,
        fewshot: 0,
        dataset: null,
      }),
    ]);
    const scores = models.map(({ tasks: [only] }) => scoreOf(only!));
    const right = (m: number, from: number, to: number) =>
      scores[m]!.items.slice(from, to).reduce((sum, { values }) => sum + values.acc!, 0);
    const trades = scores.map((_, m) => [right(m, 0, 16), right(m, 16, 32), right(m, 32, 48)]);
    const [base, workshop] = trades;
    expect(workshop![2]).toBeGreaterThan(base![2]!);
    expect(scores[2]!.metrics.acc!.value).toBeGreaterThan(scores[0]!.metrics.acc!.value);
    for (const { metrics } of scores) {
      expect(metrics.acc!.value).toBeGreaterThan(0.25 + 3 * metrics.acc!.stderr!);
    }

    const items = told.flatMap((p) => p.items ?? []);
    expect(items.filter(({ model }) => model === 2).map(({ item }) => item)).toEqual(scores[2]!.items);
    expect(told.filter((p) => (p.items ?? []).length > 0).length).toBeGreaterThan(3);
    expect(told[0]!.info).toEqual(tasks);
  });

  test('the numbers are those of each choice by itself', async () => {
    const { report } = await score(
      { limit: 3, targets: [{ model: 'samples/workshop' }] },
      undefined,
      undefined,
      LEARNED,
    );
    const [first] = (await report()).models;
    const { items } = scoreOf(first!.tasks[0]!);
    const { data } = openTask({ name: 'sample_trades' });
    const rows = (data as { lines: string }).lines
      .split('\n')
      .slice(0, 3)
      .map((line) => JSON.parse(line) as { context: string; choices: string[] });
    const tokenizer = {
      ...sampleTokenizer,
      encodeAll: async (texts: readonly string[]) => texts.map((text) => sampleTokenizer.encode(text)),
    };
    const runner = openSample('workshop');
    for (const [i, { context, choices }] of rows.entries()) {
      const pairs = choices.map((c) => ({ context, continuation: ` ${c}` }));
      const encoded = (await encodePairs(tokenizer, pairs, 512)) as PairIds[];
      const alone = await scoreAll(
        runner,
        encoded.map((pair) => [pair]),
        512,
      );
      for (const [c, [one]] of alone.entries()) {
        expect(items[i]!.loglikelihoods[c]).toBeCloseTo(one!.loglikelihood, 4);
      }
    }
    runner.close();
  });

  test('examples in front', async () => {
    const { report } = await score({ fewshot: 2, limit: 6, targets: FAMILY.map((model) => ({ model })) });
    const { tasks, models } = await report();
    expect(tasks[0]).toMatchObject({ fewshot: 2, effective: 6 });
    expect(models).toHaveLength(FAMILY.length);
    expect(models[0]!.tokens).toBeGreaterThan(200);
  });
});

describe('what cannot be scored', () => {
  const row: Row = { goal: 'Dry a rope?', sol1: 'Hang it up.', sol2: 'Drown it.', label: 0 };
  test('a missing column is said before any model is planned', async () => {
    const { sol2: _, ...broken } = row;
    const rows = vi.fn(async () => ({ rows: [broken], ref: 'baber/piqa@1', files: [] }));
    const { report, plan } = await score({ tasks: [{ name: 'piqa' }] }, rows);
    await expect(report()).rejects.toMatchObject({
      code: 'TaskInvalid',
      message: expect.stringContaining('“sol2” holds nothing'),
    });
    const columns = ['goal', 'sol1', 'sol2', 'label'];
    expect(rows).toHaveBeenCalledWith(
      { dataset: 'baber/piqa', subset: null, split: 'validation', columns },
      expect.anything(),
      expect.anything(),
    );
    expect(plan).not.toHaveBeenCalled();
  });

  const own = (...rows: (object | string)[]) => ({
    file: {
      name: 'own.jsonl',
      text: rows.map((one) => (typeof one === 'string' ? one : JSON.stringify(one))).join('\n'),
    },
  });

  test('a row without an answer, and one whose continuation is too long, are left out in words and not counted', async () => {
    const asked = { question: 'x', choices: ['a', 'b'], answer: 0 };
    const file = own(
      '\ufeff{"question":"x","choices":["a","b"],"answer":1,"loss":NaN}',
      { ...asked, answer: null },
      { ...asked, choices: ['a', 'b '.repeat(5000)] },
      { ...asked, choices: ['yes', 'no'], answer: true },
    );
    const { report } = await score({ tasks: [file] });
    const { tasks, models } = await report();
    const { items, metrics } = scoreOf(models[0]!.tasks[0]!);
    expect(tasks[0]).toMatchObject({ task: 'own', original: 4, effective: 4 });
    expect(items.map(({ refused, target }) => refused ?? target)).toEqual([
      1,
      'The row is left out: it has no answer.',
      expect.stringMatching(/The continuation has \d+ tokens/),
      0,
    ]);
    expect(Object.keys(metrics)).toEqual(['acc', 'acc_norm']);
  });

  test('a row of many megabytes is cut to what the model can take', async () => {
    const question = 'All hands on deck. '.repeat(200_000);
    const { report } = await score({ tasks: [own({ question, choices: ['a', 'b'], answer: 0 })] });
    const { models } = await report();
    const { items } = scoreOf(models[0]!.tasks[0]!);
    expect(items[0]!.loglikelihoods).toHaveLength(2);
    expect(models[0]!.tokens).toBeLessThan(2000);
  });

  test('a model that cannot be run is an error in its place; what is asked wrongly is refused', async () => {
    const { report } = await score({
      limit: 2,
      targets: [{ model: 'samples/kitchen' }, { model: 'samples/base' }],
    });
    const { models } = await report();
    expect('error' in models[0]!.tasks[0]!).toBe(true);
    expect('score' in models[1]!.tasks[0]!).toBe(true);
    await expect((await score({ limit: 0 })).report()).rejects.toMatchObject({ code: 'Usage' });
    await expect((await score({ tasks: [] })).report()).rejects.toMatchObject({ code: 'Usage' });
  });

  test('a job that is stopped has told the items that were done', async () => {
    const stop = new AbortController();
    const { report, told, heard } = await score(
      { targets: FAMILY.map((model) => ({ model })) },
      vi.fn(),
      stop.signal,
    );
    heard.mockImplementation((p: TasksProgress) => p.items && stop.abort());
    await expect(report()).rejects.toMatchObject({ code: 'Canceled' });
    expect(told.flatMap((p) => p.items ?? []).length).toBeGreaterThan(0);
  });
});

describe('answers that are written', () => {
  const rows = ['The kitchen was', 'They sailed to'].map((question, i) => ({
    ...{ question, answer: `#### ${i}`, max_gen_toks: 12 + 8 * i },
  }));
  const file = { name: 'sums.jsonl', text: rows.map((row) => JSON.stringify(row)).join('\n') };

  test('are those of the model and of the merge, scored beside choices, and as they are done', async () => {
    const targets = [{ model: 'samples/base' }, ARITHMETIC];
    const tasks = [{ file }, { name: 'sample_trades' }];
    const { report, told, plan } = await score({ targets, tasks, limit: 2 }, undefined, undefined, LEARNED);
    const { models, tasks: info } = await report();
    expect(info[0]).toMatchObject({ outputType: 'generate_until', effective: 2 });
    const folders = openModels(() => ({ url: 'https://hub.invalid' }));
    for (const folder of LEARNED) await folders.add(folder);
    for (const [m, target] of targets.entries()) {
      const written = scoreOf(models[m]!.tasks[0]!);
      const texts: string[] = [];
      for (const { question, max_gen_toks: maxTokens } of rows) {
        const alone = { maxTokens, temperature: 0, topP: 1, seed: 0, chat: false };
        const [[text] = []] = await runAnswers(
          { targets: [target], prompts: [`Question: ${question}\nAnswer:`], engine: 'cpu', ...alone },
          { plan, models: folders, signal: new AbortController().signal, onProgress: () => undefined },
        );
        texts.push(text!.split('Question:')[0]!);
      }
      expect(written.items.map((item) => item.written)).toEqual(texts);
      expect(written.items.map(({ docId }) => docId)).toEqual([0, 1]);
      expect(Object.keys(written.metrics)).toEqual([
        'exact_match,strict-match',
        'exact_match,flexible-extract',
      ]);
      expect(scoreOf(models[m]!.tasks[1]!).items).toHaveLength(2);
    }
    const items = told.flatMap((progress) => progress.items ?? []);
    expect(items.filter(({ task }) => task === 0)).toHaveLength(4);
  });

  test('an answer longer than the model is refused, a prompt that leaves no room cut from the left', async () => {
    const long = [
      { question: 'word '.repeat(600), answer: '#### 1', max_gen_toks: 4 },
      { question: 'x', answer: '#### 1', max_gen_toks: 100_000 },
    ];
    const text = long.map((row) => JSON.stringify(row)).join('\n');
    const { report } = await score({ tasks: [{ file: { name: 'long.jsonl', text } }] });
    const { items } = scoreOf((await report()).models[0]!.tasks[0]!);
    expect(items[0]!.written).toBeTypeOf('string');
    expect(items[1]!.refused).toMatch(/An answer may have 100000 tokens; the model takes \d+\./);
    const none = await score({ tasks: [{ file: { name: 'long.jsonl', text: JSON.stringify(long[1]) } }] });
    expect((await none.report()).models[0]!.tasks[0]).toMatchObject({
      error: { code: 'TaskInvalid', message: expect.stringMatching(/^No row of .* 100000 tokens/) },
    });
  });
});
