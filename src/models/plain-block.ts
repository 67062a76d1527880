/** Blocks of attention and MLP or experts alone, by the place of everything in them: what llama.cpp's graphs are written for. */
import type { Architecture, Attention, Block, Branch, Experts, Mlp, Norm, Part } from './architecture';
import { unsupported } from './config-reader';

export interface PlainBlock {
  index: number;
  attention: Attention;
  mlp: Mlp | RoutedMlp;
  /** Norms ahead of a branch, of what comes out of it, and of the stream after it. */
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

/** Experts, with the one that every token takes beside them. */
export interface RoutedMlp {
  kind: 'routed';
  experts: Experts;
  shared?: Mlp;
}

/** @throws AmalgamError `ArchitectureUnsupported` where a block holds anything else */
export function plainBlocks({ blocks, modelType }: Pick<Architecture, 'blocks' | 'modelType'>): PlainBlock[] {
  return blocks.map((block) => plainBlock(block, modelType));
}

function plainBlock({ index, steps, factor }: Block, modelType: string): PlainBlock {
  const [first, second, ...more] = steps.flatMap((step) => step.branches);
  const mlp = second && mlpOf(second.part, more);
  if (first?.part.kind !== 'attention' || !mlp || factor) {
    throw unsupported(`Layer ${index} of this ${modelType} is more than attention and MLP.`);
  }
  const behind = (norm: Norm | undefined, key: 'attentionAfter' | 'mlpAfter') =>
    norm === undefined ? {} : { [key]: norm };
  return {
    index,
    attention: first.part,
    mlp,
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

/** MLP or experts of a plain block; undefined for any other part. */
function mlpOf(part: Part, more: readonly Branch[]): PlainBlock['mlp'] | undefined {
  const [beside, ...others] = more;
  if (part.kind === 'mlp') return beside ? undefined : part;
  if (part.kind !== 'experts' || others.length > 0) return undefined;
  if (!beside) return { kind: 'routed', experts: part };
  // the router of a shared expert reads what the experts read
  const isShared = beside.part.kind === 'mlp' && !beside.out && beside.scale === 1;
  return isShared ? { kind: 'routed', experts: part, shared: beside.part as Mlp } : undefined;
}
