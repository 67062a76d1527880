/** The file types a GGUF can be written in, as `llama-quantize` names them; the mix per tensor is in `gguf/tensor-types`. */
export const GGUF_TYPES = ['F32', 'F16', 'BF16', 'Q8_0', 'Q6_K', 'Q5_K_M', 'Q4_K_M', 'Q4_0'] as const;

export type GgufType = (typeof GGUF_TYPES)[number];

export function isGgufType(name: string): name is GgufType {
  return (GGUF_TYPES as readonly string[]).includes(name);
}
