/**
 * The forms that a mixture of dense models can have, as configs (transformers: configuration_mixtral.py,
 * configuration_qwen2_moe.py, configuration_qwen3_moe.py; configuration_deepseek.py of deepseek-ai/deepseek-moe-16b-base). The
 * names of their tensors are in the wirings of the model types.
 */
import { AmalgamError } from '../../errors';
import { editConfig, type ModelConfig } from '../../formats/model-config';
import { displayName } from '../../formats/names';
import type { PlainJson } from '../../formats/strict-json';
import { type Architecture, type Mlp, partOf } from '../../models/architecture';
import { valueAt } from '../../models/config-reader';
import { type MoeRecipe, readsPrompts } from './recipe';

export interface MoeForm {
  modelType: string;
  /** As mergekit-moe calls it: `architecture` is the beginning of it. */
  title: string;
  className: string;
  /** Model types that experts can come from. */
  from: readonly string[];
  /** Why a recipe of such models cannot have this form; undefined where it can. */
  refuses(recipe: MoeRecipe): string | undefined;
  fields(sizes: {
    experts: number;
    chosen: number;
    shared: number;
    inner: number;
  }): Record<string, PlainJson>;
}

const noShared = ({ sharedExperts }: MoeRecipe) =>
  sharedExperts.length > 0 ? 'it has no shared expert; list the model under experts' : undefined;

const qwen = ({ experts, chosen, inner }: Parameters<MoeForm['fields']>[0]) => ({
  num_experts: experts,
  num_experts_per_tok: chosen,
  moe_intermediate_size: inner,
  decoder_sparse_step: 1,
  mlp_only_layers: [],
  norm_topk_prob: true,
});

/** Those that several fit take the first. */
const FORMS: readonly MoeForm[] = [
  {
    modelType: 'mixtral',
    title: 'Mixtral',
    className: 'MixtralForCausalLM',
    from: ['llama', 'mistral'],
    refuses: noShared,
    fields: ({ experts, chosen }) => ({ num_local_experts: experts, num_experts_per_tok: chosen }),
  },
  {
    modelType: 'deepseek',
    title: 'DeepSeek MoE',
    className: 'DeepseekForCausalLM',
    from: ['llama', 'mistral'],
    refuses({ sharedExperts }) {
      if (sharedExperts.length > 1) return 'it takes one shared expert';
      return sharedExperts.some(
        ({ positivePrompts, negativePrompts }) => positivePrompts[0] ?? negativePrompts[0],
      )
        ? 'its shared expert is always on; leave out its prompts'
        : undefined;
    },
    fields: ({ experts, chosen, shared, inner }) => ({
      n_routed_experts: experts,
      n_shared_experts: shared === 0 ? null : shared,
      num_experts_per_tok: chosen,
      moe_intermediate_size: inner,
      first_k_dense_replace: 0,
      moe_layer_freq: 1,
      scoring_func: 'softmax',
      norm_topk_prob: true,
      auto_map: Object.fromEntries(
        [
          ['AutoConfig', 'configuration_deepseek.DeepseekConfig'],
          ['AutoModel', 'modeling_deepseek.DeepseekModel'],
          ['AutoModelForCausalLM', 'modeling_deepseek.DeepseekForCausalLM'],
        ].map(([name, code]) => [name, `deepseek-ai/deepseek-moe-16b-base--${code}`]),
      ),
    }),
  },
  {
    modelType: 'qwen2_moe',
    title: 'Qwen MoE',
    className: 'Qwen2MoeForCausalLM',
    from: ['qwen2'],
    refuses(recipe) {
      const { sharedExperts } = recipe;
      if (sharedExperts.length !== 1) return 'it has exactly one shared expert; name it under shared_experts';
      return readsPrompts(recipe) && sharedExperts[0]!.positivePrompts.length === 0
        ? 'its shared expert has a gate; give it positive_prompts'
        : undefined;
    },
    fields: (sizes) => ({ ...qwen(sizes), shared_expert_intermediate_size: sizes.inner }),
  },
  {
    ...{ modelType: 'qwen3_moe', title: 'Qwen3 MoE', className: 'Qwen3MoeForCausalLM' },
    from: ['qwen3'],
    refuses: noShared,
    fields: qwen,
  },
];

/**
 * The form of a recipe over models of these types.
 * @throws AmalgamError `ArchitectureUnsupported` with the reasons where there is none
 */
export function formOf(recipe: MoeRecipe, modelTypes: readonly string[]): MoeForm {
  const { architecture = '' } = recipe;
  const asked = FORMS.filter(({ title }) => title.toLowerCase().startsWith(architecture.toLowerCase()));
  const refuse = (why: string, hint: string) => new AmalgamError('ArchitectureUnsupported', why, hint);
  if (asked.length === 0) {
    const names = FORMS.map(({ title }) => title).join(', ');
    throw refuse(
      `No mixture has the architecture ${displayName(architecture)}.`,
      `Choose the beginning of one of ${names}.`,
    );
  }
  const able = asked.filter(({ from }) => modelTypes.every((type) => from.includes(type)));
  if (able.length === 0) {
    const types = [...new Set(modelTypes)].map((type) => displayName(type)).join(', ');
    const wanted = architecture === '' ? 'mixture of experts' : asked.map(({ title }) => title).join(' or ');
    const ways = FORMS.map(({ title, from }) => `${title} of ${from.join(' and ')}`).join('; ');
    throw refuse(`Models of type ${types} make no ${wanted}.`, `What can be made: ${ways}.`);
  }
  const form = able.find((one) => one.refuses(recipe) === undefined);
  if (form) return form;
  const reasons = able.map((one) => `${one.title}: ${one.refuses(recipe)}`).join('. ');
  throw refuse(`No form of a mixture fits this recipe. ${reasons}.`, 'Change the recipe so that one does.');
}

/**
 * The config of the mixture: that of the base, with the type and fields of the form. What the base leaves to the defaults of its
 * own class is spelled out where another class may have others.
 */
export function moeConfig(
  form: MoeForm,
  base: ModelConfig,
  { blocks, final }: Architecture,
  sizes: Omit<Parameters<MoeForm['fields']>[0], 'inner'>,
): string {
  const attention = partOf(blocks[0]!, 'attention')!;
  const { inner } = partOf(blocks[0]!, 'mlp') as Mlp;
  const isSaid = (field: string) => valueAt(base, field) !== undefined;
  const rotation = isSaid('rope_parameters') || !attention.rope ? {} : { rope_theta: attention.rope.theta };
  const defaults: Record<string, PlainJson> = {
    num_key_value_heads: attention.keyValueHeads,
    head_dim: attention.headDim,
    rms_norm_eps: final.norm!.epsilon,
    sliding_window: attention.window ?? null,
    tie_word_embeddings: final.tied,
    ...rotation,
  };
  const unsaid = Object.entries(defaults).filter(([field]) => !isSaid(field));
  const own = Object.entries(form.fields({ ...sizes, inner }));
  const fields = new Map<string, PlainJson>([
    ['model_type', form.modelType],
    ['architectures', [form.className]],
    ...unsaid,
    ...own,
  ]);
  return editConfig(base, { fields });
}
