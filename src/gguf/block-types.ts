/** How GGUF stores the elements of one tensor: in blocks along a row (ggml/include/ggml.h, ggml/src/ggml-common.h). */
import type { GgufType } from '../formats/gguf-type';

/** `id` is ggml's number of the type; a block holds `elements` of one row in `bytes`, F16 at `scales` among them. */
export const BLOCK_TYPES = {
  F32: { id: 0, elements: 1, bytes: 4, scales: [] },
  F16: { id: 1, elements: 1, bytes: 2, scales: [] },
  BF16: { id: 30, elements: 1, bytes: 2, scales: [] },
  Q8_0: { id: 8, elements: 32, bytes: 34, scales: [0] },
  Q4_0: { id: 2, elements: 32, bytes: 18, scales: [0] },
  Q4_1: { id: 3, elements: 32, bytes: 20, scales: [0, 2] },
  Q5_0: { id: 6, elements: 32, bytes: 22, scales: [0] },
  Q5_1: { id: 7, elements: 32, bytes: 24, scales: [0, 2] },
  Q4_K: { id: 12, elements: 256, bytes: 144, scales: [0, 2] },
  Q5_K: { id: 13, elements: 256, bytes: 176, scales: [0, 2] },
  Q6_K: { id: 14, elements: 256, bytes: 210, scales: [208] },
} as const;

export type BlockType = keyof typeof BLOCK_TYPES;

/** Those that are read, by ggml's number: the ones that are written, and more. */
export const READ_TYPES: ReadonlyMap<number, { name: string; elements: number; bytes: number }> = new Map(
  Object.entries({
    ...BLOCK_TYPES,
    Q2_K: { id: 10, elements: 256, bytes: 84 },
    Q3_K: { id: 11, elements: 256, bytes: 110 },
    IQ4_NL: { id: 20, elements: 32, bytes: 18 },
    IQ4_XS: { id: 23, elements: 256, bytes: 136 },
    MXFP4: { id: 39, elements: 32, bytes: 17 },
  }).map(([name, { id, elements, bytes }]) => [id, { name, elements, bytes }]),
);

/** Those that are not, to be named where they are met. */
export const UNREAD_TYPES: Readonly<Record<number, string>> = {
  ...{ 16: 'IQ2_XXS', 17: 'IQ2_XS', 18: 'IQ3_XXS', 19: 'IQ1_S', 21: 'IQ3_S', 22: 'IQ2_S', 29: 'IQ1_M' },
  ...{ 24: 'I8', 25: 'I16', 26: 'I32', 27: 'I64', 28: 'F64', 34: 'TQ1_0', 35: 'TQ2_0', 40: 'NVFP4' },
};

/** Number of the file type (llama.h, `llama_ftype`) and the type of an ordinary matrix in it. */
export const FILE_TYPES: Readonly<Record<GgufType, { id: number; blocks: BlockType }>> = {
  F32: { id: 0, blocks: 'F32' },
  F16: { id: 1, blocks: 'F16' },
  BF16: { id: 32, blocks: 'BF16' },
  Q8_0: { id: 7, blocks: 'Q8_0' },
  Q4_0: { id: 2, blocks: 'Q4_0' },
  Q4_K_M: { id: 15, blocks: 'Q4_K' },
  Q5_K_M: { id: 17, blocks: 'Q5_K' },
  Q6_K: { id: 18, blocks: 'Q6_K' },
};

/** Names of the file types that are read, by number. */
export const FILE_TYPE_NAMES: Readonly<Record<number, string>> = {
  ...Object.fromEntries(Object.entries(FILE_TYPES).map(([name, { id }]) => [id, name])),
  ...{ 3: 'Q4_1', 8: 'Q5_0', 9: 'Q5_1', 10: 'Q2_K', 11: 'Q3_K_S', 12: 'Q3_K_M', 13: 'Q3_K_L' },
  ...{ 14: 'Q4_K_S', 16: 'Q5_K_S', 21: 'Q2_K_S', 25: 'IQ4_NL', 30: 'IQ4_XS', 38: 'MXFP4' },
};

/** Bytes of a row of `elements`, a multiple of the block's. */
export function rowBytes(type: BlockType, elements: number): number {
  const block = BLOCK_TYPES[type];
  return (elements / block.elements) * block.bytes;
}
