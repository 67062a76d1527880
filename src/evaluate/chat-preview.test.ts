import { expect, test } from 'vitest';
import { parseRecipe } from '../formats/recipe-yaml';
import { openModels } from '../host/models';
import { tinyModel } from '../inputs/memory-models.test.support';
import { methodById } from '../merge/methods';
import { makePlan } from '../merge/plan/recipe-plan';
import { chatPreview } from './running-model';

const template = "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}\n{% endfor %}";
const TIES =
  'merge_method: ties\nbase_model: base\nmodels: [{model: tuned, parameters: {weight: 1, density: 0.5}}]\n';

async function preview(text: string) {
  const models = openModels(() => ({ url: 'https://hub.invalid' }));
  const settings = (more: object) => ({ files: { 'tokenizer_config.json': { bos_token: '<s>', ...more } } });
  await models.add(tinyModel('base', settings({})), 'base');
  await models.add(tinyModel('tuned', settings({ chat_template: template })), 'tuned');
  const plan = await makePlan(parseRecipe(text).recipe!, (ref) => models.open(ref), methodById);
  return chatPreview(plan, models, new AbortController().signal);
}

test('is what the output’s own files make of a conversation', async () => {
  expect(await preview(TIES)).toBeNull();
  expect(await preview(`${TIES}chat_template: auto\n`)).toBe(
    '<s>[user] What is a merge?\n[assistant] One model out of the weights of several.\n[user] Why?\n',
  );
  expect(await preview(`${TIES}chat_template: chatml\n`)).toMatch(/<\|im_end\|>\n<\|im_start\|>assistant\n$/);
  expect(await preview(`${TIES}chat_template: "{{ messages[0]['content'] }}"\n`)).toBe('What is a merge?');
  await expect(preview(`${TIES}chat_template: "{% if %}, and nothing follows"\n`)).rejects.toMatchObject({
    code: 'TokenizerInvalid',
  });
});
