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

/** The Evaluate tab on the fake hub, the sample's recipe, no task chosen. */
async function openTasks(page: Page): Promise<void> {
  await openSample(page);
  await page.getByRole('button', { name: 'change' }).first().click();
  await page.getByRole('tab', { name: 'Hub' }).click();
  await pointAtFakeHub(page);
  await page.keyboard.press('Escape');
  await show(page, 'Measure');
  await task(page, 'Sample trades').click();
}

const task = (page: Page, name: string) =>
  page.getByRole('group', { name: 'Tasks to score' }).getByRole('button', { name, exact: true });
const score = (page: Page) => page.getByRole('button', { name: /^Score \d+ models?$/ });

test('a missing column and a missing split are said before any model is read; two tasks are scored on base, contributors and merge, with the command’s numbers', async ({
  page,
}) => {
  await openTasks(page);
  await task(page, 'PIQA').click();
  await score(page).click();
  await expect(page.getByText(/has no column “goal”, which the task reads/)).toBeVisible();
  await task(page, 'PIQA').click();
  await task(page, 'OpenBookQA').click();
  await score(page).click();
  await expect(page.getByText('The dataset allenai/openbookqa has no split “test” of “main”.')).toBeVisible();
  await task(page, 'OpenBookQA').click();

  await task(page, 'HellaSwag').click();
  await task(page, 'ARC-Easy').click();
  await page.getByRole('button', { name: 'How long?' }).click();
  await expect(
    page.getByText(/^Predicted by the first items of the first model: .* tokens\.$/),
  ).toBeVisible();
  await score(page).click();
  const arc = page.getByRole('table', { name: /^arc_easy/ });
  const swag = page.getByRole('table', { name: /^hellaswag/ });
  const base = (table: typeof arc) => table.getByRole('row', { name: /^base/ }).locator('td');
  // five models, six items and five
  await expect(arc.getByRole('row')).toHaveCount(6);
  await expect(score(page)).not.toHaveAttribute('aria-disabled', 'true');
  await expect(base(arc).nth(2)).toHaveText('6');
  await expect(base(swag).nth(2)).toHaveText('5');
  await expect(
    arc
      .getByRole('row', { name: /^merge/ })
      .locator('td')
      .nth(3),
  ).toHaveText(/^(better|worse|no significant difference): \d+ gained, \d+ lost, p = /);

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
  expect(stdout).toMatch(/workshop against .*base on hellaswag, acc: .*McNemar/);
  const { models, datasets } = JSON.parse(readFileSync(report, 'utf8')) as {
    datasets: Record<string, { dataset: string; split: string }>;
    models: { results: Record<string, Record<string, number>>; samples: Record<string, unknown[]> }[];
  };
  expect(datasets.hellaswag).toEqual({
    dataset: expect.stringMatching(/^Rowan\/hellaswag@[0-9a-f]{40}$/),
    split: 'validation',
  });
  for (const [name, table] of [
    ['hellaswag', swag],
    ['arc_easy', arc],
  ] as const) {
    const own = models[0]!.results[name]!;
    expect(own['acc_stderr,none']).toBeGreaterThanOrEqual(0);
    expect(models[0]!.samples[name]).toHaveLength(name === 'hellaswag' ? 5 : 6);
    await expect(base(table).nth(0)).toContainText(own['acc,none']!.toFixed(3));
    await expect(base(table).nth(1)).toContainText(own['acc_norm,none']!.toFixed(3));
  }

  expect(await seriousIssues(page, '.evaluate-screen')).toEqual([]);
});

test('the command says of a missing split before any model is read', async () => {
  const { code, stderr } = await amalgam([
    ...['evaluate', 'public/samples/base', '--task', 'openbookqa', '--hub', HUB_URL, '--cache', work],
  ]);
  expect(code).toBe(1);
  expect(stderr).toMatch(/no split “test” of “main”\.\nIt has “main: train”/);
  expect(stderr).not.toContain('running');
});
