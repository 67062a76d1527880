import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { diskFolder } from '../../e2e/disk-folder';
import { openModels } from '../host/models';
import { methodById } from '../merge/methods';
import { makePlan } from '../merge/plan/recipe-plan';
import { runGeneration } from './generation-job';

const SAMPLES = fileURLToPath(new URL('../../public/samples', import.meta.url));
const TEMPLATE = "{{ bos_token }}{% for m in messages %}{{ m['content'] | trim }}{% endfor %}";
const folder = mkdtempSync(join(tmpdir(), 'amalgam-chat-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Text that a model of the sample generates, alone on the processor. */
async function written(model: string, path: string, prompt: string, chat: boolean) {
  const models = openModels(() => ({ url: 'https://hub.invalid' }));
  await models.add(await diskFolder(model, path), model);
  const recipe = {
    mergeMethod: 'passthrough',
    models: [{ model, parameters: {} }],
    parameters: {},
    amalgam: {},
  };
  const signal = new AbortController().signal;
  const plan = await makePlan(recipe, (name) => models.open(name), methodById);
  return runGeneration(
    {
      target: { model },
      prompt,
      chat,
      maxTokens: 4,
      temperature: 0,
      topP: 1,
      seed: 0,
      engine: 'cpu',
    },
    { plan, models, engine: 'cpu', exact: true, signal, onProgress: () => {} },
  );
}

test('a chat goes through the template of the model, which writes its own beginning', async () => {
  cpSync(join(SAMPLES, 'workshop'), folder, { recursive: true });
  writeFileSync(join(folder, 'chat_template.jinja'), TEMPLATE);
  const chat = await written('chat', folder, '  Recipe: ', true);
  const text = await written('chat', folder, 'Recipe:', false);
  expect(chat.ids).toEqual(text.ids);
  expect(chat.ids).toHaveLength(4);
});

test('a model without a template is refused, with the way out', async () => {
  await expect(written('plain', join(SAMPLES, 'workshop'), 'Recipe:', true)).rejects.toMatchObject({
    code: 'TokenizerUnsupported',
    message: expect.stringContaining('no chat template') as string,
  });
});
