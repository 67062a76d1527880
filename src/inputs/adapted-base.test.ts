/** A base that is a model with an adapter, and a base that the method does not use. */
import { expect, it } from 'vitest';
import type { Recipe } from '../formats/recipe';
import { mergeIn, planIn, tokenFolder } from '../merge/vocabulary/vocabulary.test.support';
import type { ModelFolder } from '../sources/model-folder';
import { memoryFolder, safetensors } from './memory-models.test.support';

const EMBEDDING = 'model.embed_tokens.weight';
const tokens = { tokens: ['a', 'b', 'c', 'd'] };
const base = tokenFolder('base', tokens);
const tuned = tokenFolder('tuned', tokens);
const lora = adapter('lora', 3);

/** A LoRA of the embedding, rank 2, scale 2. */
function adapter(path: string, step: number): ModelFolder {
  const file = safetensors({
    'base_model.model.model.embed_tokens.lora_embedding_A': ['F32', [2, 4]],
    'base_model.model.model.embed_tokens.lora_embedding_B': ['F32', [3, 2]],
  });
  const data = new Float32Array(Array.from({ length: 14 }, (_, i) => ((i * step) % 7) / 4 - 0.5));
  file.set(new Uint8Array(data.buffer), file.length - data.byteLength);
  return memoryFolder(path, {
    'adapter_config.json': { peft_type: 'LORA', r: 2, lora_alpha: 4, target_modules: [] },
    'adapter_model.safetensors': file,
  });
}

const recipe = (changes: Partial<Recipe>): Recipe => ({
  mergeMethod: 'task_arithmetic',
  baseModel: 'base+lora',
  models: [{ model: 'tuned', parameters: { weight: 0.5 } }],
  parameters: {},
  amalgam: {},
  ...changes,
});
const alone = async (model: string, ...folders: ModelFolder[]) => {
  const { baseModel: _, ...rest } = recipe({
    mergeMethod: 'passthrough',
    models: [{ model, parameters: {} }],
  });
  return (await mergeIn(rest, folders)).values.get(EMBEDDING)!;
};

it('takes the base with its adapter on it, whatever the size of the tiles', async () => {
  const [first, other] = [await alone('base+lora', base, lora), await alone('tuned', tuned)];
  expect(first).not.toEqual(await alone('base', base));
  const { values, plan } = await mergeIn(recipe({}), [base, lora, tuned]);
  const expected = [...first].map((b, i) => b + 0.5 * (other[i]! - b));
  for (const [i, value] of values.get(EMBEDDING)!.entries()) expect(value).toBeCloseTo(expected[i]!, 6);
  expect(plan.tensors.find(({ name }) => name === 'model.norm.weight')!.models[0]!.view.onBase).toBe(false);
  const slerp = recipe({ mergeMethod: 'slerp', parameters: { t: 0 } });
  expect((await mergeIn(slerp, [base, lora, tuned])).values.get(EMBEDDING)).toEqual(first);
});

it('a second adapter is a difference from the first; the same one is none', async () => {
  const second = adapter('second', 5);
  const one = (model: string) => recipe({ models: [{ model, parameters: { weight: 1 } }] });
  const { values } = await mergeIn(one('base+second'), [base, lora, second]);
  const expected = await alone('base+second', base, second);
  for (const [i, value] of values.get(EMBEDDING)!.entries()) expect(value).toBeCloseTo(expected[i]!, 6);
  const counterpart = memoryFolderOf('counterpart', lora);
  const same = await mergeIn(one('base+counterpart'), [base, lora, counterpart]);
  expect(same.values.get(EMBEDDING)).toEqual(await alone('base+lora', base, lora));
});

it('what the recipe leaves out keeps the base as it is, adapter included', async () => {
  const kept = recipe({ amalgam: { exclude: ['embed_tokens'] } });
  const { values } = await mergeIn(kept, [base, lora, tuned]);
  expect(values.get(EMBEDDING)).toEqual(await alone('base+lora', base, lora));
});

it('says where a base gives files only', async () => {
  const notes = async (models: string[]) => {
    const linear = recipe({
      mergeMethod: 'linear',
      baseModel: 'base',
      models: models.map((model) => ({ model, parameters: { weight: 1 } })),
    });
    const { problems } = await planIn(linear, base, tuned);
    return problems.filter(({ code }) => code === 'BaseIgnored').map(({ message }) => message);
  };
  expect(await notes(['tuned'])).toEqual([
    'linear works without a base: base gives the config and the tokenizer, but none of its weights.',
  ]);
  expect(await notes(['base', 'tuned'])).toEqual([]);
});

function memoryFolderOf(path: string, { files, origin }: ModelFolder): ModelFolder {
  return { path, origin, files };
}
