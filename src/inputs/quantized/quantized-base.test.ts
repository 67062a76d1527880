/** What is made on a quantized base. */
import { expect, test } from 'vitest';
import { methodById } from '../../merge/methods';
import { makePlan } from '../../merge/plan/recipe-plan';
import { factors, openerOf, recipeOf, tinyAdapter, tinyModel } from '../memory-models.test.support';

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
