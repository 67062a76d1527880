/** The goldens of src/forward as llama.cpp can compute them. */
import { GOLDEN_NAMES } from '../forward/golden.test.fixture';

/** llama.cpp cannot say these. */
export const REFUSED_GOLDENS = ['gpt2_inv_layer', 'opt', 'opt_postnorm_proj'];

export const EXPRESSIBLE_GOLDENS = GOLDEN_NAMES.filter((name) => !REFUSED_GOLDENS.includes(name));

/** llama.cpp's GELU is one by tanh, from a table of halves. */
export function goldenLimit(name: string): number {
  return /^(?:gemma|gpt|bloom)/.test(name) ? 6e-3 : 1e-3;
}

/** Some have odd numbers that llama.cpp has built in otherwise; with the usual ones they can be compared. */
const usualScale = ({ head_dim }: Record<string, unknown>) => ({ query_pre_attn_scalar: head_dim });
const EXPRESSIBLE: Record<string, (config: Record<string, unknown>) => Record<string, unknown>> = {
  gemma2: usualScale,
  gemma3: usualScale,
  gemma3_linear: usualScale,
  smollm3: () => ({ no_rope_layers: [1, 1, 1], no_rope_layer_interval: 4 }),
};

/** The config.json of a golden, with those numbers. */
export function expressibleConfig(name: string, text: string): string {
  const raw = JSON.parse(text) as Record<string, unknown>;
  return JSON.stringify({ ...raw, ...EXPRESSIBLE[name]?.(raw) });
}
