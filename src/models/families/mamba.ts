import type { Family } from '../family';
import { mamba, mamba2, nemotronH } from '../wirings/hybrid';

/** Mamba, Mamba-2 and Nemotron-H (transformers modeling_mamba.py, modeling_mamba2.py, modeling_nemotron_h.py). */
export const backbone: Family = {
  id: 'mamba',
  modelTypes: {
    mamba: { tiedByDefault: true, wiring: mamba },
    mamba2: { tiedByDefault: false, wiring: mamba2 },
    nemotron_h: { tiedByDefault: false, wiring: nemotronH },
  },
  prefix: 'backbone.',
  embedding: 'backbone.embeddings.weight',
  head: 'lm_head.weight',
  stack: 'backbone.layers.',
  linearStorage: 'out_in',
};
