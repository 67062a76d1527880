/** The file types a GGUF can be written in, as `llama-quantize` names them; the mix per tensor is in `gguf/gguf-plan`. */
export const GGUF_TYPES = ['F32', 'F16', 'BF16', 'Q8_0', 'Q6_K', 'Q5_K_M', 'Q4_K_M', 'Q4_0'] as const;

export type GgufType = (typeof GGUF_TYPES)[number];

/** Those of a LoRA: its factors are small, and rounding them to few bits loses what was trained. */
export const ADAPTER_GGUF_TYPES: readonly GgufType[] = ['F32', 'F16', 'BF16', 'Q8_0'];

/** Types whose scales are searched for, which an importance matrix helps. */
export function usesImportance(type: GgufType): boolean {
  return type === 'Q4_0' || type.includes('_K');
}

/** The word for no importance matrix. */
export const NO_IMATRIX = 'off';

/** `<name>-<TYPE>.gguf`, the name made one that every system takes; `model` where nobody has a name. */
export function ggufName(stem: string | undefined, type: GgufType): string {
  const plain = (stem ?? '').replaceAll(/[^\p{L}\p{N}._-]+/gu, '-').replaceAll(/^[-.]+|[-.]+$/g, '');
  return `${plain === '' ? 'model' : plain}-${type}.gguf`;
}

/** The files of a plan, which knows no name, with the one that a GGUF file gets from the output's. */
export function namedFiles(files: readonly string[], name: string): string[] {
  return files.map((file) => {
    const type = GGUF_TYPES.find((each) => file.endsWith(`-${each}.gguf`));
    return type ? ggufName(name, type) : file;
  });
}
