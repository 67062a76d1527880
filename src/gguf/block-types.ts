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

/** Bytes of a row of `elements`, a multiple of the block's. */
export function rowBytes(type: BlockType, elements: number): number {
  const block = BLOCK_TYPES[type];
  return (elements / block.elements) * block.bytes;
}
