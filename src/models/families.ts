/**
 * Every family that is known by name, as data: the names of its tensors outside the blocks, whether the head is the embedding, and
 * how its types compute. Adding one is one literal here.
 */
import { commonName } from './aliases';
import type { Wiring } from './wiring';
import * as encoders from './wirings/encoders';
import * as experts from './wirings/experts';
import * as gpt from './wirings/gpt';
import * as hybrid from './wirings/hybrid';
import * as linear from './wirings/linear-attention';
import * as plain from './wirings/llama';
import * as relatives from './wirings/relatives';

/** Merging needs no more than this; a family that is not listed is merged all the same, tensor by tensor. */
export interface Family {
  /** Name of the group, e.g. `llama`. */
  id: string;
  /**
   * `model_type` → whether the head is tied to the embedding when the config has no such field (the default of the
   * configuration class in transformers), and how it computes.
   */
  modelTypes: Readonly<Record<string, { tiedByDefault: boolean; wiring?: Wiring }>>;
  /** First part of the names that a checkpoint may have or lack: the bare model is saved without it. */
  prefix: string;
  /** Token embedding and head, with prefix. */
  embedding: string;
  head: string;
  /** Stack of the blocks, with prefix: a block tensor is `${stack}${index}.…`. */
  stack: string;
  /** How the linear weights of the blocks are stored; GPT-2's Conv1D stores [in, out]. */
  linearStorage: 'out_in' | 'in_out';
}

/** The group's own names: prefix, embedding and stack below it, and head. */
function family(
  id: string,
  [prefix, embedding, stack, head = 'lm_head.weight']: readonly [string, string, string, string?],
  modelTypes: Family['modelTypes'],
  linearStorage: Family['linearStorage'] = 'out_in',
): Family {
  const names = { prefix, embedding: `${prefix}${embedding}.weight`, head, stack: `${prefix}${stack}.` };
  return { id, modelTypes, ...names, linearStorage };
}

const types = (tiedByDefault: boolean, wirings: Readonly<Record<string, Wiring | undefined>>) =>
  Object.fromEntries(
    Object.entries(wirings).map(([type, wiring]) => [type, { tiedByDefault, ...(wiring && { wiring }) }]),
  );
const tied = (wirings: Readonly<Record<string, Wiring>>) => types(true, wirings);
const untied = (wirings: Readonly<Record<string, Wiring | undefined>>) => types(false, wirings);

export const families: readonly Family[] = [
  /** Llama and everything that names its tensors like it (transformers: modeling_llama.py and the files derived from it). */
  family('llama', ['model.', 'embed_tokens', 'layers'], {
    ...untied({
      ...{ llama: plain.llama, mistral: plain.mistral, qwen2: plain.qwen2, qwen3: plain.qwen3 },
      ...{ phi3: plain.phi3, olmo2: plain.olmo2, granite: plain.granite, stablelm: plain.stablelm },
      ...{ phi: relatives.phi, olmo: relatives.olmo, olmo3: relatives.olmo3, arcee: relatives.arcee },
      ...{ apertus: relatives.apertus, exaone4: relatives.exaone4, glm: relatives.glm, glm4: relatives.glm4 },
      ...{ nemotron: relatives.nemotron, seed_oss: relatives.seedOss, hunyuan_v1_dense: relatives.hunyuan },
      ...{ mixtral: experts.mixtral, qwen2_moe: experts.qwen2Moe, qwen3_moe: experts.qwen3Moe },
      ...{ olmoe: experts.olmoe, granitemoe: experts.graniteMoe, phimoe: experts.phimoe },
      ...{ glm4_moe: experts.glm4Moe, gpt_oss: experts.gptOss, llama4_text: experts.llama4 },
      ...{
        deepseek: experts.deepseek,
        deepseek_v2: experts.deepseek2,
        deepseek_v3: experts.deepseek3,
        dots1: experts.dots1,
      },
      ...{ qwen3_5_text: linear.qwen35, qwen3_5_moe_text: linear.qwen35Moe, qwen3_next: linear.qwen3Next },
      ...{ olmo_hybrid: linear.olmoHybrid, minimax: linear.minimax },
      ...{ granitemoehybrid: hybrid.graniteHybrid, bamba: hybrid.bamba },
      ...{ falcon_h1: hybrid.falconH1, jamba: hybrid.jamba },
    }),
    ...tied({
      ...{ gemma: plain.gemma, gemma2: plain.gemma2, gemma3_text: plain.gemma3, smollm3: plain.smollm3 },
      ...{ starcoder2: relatives.starcoder2, cohere: relatives.cohere, cohere2: relatives.cohere2 },
      ...{ ernie4_5: relatives.ernie, minicpm3: relatives.minicpm3, ernie4_5_moe: experts.ernieMoe },
      ...{ lfm2: hybrid.lfm2, lfm2_moe: hybrid.lfm2Moe, zamba2: hybrid.zamba2 },
      ...{ gemma3n_text: linear.gemma3n, gemma4_text: linear.gemma4 },
      recurrent_gemma: linear.recurrentGemma,
    }),
  }),
  /** GPT-2 (transformers modeling_gpt2.py): Conv1D weights [in, out], blocks under `h`, often saved without prefix. */
  family('gpt2', ['transformer.', 'wte', 'h'], tied({ gpt2: gpt.gpt2 }), 'in_out'),
  /** GPT-BigCode, GPT-Neo, GPT-J, CodeGen and Qwen 1 (remote code): the names of GPT-2, but ordinary linear weights. */
  family('gpt_linear', ['transformer.', 'wte', 'h'], {
    ...tied({ gpt_bigcode: gpt.gptBigcode, gpt_neo: gpt.gptNeo }),
    ...untied({ gptj: gpt.gptj, codegen: gpt.codegen, qwen: undefined }),
  }),
  /** BLOOM and Falcon (transformers modeling_bloom.py, modeling_falcon.py). */
  family('bloom', ['transformer.', 'word_embeddings', 'h'], tied({ bloom: gpt.bloom, falcon: gpt.falcon })),
  /** GPT-NeoX and Pythia (transformers modeling_gpt_neox.py). */
  family(
    'gpt_neox',
    ['gpt_neox.', 'embed_in', 'layers', 'embed_out.weight'],
    untied({ gpt_neox: gpt.gptNeox }),
  ),
  /** OPT (transformers modeling_opt.py). */
  family('opt', ['model.', 'decoder.embed_tokens', 'decoder.layers'], tied({ opt: gpt.opt })),
  /** MPT (transformers modeling_mpt.py). */
  family('mpt', ['transformer.', 'wte', 'blocks'], tied({ mpt: gpt.mpt })),
  /** Mamba, Mamba-2 and Nemotron-H (transformers modeling_mamba.py, modeling_mamba2.py, modeling_nemotron_h.py). */
  family('mamba', ['backbone.', 'embeddings', 'layers'], {
    ...tied({ mamba: hybrid.mamba }),
    ...untied({ mamba2: hybrid.mamba2, nemotron_h: hybrid.nemotronH }),
  }),
  /** BERT (transformers modeling_bert.py). */
  family(
    'bert',
    ['bert.', 'embeddings.word_embeddings', 'encoder.layer', 'cls.predictions.decoder.weight'],
    tied({ bert: encoders.bert }),
  ),
  /** RoBERTa, XLM-RoBERTa and CamemBERT (transformers modeling_roberta.py and those made of it). */
  family(
    'roberta',
    ['roberta.', 'embeddings.word_embeddings', 'encoder.layer', 'lm_head.decoder.weight'],
    tied({ roberta: encoders.roberta, 'xlm-roberta': encoders.roberta, camembert: encoders.roberta }),
  ),
  /** DistilBERT (transformers modeling_distilbert.py). */
  family(
    'distilbert',
    ['distilbert.', 'embeddings.word_embeddings', 'transformer.layer', 'vocab_projector.weight'],
    tied({ distilbert: encoders.distilbert }),
  ),
  /** ModernBERT (transformers modeling_modernbert.py). */
  family(
    'modernbert',
    ['model.', 'embeddings.tok_embeddings', 'layers', 'decoder.weight'],
    tied({ modernbert: encoders.modernbert }),
  ),
];

const byModelType: ReadonlyMap<string, Family> = new Map(
  families.flatMap((one) => Object.keys(one.modelTypes).map((type) => [type, one] as const)),
);

/** The family of a `model_type`, or undefined for one that is not listed. */
export function familyOf(modelType: string | undefined): Family | undefined {
  return modelType === undefined ? undefined : byModelType.get(modelType);
}

/**
 * The name under which a tensor is compared across checkpoints: without the family's prefix, which the bare model is
 * saved without (`h.0.attn.c_attn.weight` and `transformer.h.0.attn.c_attn.weight` are the same tensor).
 */
export function canonicalName(name: string, family: Family | undefined): string {
  return family && name.startsWith(family.prefix) ? name.slice(family.prefix.length) : name;
}

/** The key of a tensor, or of the beginning of its name, among those of other checkpoints and of adapters. */
export function tensorKey(name: string, family: Family | undefined): string {
  return commonName(canonicalName(name, family));
}
