/** Accuracy on tasks whose rows are on the Hub: in the studio and by the command, and the error of a task that does not fit. */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Page } from '@playwright/test';
import { type FakeHub, startFakeHub } from '../fake-hub';
import { cardErrors } from '../fake-hub/model-card';
import { goldenFolder } from '../goldens';
import { treeHashOfFile } from '../tree-hash';
import { HUB_CDN_PORT, HUB_PORT, HUB_URL } from './addresses';
import {
  amalgam,
  expect,
  openSample,
  pointAtFakeHub,
  ROOT,
  readJson,
  SAMPLES,
  seriousIssues,
  show,
  test,
  work,
} from './studio';

const fixtures = join(ROOT, 'e2e/fixtures/tasks');
const file = (path: string) => new Uint8Array(readFileSync(join(fixtures, path)));

let hub: FakeHub;
test.beforeEach(async () => {
  hub = await startFakeHub({
    models: [
      { id: 'Rowan/hellaswag', dataset: true, files: join(fixtures, 'hellaswag') },
      { id: 'allenai/ai2_arc', dataset: true, files: join(fixtures, 'ai2_arc') },
      // rows of another task: its columns are not PIQA's
      {
        id: 'baber/piqa',
        dataset: true,
        files: { 'data/validation.parquet': file('ai2_arc/ARC-Easy/test-00000-of-00001.parquet') },
      },
      { id: 'allenai/openbookqa', dataset: true, files: { 'main/train.jsonl': '{"question_stem":"a"}\n' } },
    ],
    port: HUB_PORT,
    cdnPort: HUB_CDN_PORT,
  });
});
test.afterEach(() => hub.close());

/** The Measure tab on the fake hub, the sample's recipe, no text, the list of tasks open. */
async function openTasks(page: Page): Promise<void> {
  await openSample(page);
  await page.getByRole('button', { name: 'change' }).first().click();
  await page.getByRole('tab', { name: 'Hub' }).click();
  await pointAtFakeHub(page);
  await page.keyboard.press('Escape');
  await show(page, 'Measure');
  const texts = page.getByRole('group', { name: 'Texts to measure on' });
  for (const name of ['common', 'kitchen', 'harbour', 'workshop'])
    await texts.getByRole('button', { name }).click();
  await page.getByRole('button', { name: 'task', exact: true }).click();
}

const list = (page: Page) => page.getByRole('dialog', { name: 'Tasks' });
/** Chooses a task in the open list, or lets go of it. */
const task = (page: Page, name: string) => list(page).getByRole('button', { name, exact: true });
/** Closes the list and measures; the list is open again afterwards. */
async function score(page: Page): Promise<void> {
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: /^Measure \d/ }).click();
}
const openList = (page: Page) => page.getByRole('button', { name: 'task', exact: true }).click();

test('a missing column and a missing split are said before any model is read; two tasks are scored on base, contributors and merge, with the command’s numbers', async ({
  page,
}) => {
  await openTasks(page);
  await task(page, 'PIQA').click();
  await score(page);
  await expect(page.getByText(/has no column “goal”, which the task reads/)).toBeVisible();
  await openList(page);
  await task(page, 'PIQA').click();
  await task(page, 'OpenBookQA').click();
  await score(page);
  await expect(page.getByText('The dataset allenai/openbookqa has no split “test” of “main”.')).toBeVisible();
  await openList(page);
  await task(page, 'OpenBookQA').click();

  await task(page, 'HellaSwag').click();
  await task(page, 'ARC-Easy').click();
  await score(page);
  // five models on two tasks
  const values = page.getByRole('table').locator('.measure-value');
  await expect(values).toHaveCount(10);
  await expect(page.getByRole('button', { name: /^Measure$/ })).toHaveAttribute('aria-disabled', 'true');
  const base = page.getByRole('row', { name: /^base/ }).locator('.measure-value');
  await page.getByRole('columnheader', { name: 'arc_easy' }).getByRole('button').click();
  await expect(
    page.getByText(/apart from the base, kitchen, harbour or workshop alone, on 6.items/),
  ).toBeVisible();

  const report = join(work, 'report.json');
  const card = join(work, 'README.md');
  const hashes = join(work, 'amalgam-hashes.json');
  writeFileSync(card, '---\nlicense: mit\n---\n\n# Mine\n');
  writeFileSync(hashes, '{"inputs":{},"outputs":{"README.md":"tree:0"}}');
  const tasks = 'hellaswag,arc_easy';
  const { code, stdout, stderr } = await amalgam([
    ...[
      'evaluate',
      `${SAMPLES}/base`,
      `${SAMPLES}/workshop`,
      '--task',
      tasks,
      '--fewshot',
      '0',
      '--limit',
      '200',
    ],
    ...['--hub', HUB_URL, '--cache', work, '--engine', 'cpu', '--report', report, '--card', card],
  ]);
  expect(code, stderr).toBe(0);
  const written = readFileSync(card, 'utf8');
  expect(cardErrors(written)).toEqual([]);
  expect(written).toMatch(/license: mit\nmodel-index:[\s\S]*type: Rowan\/hellaswag[\s\S]*# Mine/);
  expect(readJson(hashes)).toMatchObject({
    outputs: { 'README.md': treeHashOfFile(card) },
  });
  expect(stdout).toMatch(/workshop against .*base on hellaswag, acc: .* over \d+ items?, /);
  const { models, datasets } = readJson(report) as {
    datasets: Record<string, { dataset: string; split: string }>;
    models: { results: Record<string, Record<string, number>>; samples: Record<string, unknown[]> }[];
  };
  expect(datasets.hellaswag).toEqual({
    dataset: expect.stringMatching(/^Rowan\/hellaswag@[0-9a-f]{40}$/),
    split: 'validation',
  });
  for (const [t, name] of ['hellaswag', 'arc_easy'].entries()) {
    const own = models[0]!.results[name]!;
    expect(own['acc_stderr,none']).toBeGreaterThanOrEqual(0);
    expect(models[0]!.samples[name]).toHaveLength(name === 'hellaswag' ? 5 : 6);
    await expect(base.nth(t)).toContainText((100 * own['acc,none']!).toFixed(1));
    await expect(base.nth(t)).toHaveAttribute(
      'title',
      new RegExp(`acc_norm ${own['acc_norm,none']!.toFixed(3).replace('.', '\\.')}`),
    );
  }

  expect(await seriousIssues(page, '.measure-screen')).toEqual([]);
});

test('the command says of a missing split before any model is read', async () => {
  const { code, stderr } = await amalgam([
    ...['evaluate', 'public/samples/base', '--task', 'openbookqa', '--hub', HUB_URL, '--cache', work],
  ]);
  expect(code).toBe(1);
  expect(stderr).toMatch(/no split “test” of “main”\.\nIt has “main: train”/);
  expect(stderr).not.toContain('running');
});

/** A sentence encoder: transformers' tiny BERT with a vocabulary of letters, and the modules that sentence-transformers writes. */
function encoder(): Record<string, Uint8Array<ArrayBuffer> | string> {
  const bert = (path: string) => new Uint8Array(readFileSync(join(goldenFolder('encoders'), 'bert', path)));
  const letters = [...'abcdefghijklmnopqrstuvwxyz'];
  const words = [
    '[PAD]',
    '[UNK]',
    '[CLS]',
    '[MASK]',
    '[SEP]',
    ...letters,
    ...letters.map((one) => `##${one}`),
  ];
  const more = Array.from({ length: 96 - words.length }, (_, i) => `[unused${i}]`);
  const vocab = Object.fromEntries([...words, ...more].map((word, id) => [word, id]));
  const piece = (id: string) => ({ SpecialToken: { id, type_id: 0 } });
  const special = (id: string) => [id, { id, ids: [vocab[id]], tokens: [id] }];
  return {
    'config.json': bert('config.json'),
    'model.safetensors': bert('model.safetensors'),
    'tokenizer.json': JSON.stringify({
      version: '1.0',
      added_tokens: words.slice(0, 5).map((content, id) => {
        return {
          id,
          content,
          single_word: false,
          lstrip: false,
          rstrip: false,
          normalized: false,
          special: true,
        };
      }),
      normalizer: { type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true, lowercase: true },
      pre_tokenizer: { type: 'BertPreTokenizer' },
      post_processor: {
        type: 'TemplateProcessing',
        single: [piece('[CLS]'), { Sequence: { id: 'A', type_id: 0 } }, piece('[SEP]')],
        pair: [],
        special_tokens: Object.fromEntries([special('[CLS]'), special('[SEP]')]),
      },
      decoder: { type: 'WordPiece', prefix: '##', cleanup: true },
      model: {
        type: 'WordPiece',
        unk_token: '[UNK]',
        max_input_chars_per_word: 100,
        continuing_subword_prefix: '##',
        vocab,
      },
    }),
    'modules.json': JSON.stringify([
      { idx: 0, name: '0', path: '', type: 'sentence_transformers.models.Transformer' },
      { idx: 1, name: '1', path: '1_Pooling', type: 'sentence_transformers.models.Pooling' },
    ]),
    '1_Pooling/config.json': JSON.stringify({ word_embedding_dimension: 32, pooling_mode_cls_token: true }),
  };
}

test('a sentence encoder is measured by similarity and retrieval, in the studio as by the command', async ({
  page,
}) => {
  const files = encoder();
  await hub.push({ id: 'acme/encoder', files });
  await page.goto('/');
  await page.getByRole('button', { name: 'Search the Hub' }).click();
  await pointAtFakeHub(page);
  await page.getByLabel('Search the Hub').fill('acme/encoder');
  await page.getByRole('button', { name: 'Use as base: acme/encoder' }).first().click();
  await expect(page.getByText('Add contributors')).toBeVisible();
  await page.getByRole('button', { name: 'Done' }).click();
  await show(page, 'Measure');
  await page.getByRole('button', { name: 'task', exact: true }).click();
  await task(page, 'Similarity of pairs').click();
  await task(page, 'Retrieval').click();
  await score(page);
  const measured = page.getByRole('table', { name: /^Perplexity of every model/ });
  await expect(measured.getByText(/±/).first()).toBeVisible();

  const folder = join(work, 'encoder');
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  const told = await amalgam([
    'evaluate',
    folder,
    '--task',
    'sample_similarity',
    '--task',
    'sample_retrieval',
  ]);
  expect(told.code, told.stderr).toBe(0);
  expect(told.stdout).toMatch(/embeddings: the first token, 32 dimensions/);
  const rho = /spearman +(-?\d\.\d{4})/.exec(told.stdout)![1]!;
  // in hundredths, as accuracies are
  await expect(measured.getByText((100 * Number(rho)).toPrecision(3)).first()).toBeVisible();
});
