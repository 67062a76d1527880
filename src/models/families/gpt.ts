import type { Family } from '../family';
import * as wirings from '../wirings/gpt';

/** GPT-2 (transformers modeling_gpt2.py): Conv1D weights [in, out], blocks under `h`, often saved without prefix. */
export const gpt2: Family = {
  id: 'gpt2',
  modelTypes: { gpt2: { tiedByDefault: true, wiring: wirings.gpt2 } },
  prefix: 'transformer.',
  embedding: 'transformer.wte.weight',
  head: 'lm_head.weight',
  stack: 'transformer.h.',
  linearStorage: 'in_out',
};

/** GPT-BigCode, GPT-Neo, GPT-J, CodeGen and Qwen 1 (remote code): the names of GPT-2, but ordinary linear weights. */
export const gptLinear: Family = {
  ...gpt2,
  id: 'gpt_linear',
  modelTypes: {
    gpt_bigcode: { tiedByDefault: true, wiring: wirings.gptBigcode },
    gpt_neo: { tiedByDefault: true, wiring: wirings.gptNeo },
    gptj: { tiedByDefault: false, wiring: wirings.gptj },
    codegen: { tiedByDefault: false, wiring: wirings.codegen },
    qwen: { tiedByDefault: false },
  },
  linearStorage: 'out_in',
};

/** BLOOM and Falcon (transformers modeling_bloom.py, modeling_falcon.py). */
export const bloom: Family = {
  ...gpt2,
  id: 'bloom',
  modelTypes: {
    bloom: { tiedByDefault: true, wiring: wirings.bloom },
    falcon: { tiedByDefault: true, wiring: wirings.falcon },
  },
  embedding: 'transformer.word_embeddings.weight',
  linearStorage: 'out_in',
};

/** GPT-NeoX and Pythia (transformers modeling_gpt_neox.py). */
export const gptNeox: Family = {
  id: 'gpt_neox',
  modelTypes: { gpt_neox: { tiedByDefault: false, wiring: wirings.gptNeox } },
  prefix: 'gpt_neox.',
  embedding: 'gpt_neox.embed_in.weight',
  head: 'embed_out.weight',
  stack: 'gpt_neox.layers.',
  linearStorage: 'out_in',
};

/** OPT (transformers modeling_opt.py). */
export const opt: Family = {
  id: 'opt',
  modelTypes: { opt: { tiedByDefault: true, wiring: wirings.opt } },
  prefix: 'model.',
  embedding: 'model.decoder.embed_tokens.weight',
  head: 'lm_head.weight',
  stack: 'model.decoder.layers.',
  linearStorage: 'out_in',
};

/** MPT (transformers modeling_mpt.py). */
export const mpt: Family = {
  id: 'mpt',
  modelTypes: { mpt: { tiedByDefault: true, wiring: wirings.mpt } },
  prefix: 'transformer.',
  embedding: 'transformer.wte.weight',
  head: 'lm_head.weight',
  stack: 'transformer.blocks.',
  linearStorage: 'out_in',
};
