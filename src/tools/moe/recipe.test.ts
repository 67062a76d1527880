/** mergekit-moe's YAML as cards and issues publish it: read, or refused at its line. */
import { describe, expect, test } from 'vitest';
import { parseRecipe } from '../../formats/recipe-yaml';
import { formatMoeRecipe, moeModels, parseMoeRecipe, renameModels } from './recipe';

const problemsOf = (text: string) =>
  parseMoeRecipe(text).problems.map(({ line, message }) => `${line}: ${message}`);

describe('published recipes', () => {
  // prompts shortened
  test.each([
    [
      'mlabonne/Beyonder-4x7B-v2',
      `base_model: mlabonne/Marcoro14-7B-slerp
experts:
  - source_model: openchat/openchat-3.5-1210
    positive_prompts:
    - "chat"
    - "assistant"
  - source_model: beowolx/CodeNinja-1.0-OpenChat-7B
    positive_prompts:
    - "code"
    - "python"
  - source_model: maywell/PiVoT-0.1-Starling-LM-RP
    positive_prompts:
    - "storywriting"
  - source_model: WizardLM/WizardMath-7B-V1.1
    positive_prompts:
    - "reason"
`,
      { gateMode: 'hidden', expertsPerToken: 2, sharedExperts: [], ignored: [] },
    ],
    [
      'the example of mergekit’s page: shared experts',
      `base_model: path/to/self_attn_donor
gate_mode: hidden # one of "hidden", "cheap_embed", or "random"
dtype: bfloat16 # output dtype (float32, float16, or bfloat16)
## (optional)
# experts_per_token: 2
experts:
  - {source_model: expert_model_1, positive_prompts: ["a"], negative_prompts: ["b"]}
  - {source_model: expert_model_2, positive_prompts: ["c"]}
shared_experts:
  - source_model: model_name
    positive_prompts: # required by Qwen MoE for "hidden" gate mode, otherwise not allowed
      - "blah blah"
    # (optional, but recommended:)
    residual_scale: 0.1 # downweight output from shared expert to prevent overcooking the model
`,
      { dtype: 'bfloat16', sharedExperts: [{ sourceModel: 'model_name', residualScale: 0.1 }] },
    ],
    [
      'arcee-ai/mergekit#626',
      `base_model: Qwen/Qwen3-1.7B
architecture: qwen
gate_mode: hidden
experts_per_token: 2
dtype: bfloat16
experts:
  - source_model: Qwen/Qwen3-1.7B
    positive_prompts:
    - "chat"
  - source_model: Qwen/Qwen3-1.7B-Base
    positive_prompts:
    - "write a story"
`,
      {
        architecture: 'qwen',
        experts: [{ positivePrompts: ['chat'] }, { positivePrompts: ['write a story'] }],
      },
    ],
    [
      'arcee-ai/mergekit#582: random, without prompts',
      `base_model: D:/Qwen3-0.6B
gate_mode: random
architecture: qwen
dtype: bfloat16
experts_per_token: 2
experts:
  - source_model: D:/qwen3-0.6b-creative-writing
  - source_model: D:/Qwen3-0.6B-dreamwriter-0.6b-beta

shared_experts:
  - source_model: D:/Qwen3-0.6B
`,
      { gateMode: 'random', sharedExperts: [{ sourceModel: 'D:/Qwen3-0.6B' }] },
    ],
    [
      'keys that mergekit drops, and an empty prompt',
      `base_model: a
gate_mode: cheap_embed
tokenizer_source: union
dtype: torch.float16
experts:
  - {source_model: a+lora, positive_prompts: [""], name: first}
  - {source_model: b, positive_prompts: [code], negative_prompts: }
`,
      { dtype: 'float16', ignored: ['tokenizer_source', 'name'], experts: [{ positivePrompts: [''] }, {}] },
    ],
  ])('%s', (_, text, read) => {
    const { read: recipe, problems } = parseMoeRecipe(text);
    expect(problems).toEqual([]);
    expect(recipe).toMatchObject(read);
    expect(parseMoeRecipe(formatMoeRecipe(recipe!)).read).toEqual({ ...recipe, ignored: [] });
  });
});

describe('refused at its line', () => {
  const two = (a: string, b: string, more = '') =>
    `base_model: m\n${more}experts:\n  - {source_model: a${a}}\n  - {source_model: b${b}}\n`;
  test.each([
    [
      'no prompts',
      two('', ''),
      ['3: experts[0] has no positive_prompts, from which gate_mode hidden makes its row of the router.'],
    ],
    [
      'the same prompts',
      two(', positive_prompts: [x]', ', positive_prompts: [x]'),
      ['3: All experts have the same prompts, so that a router cannot tell them apart.'],
    ],
    [
      'too few experts',
      two('', '', 'gate_mode: random\nexperts_per_token: 3\n'),
      ['5: A token takes 3 experts, and 2 are listed.'],
    ],
    ['an unknown mode', two('', '', 'gate_mode: clever\n'), ['2: gate_mode cannot be “clever”.']],
    [
      'a text for a list',
      two(', positive_prompts: x', ''),
      ['3: experts[0].positive_prompts is not a list.'],
    ],
    [
      'a number for a prompt',
      two(', positive_prompts: [1]', ''),
      ['3: experts[0].positive_prompts[0] is not a string.'],
    ],
    [
      'no model',
      'base_model: m\ngate_mode: random\nexperts: [{}, {source_model: a}]\n',
      ['3: experts[0] has no source_model.'],
    ],
    ['no experts', 'base_model: m\n', ['1: The recipe has no experts.']],
    ['nothing', '', ['1: The recipe is not a mapping.']],
    [
      'a recipe of a merge',
      'base_model: a\nmerge_method: linear\nmodels: []\n',
      ['1: The recipe has no experts.'],
    ],
  ])('%s', (_, text, problems) => {
    expect(problemsOf(text)).toEqual(problems);
  });
});

test('models are named once, and renamed everywhere', () => {
  const { read } = parseMoeRecipe(
    'base_model: a\ngate_mode: random\nexperts: [{source_model: a}, {source_model: b+c}]\nshared_experts: [{source_model: b+c}]\n',
  );
  expect(moeModels(read!)).toEqual(['a', 'b+c']);
  const renamed = renameModels(
    read!,
    new Map([
      ['a', 'x@1'],
      ['b+c', 'y'],
    ]),
  );
  expect(moeModels(renamed)).toEqual(['x@1', 'y']);
});

test('where a recipe of a merge is read, one of experts is sent here', () => {
  const [problem] = parseRecipe('base_model: a\nexperts: []\n').problems;
  expect(problem!.hint).toMatch(/amalgam moe/);
});
