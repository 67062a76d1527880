/** What a plan finds in its inputs by themselves, over every place that opens a model. */
import { expect, test } from 'vitest';
import type { Recipe } from '../../formats/recipe';
import { byteLevelTokenizer } from '../../gguf/tokenizer.test.support';
import {
  factors,
  memoryFolder,
  openerOf,
  recipeOf,
  type Shapes,
  safetensors,
  tinyAdapter,
  tinyShapes,
} from '../../inputs/memory-models.test.support';
import type { ModelFolder } from '../../sources/model-folder';
import { openSides } from '../../tools/difference/compare-models';
import { methodById } from '../methods';
import { requireClean } from './plan';
import { makePlan } from './recipe-plan';
import { copyRecipe, places, whole } from './sound-inputs.test.support';

const textOf = (plan: Awaited<ReturnType<typeof makePlan>>, file: string) => {
  const content = plan.extras.find(({ path }) => path === file)?.content;
  return content && 'text' in content ? JSON.parse(content.text) : undefined;
};

const faults: Record<string, [ModelFolder, inPlan: RegExp, inCompare: RegExp]> = {
  vocab_size: [
    whole('m', { config: { vocab_size: 16 } }),
    /ShapeMismatch model.embed_tokens.weight: \[8,8\]/,
    /PlanHasErrors/,
  ],
  intermediate_size: [
    whole('m', { config: { intermediate_size: 32 } }),
    /ShapeMismatch .*down_proj/,
    /PlanHasErrors/,
  ],
  num_key_value_heads: [
    whole('m', { config: { num_key_value_heads: 1 } }),
    /ShapeMismatch .*k_proj/,
    /PlanHasErrors/,
  ],
  'heads that do not divide': [
    whole('m', { config: { num_attention_heads: 3 } }),
    /ConfigInvalid/,
    /PlanHasErrors/,
  ],
  'a half of the layers': [
    whole('m', {
      tensors: Object.fromEntries(
        Object.keys(tinyShapes({ whole: true }))
          .filter((n) => n.includes('.1.'))
          .map((n) => [n, undefined]),
      ),
    }),
    /^TensorMissing .*layers\.1\.[^;]*$/,
    /PlanHasErrors/,
  ],
  'fewer layers than it says': [
    whole('m', { config: { num_hidden_layers: 3 } }),
    /^TensorMissing .*layers\.2\.[^;]*$/,
    /PlanHasErrors/,
  ],
  'more layers than it says': [
    whole('m', { config: { num_hidden_layers: 1 } }),
    /^TensorsUnused .*layers\.1\.[^;]*$/,
    /PlanHasErrors .* counts 1 layer, and its weights have 2/,
  ],
  'no head': [whole('m', { config: { tie_word_embeddings: false } }), /HeadMissing lm_head/, /has no head/],
  'a head of other rows beside a tied embedding': [
    whole('m', { tensors: { 'lm_head.weight': ['F32', [10, 8]] } }),
    /ShapeMismatch lm_head.weight: \[10,8\]/,
    /PlanHasErrors/,
  ],
  'three labels of two': [
    whole('m', {
      config: { architectures: ['LlamaForSequenceClassification'] },
      tensors: { 'score.weight': ['F32', [3, 8]] },
    }),
    /ShapeMismatch score.weight: \[3,8\]/,
    /PlanHasErrors/,
  ],
  GPTQ: [
    whole('m', { tensors: { 'model.layers.0.self_attn.q_proj.qweight': ['I32', [1, 8]] } }),
    /^Quantized $/,
    /quantized \(GPTQ/,
  ],
  MLX: [
    whole('m', {
      config: { quantization: { bits: 4 } },
      tensors: {
        'model.layers.0.self_attn.q_proj.weight': ['U32', [8, 1]],
        'model.layers.0.self_attn.q_proj.scales': ['BF16', [8, 1]],
      },
    }),
    /^Quantized $/,
    /quantized \(MLX/,
  ],
  bitsandbytes: [
    whole('m', { config: { quantization_config: { quant_method: 'bitsandbytes' } } }),
    /^Quantized $/,
    /config.json of m says that its weights are quantized \(bitsandbytes\), but they are stored as F32/,
  ],
  'ZeRO-3': [
    whole('m', { tensors: { 'model.layers.0.mlp.up_proj.weight': ['F32', [0]] } }),
    /^TensorsEmpty model.layers.0.mlp.up_proj.weight$/,
    /no values in 1 of its \d+ tensors: it was saved under DeepSpeed ZeRO-3/,
  ],
  'ZeRO-3 of a type that nobody knows': [
    whole('m', {
      config: { model_type: 'mystery', architectures: ['MysteryModel'] },
      tensors: { 'model.layers.0.mlp.up_proj.weight': ['F32', [0]] },
    }),
    /TensorsEmpty model.layers.0.mlp.up_proj.weight/,
    /ZeRO-3|families|architecture/,
  ],
  'FP8 of which one has lost its scale': [
    whole('m', {
      config: { quantization_config: { quant_method: 'fp8' } },
      tensors: {
        'model.layers.0.self_attn.q_proj.weight': ['F8_E4M3', [8, 8]],
        'model.layers.0.self_attn.k_proj.weight': ['F8_E4M3', [8, 8]],
        'model.layers.0.self_attn.k_proj.weight_scale': ['F32', [1]],
      },
    }),
    /^TensorMissing model.layers.0.self_attn.q_proj.weight$/,
    /without a scale that fits them/,
  ],
  'MXFP4 of which one has lost its scales': [
    whole('m', {
      config: { model_type: 'mystery', quantization_config: { quant_method: 'mxfp4' } },
      tensors: {
        'model.layers.0.mlp.experts.up_proj_blocks': ['U8', [2, 8, 1, 16]],
        'model.layers.0.mlp.experts.up_proj_scales': ['U8', [2, 8, 1]],
        'model.layers.1.mlp.experts.up_proj_blocks': ['U8', [2, 8, 1, 16]],
      },
    }),
    /TensorMissing model.layers.1.mlp.experts.up_proj_blocks/,
    /MXFP4 without a scale that fits them/,
  ],
  'integers, whatever stands beside them': [
    whole('m', { tensors: { 'model.layers.0.self_attn.q_proj.weight': ['I8', [8, 8]] } }),
    /^Quantized $/,
    /quantized \(integers of 8 bits\)/,
  ],
  'MLX, as it writes its config': [
    whole('m', {
      config: { quantization: { bits: 4 }, quantization_config: { bits: 4 } },
      tensors: { 'model.layers.0.self_attn.q_proj.weight': ['U32', [8, 1]] },
    }),
    /^Quantized $/,
    /quantized \(MLX/,
  ],
  'compressed-tensors': [
    whole('m', { tensors: { 'model.layers.0.self_attn.q_proj.weight_packed': ['I32', [8, 1]] } }),
    /^Quantized $/,
    /compressed/,
  ],
};

test.each(
  Object.keys(faults).flatMap((fault) => Object.keys(places).map((place) => [fault, place] as const)),
)('%s is found by %s', async (fault, place) => {
  const [folder, inPlan, inCompare] = faults[fault]!;
  expect(await places[place]!(folder)).toMatch(place === 'compare' ? inCompare : inPlan);
});

test('nothing is found where all is well: tied, with a head, without by its class, with two labels', async () => {
  const sound = [
    whole('m'),
    whole('m', { head: true }),
    whole('m', { config: { tie_word_embeddings: false, architectures: ['LlamaModel'] } }),
    whole('m', {
      config: { architectures: ['LlamaForSequenceClassification'] },
      tensors: { 'score.weight': ['F32', [2, 8]] },
    }),
  ];
  for (const folder of sound) expect(await places.copy!(folder)).toBe('');
});

test('a shard of several alone is refused when it is opened, with the index that lists it alone or without', async () => {
  const file = safetensors(tinyShapes());
  const name = 'model-00001-of-00002.safetensors';
  const index = { weight_map: Object.fromEntries(Object.keys(tinyShapes()).map((n) => [n, name])) };
  for (const more of [{}, { 'model.safetensors.index.json': index }]) {
    const folder = memoryFolder('m', { 'config.json': { model_type: 'llama' }, [name]: file, ...more });
    expect(await places.copy!(folder)).toMatch(/^NotFound/);
  }
});

test('shards without an index are counted by their names: one that is missing is said, whichever it is', async () => {
  const shard = (i: number) => [`model-0000${i}-of-00003.safetensors`, safetensors(tinyShapes())] as const;
  const of = async (...numbers: number[]) => {
    const folder = memoryFolder('m', {
      'config.json': { model_type: 'llama' },
      ...Object.fromEntries(numbers.map(shard)),
    });
    const { problems } = await makePlan(copyRecipe, openerOf(folder), methodById);
    return problems.map(({ message, remedy }) => `${message} ${remedy}`).join('; ');
  };
  for (const there of [
    [1, 3],
    [2, 3],
    [1, 2],
  ])
    expect(await of(...there)).toMatch('2 of the 3 weight files');
  expect(await of(1, 2, 3)).toMatch(/no index .*Add its model.safetensors.index.json\.$/);
});

/** A tied model that stores both ends; they differ in the last value. */
function twoEnds(path: string, differ: boolean, files: Record<string, string> = {}): ModelFolder {
  const shapes: Shapes = tinyShapes({ whole: true, hidden: 8 });
  const file = safetensors({ ...shapes, 'lm_head.weight': ['F32', [8, 8]] });
  if (differ) file[file.length - 1] = 0x3f;
  return whole(path, { files: { 'model.safetensors': file, ...files } });
}

test('tied ends that are stored both are one where their bytes are, else two, in every place', async () => {
  const copy = (folder: ModelFolder) => makePlan(copyRecipe, openerOf(folder), methodById);
  const same = await copy(twoEnds('m', false));
  expect(same.tensors.map(({ name }) => name)).not.toContain('lm_head.weight');
  expect(textOf(same, 'config.json').tie_word_embeddings).toBe(true);
  const apart = await copy(twoEnds('m', true));
  expect(apart.tensors.map(({ name }) => name)).toContain('lm_head.weight');
  expect(textOf(apart, 'config.json').tie_word_embeddings).toBe(false);
  expect(apart.problems.map(({ code }) => code)).toEqual(['EndsDiffer']);
  const { base, tuned } = await openSides('base', 'm', openerOf(whole('base'), twoEnds('m', true)));
  expect([base.tensors.has('lm_head.weight'), tuned.tensors.has('lm_head.weight')]).toEqual([true, true]);
});

test('tied ends in a GGUF file and under an adapter: one where their bytes are, else two', async () => {
  for (const differ of [false, true]) {
    const folder = twoEnds('m', differ, { 'tokenizer.json': byteLevelTokenizer(8) });
    const written = await makePlan({ ...copyRecipe, amalgam: { gguf: 'F32' } }, openerOf(folder), methodById);
    expect(written.problems.filter(({ severity }) => severity === 'error')).toEqual([]);
    const names = [...written.gguf!.tensors.values()].map(({ name }) => name);
    expect(names.includes('output.weight')).toBe(differ);

    const adapter = tinyAdapter('a', factors('lm_head', 8, 8));
    const recipe = { ...copyRecipe, models: [{ model: 'm+a', parameters: {} }] };
    const adapted = await makePlan(recipe, openerOf(folder, adapter), methodById);
    const changed = adapted.tensors.filter(({ copy }) => copy === undefined).map(({ name }) => name);
    expect(changed).toEqual(['lm_head.weight']);
    expect(textOf(adapted, 'config.json').tie_word_embeddings).toBe(false);
  }
});

test('a tied model stored with its head alone has it for the embedding', async () => {
  const folder = whole('m', {
    tensors: { 'model.embed_tokens.weight': undefined, 'lm_head.weight': ['F32', [8, 8]] },
  });
  const plan = await makePlan(copyRecipe, openerOf(folder), methodById);
  const embedding = plan.tensors.find(({ name }) => name === 'model.embed_tokens.weight');
  expect(embedding?.copy?.key).toBe('lm_head.weight');
  expect(plan.tensors.map(({ name }) => name)).not.toContain('lm_head.weight');
  expect(plan.problems.map(({ code }) => code)).toEqual(['HeadIsEmbedding']);
});

test.each([
  ['tokenizer.json', 'version https://git-lfs.github.com/spec/v1\noid sha256:0\n', 'pointer'],
  ['tokenizer.json', '{"model": {"vocab"', 'cut off'],
  ['tokenizer.json', '\ufeff{"model": {}}', 'byte order mark'],
  ['tokenizer.json', '{}', 'no vocabulary'],
  ['generation_config.json', '{"temperature": NaN}', 'holds NaN, which is not JSON'],
  ['tokenizer.json', '{"model": {"vocab": {"a": 0, "b": -1}}}', '“b” no id'],
  [
    'tokenizer.json',
    '{"model": {"vocab": {}}, "added_tokens": [{"content": "<pad>", "id": 4000000000}]}',
    'token “<pad>”’s id',
  ],
  ['special_tokens_map.json', '<!DOCTYPE html><html></html>', 'web page'],
  ['merges.txt', '<html>error</html>', 'web page'],
  ['vocab.txt', '# xet version 0\n', 'Xet'],
  ['preprocessor_config.json', '{', 'not JSON'],
  ['tokenizer.model', '\n\u0020cut', 'cut off'],
])('%s that is %s is no file that leaves', async (file, content, why) => {
  const plan = await makePlan(copyRecipe, openerOf(whole('m', { files: { [file]: content } })), methodById);
  expect(plan.problems.map(({ code, message }) => [code, message])).toContainEqual([
    'FileDamaged',
    expect.stringContaining(why),
  ]);
  expect(() => requireClean(plan)).toThrow(file);
});

/** FP8 with a scale for every matrix of the blocks, or without any. */
const eightBits = (path: string, scales: boolean) => {
  const shapes = tinyShapes({ whole: true, hidden: 8 });
  const tensors = Object.entries(shapes).flatMap(([name, [, shape]]): [string, Shapes[string]][] =>
    !/proj\.weight$/.test(name)
      ? []
      : [
          [name, ['F8_E4M3', shape]],
          ...(scales ? [[`${name}_scale`, ['F32', []]] as [string, Shapes[string]]] : []),
        ],
  );
  const config = scales ? { quantization_config: { quant_method: 'fp8' } } : {};
  return whole(path, { tensors: Object.fromEntries(tensors), config });
};

test.each([
  ['copied', true, {}, 'BF16'],
  ['copied', true, { outDtype: 'float32' }, 'F32'],
  ['copied', false, {}, 'F8_E4M3'],
  ['copied', false, { outDtype: 'bfloat16' }, 'BF16'],
  ['left out', true, {}, 'BF16'],
  ['left out', true, { outDtype: 'float32' }, 'F32'],
  ['stacked', true, {}, 'BF16'],
  ['stacked', true, { outDtype: 'float32' }, 'F32'],
  ['stacked', false, { outDtype: 'float32' }, 'F32'],
] as const)(
  'eight bits %s, with scales %s, %o: matrices of %s, and a config that says so',
  async (how, scales, changes, dtype) => {
    const base = eightBits('base', scales);
    const layers = (begin: number) => ({
      parameters: {},
      sources: [{ model: 'base', layerRange: [begin, begin + 1] as [number, number], parameters: {} }],
    });
    const recipe: Recipe =
      how === 'left out'
        ? recipeOf(['m'], { amalgam: { exclude: ['proj'] }, ...changes })
        : how === 'copied'
          ? { ...copyRecipe, models: [{ model: 'base', parameters: {} }], ...changes }
          : {
              mergeMethod: 'passthrough',
              slices: [0, 1, 1].map(layers),
              parameters: {},
              amalgam: {},
              ...changes,
            };
    const plan = await makePlan(recipe, openerOf(base, whole('m')), methodById);
    expect(plan.problems.filter(({ severity }) => severity === 'error')).toEqual([]);
    const matrices = plan.tensors.filter(({ name }) => /proj\.weight$/.test(name));
    expect(new Set(matrices.map((tensor) => tensor.dtype))).toEqual(new Set([dtype]));
    expect(plan.tensors.some(({ name }) => name.endsWith('_scale'))).toBe(false);
    expect(matrices).toHaveLength(how === 'stacked' ? 21 : 14);
    expect(textOf(plan, 'config.json')?.quantization_config).toBeUndefined();
  },
);

test('the end of a text follows the tokenizer and the template that were chosen', async () => {
  const vocab = { a: 0, b: 1, '</s>': 2, '<|im_end|>': 3 };
  const files = (eos: number, token: string, template?: string) => ({
    'tokenizer.json': { model: { type: 'BPE', vocab, merges: [] } },
    'tokenizer_config.json': { eos_token: token, ...(template ? { chat_template: template } : {}) },
    'generation_config.json': { eos_token_id: eos },
  });
  const base = whole('base', { config: { eos_token_id: 2 }, files: files(2, '</s>') });
  const chat = whole('m', {
    config: { eos_token_id: 3 },
    files: files(3, '<|im_end|>', 'x{{ messages }}<|im_end|>'),
  });
  const ends = async (changes: object) => {
    const plan = await makePlan({ ...recipeOf(['m']), ...changes }, openerOf(base, chat), methodById);
    const generation = plan.extras.find(({ path }) => path === 'generation_config.json')!.content;
    return [
      textOf(plan, 'config.json').eos_token_id,
      'text' in generation ? JSON.parse(generation.text).eos_token_id : 'copied',
    ];
  };
  expect(await ends({})).toEqual([2, 'copied']);
  expect(await ends({ tokenizerSource: 'm' })).toEqual([3, 3]);
  expect(await ends({ chatTemplate: 'auto' })).toEqual([3, 3]);
  expect(await ends({ chatTemplate: 'chatml' })).toEqual([
    [2, 3],
    [2, 3],
  ]);
});

const PAD = {
  ...{ id: 8, content: '[PAD]', single_word: false, lstrip: false, rstrip: false },
  ...{ normalized: false, special: true },
};

test('a tokenizer has no tokens beyond the rows it is written over: those of the model are an error, added ones a warning', async () => {
  const of = (vocab: object, added: object[] = []) =>
    places.copy!(
      whole('m', {
        files: { 'tokenizer.json': { model: { type: 'BPE', vocab, merges: [] }, added_tokens: added } },
      }),
    );
  const seen = Object.fromEntries([...'abcdefgh'].map((token, id) => [token, id]));
  expect(await of(seen)).toBe('');
  expect(await of({ ...seen, beyond: 8 })).toMatch('TokensBeyondRows');
  expect(await of(seen, [PAD])).toMatch('TokensBeyondRows');
});
