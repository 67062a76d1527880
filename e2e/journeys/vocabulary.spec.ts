/** Models whose vocabularies differ: the plan asks, the union is merged on both engines, and the result runs. */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHAT_TOKEN, writeChatModel } from './chat-model';
import {
  amalgam,
  expect,
  merge,
  openSample,
  readJson,
  recipeFile,
  SAMPLES,
  show,
  test,
  unfold,
  work,
} from './studio';

let tokens: number;
test.beforeEach(() => {
  tokens = writeChatModel(join(work, 'chat'));
});

const recipe = (source: string) => {
  return recipeFile(
    `merge_method: linear
models:
  - model: ${SAMPLES}/base
    parameters: { weight: 0.5 }
  - model: chat
    parameters: { weight: 0.5 }
${source}`,
  );
};

test('the command asks, unites on both engines to the same bytes, and the merged folder generates', async () => {
  const asked = await amalgam(['merge', recipe(''), '--out', join(work, 'none'), '--engine', 'cpu']);
  expect(asked.code).not.toBe(0);
  expect(asked.stderr).toContain(`has a vocabulary of ${tokens}`);
  expect(asked.stderr).toContain('tokenizer_source');

  const hashes: string[] = [];
  for (const engine of ['webgpu', 'cpu']) {
    const out = join(work, engine);
    const { code, stderr } = await amalgam([
      'merge',
      recipe('tokenizer: {source: union, pad_to_multiple_of: 64}\n'),
      '--out',
      out,
      '--engine',
      engine,
    ]);
    expect(code, stderr).toBe(0);
    hashes.push(
      createHash('sha256')
        .update(readFileSync(join(out, 'model.safetensors')))
        .digest('hex'),
    );
    const config = readJson(out, 'config.json') as { vocab_size: number };
    expect(config.vocab_size).toBe(Math.ceil(tokens / 64) * 64);
    expect(readFileSync(join(out, 'tokenizer.json'), 'utf8')).toContain(CHAT_TOKEN);
  }
  expect(hashes[0]).toBe(hashes[1]);

  const out = join(work, 'cpu');
  const story = await amalgam([
    'generate',
    out,
    '--prompt',
    `The${CHAT_TOKEN}`,
    '--max-tokens',
    '8',
    '--engine',
    'cpu',
  ]);
  expect(story.stderr).not.toContain('do not belong together');
  expect(story.code, story.stderr).toBe(0);
  expect(story.stdout.trim().length).toBeGreaterThan(0);
});

test('the studio refuses a folder that holds no model in words; of one that does it shows the difference and merges what is chosen', async ({
  page,
}) => {
  await page.addInitScript(() => {
    // a browser without pickers: the file input is the way in
    Object.assign(window, { showDirectoryPicker: undefined });
  });
  await openSample(page);
  await show(page, 'Files');
  await expect(page.getByRole('heading', { name: 'Vocabulary' })).toBeHidden();
  // a sample that was edited stays when a model is added
  await unfold(page, 'workshop');
  await page.getByRole('switch', { name: 'Merge workshop' }).click();
  await page.getByRole('button', { name: '+ add' }).first().click();
  await page.getByRole('tab', { name: /computer|local/i }).click();
  mkdirSync(join(work, 'nothing'));
  writeFileSync(join(work, 'nothing/notes.txt'), 'nothing');
  await page.getByLabel('Model folder').setInputFiles(join(work, 'nothing'));
  await expect(page.getByText(/no model|None of the/i).first()).toBeVisible();
  // one model is taken without another click
  await page.getByLabel('Model folder').setInputFiles(join(work, 'chat'));
  await expect(page.getByRole('button', { name: 'Added: chat' }).first()).toBeVisible();
  await page.getByRole('button', { name: 'Done' }).click();

  await expect(page.getByText(`error: chat has a vocabulary of ${tokens}`)).toBeVisible();
  await expect(page.getByRole('heading', { name: 'Vocabulary' })).toBeVisible();
  await page.getByLabel('Tokens of the output').selectOption('union');
  await expect(page.getByText(/those of samples\/base and 1 more/)).toBeVisible();
  await page.getByLabel('Pad vocabulary to a multiple of').fill('64');
  await page.keyboard.press('Enter');
  await expect(page.getByText('padded with the mean row')).toBeVisible();
  await merge(page);
});
