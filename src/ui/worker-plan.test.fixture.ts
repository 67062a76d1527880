/** The part of the fake worker that plans: it knows the sample family's structure. */

import type { Recipe } from '../formats/recipe';
import type { PlanProblem, PlanReport, PlanTensor } from '../reports/plan';

const linears: readonly [module: string, shape: [number, number]][] = [
  ['mlp.down_proj', [128, 352]],
  ['mlp.gate_proj', [352, 128]],
  ['mlp.up_proj', [352, 128]],
  ['self_attn.k_proj', [64, 128]],
  ['self_attn.o_proj', [128, 128]],
  ['self_attn.q_proj', [128, 128]],
  ['self_attn.v_proj', [64, 128]],
];

/** The linear modules of a layer. */
function linearsOf(experts: number): typeof linears {
  if (experts === 0) return linears;
  const own = linears.filter(([module]) => !module.startsWith('mlp.'));
  const mlp = linears.filter(([module]) => module.startsWith('mlp.'));
  const of = (n: number) =>
    mlp.map(([module, shape]): (typeof linears)[number] => [
      module.replace('mlp.', `mlp.experts.${n}.`),
      shape,
    ]);
  return [...own, ['mlp.gate', [experts, 128]], ...Array.from({ length: experts }, (_, n) => of(n)).flat()];
}

/**
 * Plans any recipe: adapters change the linear tensors, other contributors change all.
 * @param experts of each layer in the place of its MLP; 0: it has none
 */
export function planFor(recipe: Recipe, layers: number, problems: PlanProblem[], experts = 0): PlanReport {
  const modules = linearsOf(experts);
  const contributors = (recipe.models ?? []).map((m) => m.model);
  const full = contributors.flatMap((id, i) => (id.includes('+') ? [] : [i]));
  const all = contributors.map((_, i) => i);
  const tensor = (
    name: string,
    layer: number | null,
    module: string,
    shape: number[],
    by: number[],
  ): PlanTensor => {
    // its patterns are parts of names, no globs
    const among = (patterns: string[]) => patterns.some((pattern) => name.includes(pattern));
    const { include, exclude = [] } = recipe.amalgam;
    const leftOut = (include !== undefined && !among(include)) || among(exclude);
    return {
      name,
      layer,
      module,
      shape,
      dtype: 'BF16',
      elements: shape.reduce((a, b) => a * b, 1),
      copied: leftOut || by.length === 0,
      ...(leftOut ? { leftOut } : {}),
      contributors: leftOut ? [] : by,
    };
  };
  const tensors = [tensor('model.embed_tokens.weight', null, 'embed_tokens', [1024, 128], full)];
  for (let layer = 0; layer < layers; layer++) {
    const at = `model.layers.${layer}`;
    tensors.push(tensor(`${at}.input_layernorm.weight`, layer, 'input_layernorm', [128], full));
    for (const [module, size] of modules)
      tensors.push(tensor(`${at}.${module}.weight`, layer, module, size, all));
    tensors.push(
      tensor(`${at}.post_attention_layernorm.weight`, layer, 'post_attention_layernorm', [128], full),
    );
  }
  tensors.push(tensor('model.norm.weight', null, 'norm', [128], full));
  const bytes = tensors.reduce((sum, t) => sum + 2 * t.elements, 0);
  return {
    problems,
    clean: !problems.some((p) => p.severity === 'error'),
    tensors,
    contributors,
    ...(recipe.baseModel === undefined ? {} : { base: recipe.baseModel }),
    bytesToDownload: 0,
    bytesToRead: bytes * (1 + full.length) + 459_600 * (contributors.length - full.length),
    bytesToWrite: bytes,
    peakBytes: 34_500_000,
    outputFiles: [
      'model.safetensors',
      'config.json',
      'generation_config.json',
      'tokenizer.json',
      'tokenizer_config.json',
      'special_tokens_map.json',
      'mergekit_config.yml',
      'README.md',
    ],
    layers,
  };
}

/** A number in [0, 1) that depends on the text alone: FNV-1a with a final mix. */
export function chance(text: string): number {
  let h = 0x811c9dc5;
  for (const c of text) h = Math.imul(h ^ c.charCodeAt(0), 0x01000193);
  h = Math.imul(h ^ (h >>> 15), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return ((h ^ (h >>> 16)) >>> 0) / 2 ** 32;
}
