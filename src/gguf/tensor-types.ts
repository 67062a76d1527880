/** Which block type a tensor of a GGUF gets: the mix of llama.cpp v0.5.0 (src/llama-quant.cpp, llama_tensor_get_type_impl). */
import type { GgufType } from '../formats/gguf-type';
import type { Architecture } from '../models/architecture';
import { plainBlocks } from '../models/plain-block';
import { BLOCK_TYPES, type BlockType, FILE_TYPES } from './block-types';
import type { GgufTensor } from './tensors';

/** Type for rows that a block of 256 does not divide. */
const FALLBACK: Partial<Record<BlockType, BlockType>> = { Q4_K: 'Q5_0', Q5_K: 'Q5_1', Q6_K: 'Q8_0' };

/**
 * The block type of one tensor: vectors, norms and learned positions are F32.
 * @param hasImportance whether columns are weighed: then the first layers of Q4_0 have minima
 */
export function tensorType(
  type: GgufType,
  { name, shape }: Pick<GgufTensor, 'name' | 'shape'>,
  architecture: Architecture,
  hasImportance: boolean,
): BlockType {
  if (shape.length < 2 || !name.endsWith('weight') || /_norm\.weight$|^position_embd|ffn_gate_inp/.test(name))
    return 'F32';
  const { blocks } = FILE_TYPES[type];
  if (BLOCK_TYPES[blocks].elements === 1) return blocks;
  return fitting(mixed(type, hasImportance, name, shape.at(-1)!, architecture), shape.at(-1)!);
}

function mixed(
  type: GgufType,
  hasImportance: boolean,
  name: string,
  columns: number,
  architecture: Architecture,
): BlockType {
  const { final, blocks, modelType } = architecture;
  const ordinary = FILE_TYPES[type].blocks;
  if (name === 'output.weight' || (final.tied && name === 'token_embd.weight')) {
    if (columns % BLOCK_TYPES[ordinary].elements !== 0 || ordinary === 'Q8_0') return 'Q8_0';
    return 'Q6_K';
  }
  const [, layer, module] = /^blk\.(\d+)\.(\w+)\.weight$/.exec(name) ?? [];
  if (layer === undefined) return ordinary;
  if (type === 'Q4_0' && hasImportance) {
    return module === 'ffn_down' && Number(layer) < Math.floor(blocks.length / 8) ? 'Q4_1' : ordinary;
  }
  if (hasEightExperts(architecture)) {
    if (module === 'attn_v' || module === 'attn_k') return 'Q8_0';
    if (module === 'attn_output' && type === 'Q4_K_M') return 'Q5_K';
  }
  if (type !== 'Q4_K_M' && type !== 'Q5_K_M') return ordinary;
  const isMore = takesMoreBits(Number(layer), blocks.length);
  if (module === 'ffn_down' || module === 'ffn_down_exps' || module === 'ffn_down_shexp')
    return isMore ? 'Q6_K' : ordinary;
  if (module !== 'attn_v' && module !== 'attn_qkv') return ordinary;
  if (isMore) return 'Q6_K';
  if (blocks.length !== 80) return ordinary;
  // what llama.cpp takes for a model of 70 B: eight heads share the values
  const { heads, keyValueHeads } = plainBlocks(architecture)[0]!.attention;
  const is70B = modelType === 'qwen2' || heads !== keyValueHeads;
  return is70B ? 'Q5_K' : ordinary;
}

/** As Mixtral has them: attention is a small part of the weights then. */
function hasEightExperts(architecture: Architecture): boolean {
  const { mlp } = plainBlocks(architecture)[0]!;
  return mlp.kind === 'routed' && mlp.experts.experts.length === 8;
}

/** The first and the last eighth of the layers, and every third between. */
function takesMoreBits(layer: number, layers: number): boolean {
  const eighth = Math.floor(layers / 8);
  return layer < eighth || layer >= Math.floor((7 * layers) / 8) || (layer - eighth) % 3 === 2;
}

function fitting(type: BlockType, columns: number): BlockType {
  if (columns % BLOCK_TYPES[type].elements === 0) return type;
  const smaller = FALLBACK[type] ?? type;
  return columns % BLOCK_TYPES[smaller].elements === 0 ? smaller : 'F16';
}
