/** Which block type a tensor of a GGUF gets (llama.cpp v0.5.0, src/llama-quant.cpp). */
import type { GgufType } from '../formats/gguf-type';
import { BLOCK_TYPES, type BlockType, FILE_TYPES } from './block-types';
import type { GgufTensor } from './tensors';

/** Type for rows that a block of 256 does not divide. */
const FALLBACK: Partial<Record<BlockType, BlockType>> = { Q4_K: 'Q5_0', Q5_K: 'Q5_1', Q6_K: 'Q8_0' };

/** The block type of one tensor: vectors, norms and learned positions are F32. */
export function tensorType(type: GgufType, { name, shape }: Pick<GgufTensor, 'name' | 'shape'>): BlockType {
  if (shape.length < 2 || !name.endsWith('weight') || /_norm\.weight$|^position_embd/.test(name))
    return 'F32';
  const { blocks } = FILE_TYPES[type];
  if (BLOCK_TYPES[blocks].elements === 1) return blocks;
  return fitting(blocks, shape.at(-1)!);
}

function fitting(type: BlockType, columns: number): BlockType {
  if (columns % BLOCK_TYPES[type].elements === 0) return type;
  const smaller = FALLBACK[type] ?? type;
  return columns % BLOCK_TYPES[smaller].elements === 0 ? smaller : 'F16';
}
