/** Blocks of attention and MLP alone, by the place of everything in them: what llama.cpp's graphs are written for. */
import type { Architecture, Attention, Block, Mlp, Norm } from './architecture';
import { unsupported } from './config-reader';

export interface PlainBlock {
  index: number;
  attention: Attention;
  mlp: Mlp;
  /** Norms ahead of a branch, of what comes out of it, and of the stream behind it. */
  attentionIn?: Norm;
  mlpIn?: Norm;
  attentionOut?: Norm;
  mlpOut?: Norm;
  attentionAfter?: Norm;
  mlpAfter?: Norm;
  /** Both branches read the stream as it enters the block. */
  parallel: boolean;
  residualScale: number;
}

/** @throws AmalgamError `ArchitectureUnsupported` where a block holds anything else */
export function plainBlocks({ blocks, modelType }: Pick<Architecture, 'blocks' | 'modelType'>): PlainBlock[] {
  return blocks.map((block) => plainBlock(block, modelType));
}

function plainBlock({ index, steps, factor }: Block, modelType: string): PlainBlock {
  const [first, second, ...more] = steps.flatMap((step) => step.branches);
  if (first?.part.kind !== 'attention' || second?.part.kind !== 'mlp' || more.length > 0 || factor) {
    throw unsupported(`Layer ${index} of this ${modelType} is more than attention and MLP.`);
  }
  const behind = (norm: Norm | undefined, key: 'attentionAfter' | 'mlpAfter') =>
    norm === undefined ? {} : { [key]: norm };
  return {
    index,
    attention: first.part,
    mlp: second.part,
    ...(first.in && { attentionIn: first.in }),
    ...(second.in && { mlpIn: second.in }),
    ...(first.out && { attentionOut: first.out }),
    ...(second.out && { mlpOut: second.out }),
    ...(steps.length === 2 ? behind(steps[0]!.after, 'attentionAfter') : {}),
    ...behind(steps.at(-1)!.after, 'mlpAfter'),
    parallel: steps.length === 1,
    residualScale: first.scale,
  };
}
