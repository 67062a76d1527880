/** Accuracy on tasks whose rows are on the Hub: in the studio and by the command, and the error of a task that does not fit. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { type FakeHub, startFakeHub } from '../fake-hub';
import { cardErrors } from '../fake-hub/model-card';
import { treeHashOfFile } from '../tree-hash';
import { HUB_CDN_PORT, HUB_PORT, HUB_URL } from './addresses';
import { amalgam, expect, openSample, pointAtFakeHub, seriousIssues, show, test } from './studio';

const root = join(import.meta.dirname, '../..');
const fixtures = join(root, 'e2e/fixtures/tasks');
const file = (path: string) => new Uint8Array(readFileSync(join(fixtures, path)));

let hub: FakeHub;
let work: string;
test.beforeEach(async () => {
  work = mkdtempSync(join(tmpdir(), 'amalgam-tasks-'));
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
test.afterEach(async () => {
  await hub.close();
  rmSync(work, { recursive: true, force: true });
});

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
  const samples = join(root, 'public/samples');
  const tasks = 'hellaswag,arc_easy';
  const { code, stdout, stderr } = await amalgam([
    ...[
      'evaluate',
      `${samples}/base`,
      `${samples}/workshop`,
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
  expect(JSON.parse(readFileSync(hashes, 'utf8'))).toMatchObject({
    outputs: { 'README.md': treeHashOfFile(card) },
  });
  expect(stdout).toMatch(/workshop against .*base on hellaswag, acc: .* over \d+ items?, /);
  const { models, datasets } = JSON.parse(readFileSync(report, 'utf8')) as {
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
