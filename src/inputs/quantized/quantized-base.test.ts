/** What is said of a quantized base, and made on it. */
import { expect, test } from 'vitest';
import { methodById } from '../../merge/methods';
import { makePlan } from '../../merge/plan/recipe-plan';
import { factors, openerOf, recipeOf, tinyAdapter, tinyModel } from '../memory-models.test.support';
import { describeModel, openModel } from '../opened-model';
import { bitString, f32, folderOf, halves, ints } from './packing.test.support';

test('a LoRA on a quantized base becomes a LoRA for llama.cpp too', async () => {
  const weight = 'model.layers.0.self_attn.q_proj';
  const base = tinyModel('base', {
    ...{ whole: true, hidden: 32, config: { quantization_config: { group_size: 32, bits: 4 } } },
    tensors: {
      [`${weight}.weight`]: ['U32', [32, 4]],
      [`${weight}.scales`]: ['F16', [32, 1]],
      [`${weight}.biases`]: ['F16', [32, 1]],
    },
  });
  const lora = tinyAdapter('lora', factors(weight, 32, 32));
  const recipe = recipeOf(['base+lora'], { amalgam: { output: 'adapter', gguf: 'F16' } });
  const { problems, gguf } = await makePlan(recipe, openerOf(base, lora), methodById);
  expect(problems.filter(({ severity }) => severity === 'error')).toEqual([]);
  expect(gguf).toBeDefined();
});

test('a card tells the weights it stands for, and the plan says once what quantizing took', async () => {
  const codes = Array.from({ length: 8 * 64 }, (_, i) => i % 16);
  const one = halves([8, 2], 80).stored;
  const tensors = {
    'w.weight': ints([8, 8], bitString(codes, 4), 'U32'),
    'w.scales': one,
    'w.biases': one,
    norm: f32([2], [1, 2]),
  };
  const folder = folderOf('owner/model-4bit', tensors, { quantization: { group_size: 32, bits: 4 } });
  const { parameters, dtypes } = describeModel(await openModel(folder));
  expect([parameters, dtypes]).toEqual([8 * 64 + 2, { 'MLX (4 bits)': 1, F32: 1 }]);
  const recipe = recipeOf(['owner/model-4bit', 'owner/model-4bit'], { mergeMethod: 'linear' });
  const { baseModel: _, ...baseless } = recipe;
  const { problems } = await makePlan(baseless, openerOf(folder), methodById);
  const said = problems.filter(({ code }) => code === 'Dequantized');
  expect(said.map(({ remedy }) => remedy)).toEqual([
    'No action needed. From model itself the output would be more precise.',
  ]);
});
