/** Every kind of part by its name. */
import type { Architecture, Block, Part } from '../../models/architecture';
import { unsupported } from '../../models/config-reader';
import { attention } from './attention';
import { experts } from './experts';
import { laurel } from './laurel';
import { lru } from './lru';
import { mlp } from './mlp';
import type { PartKind, StateShape } from './part';
import { perLayer } from './per-layer';
import { recurrence } from './recurrence';
import { shared } from './shared';
import { shortConv } from './short-conv';

const KINDS: { [K in Part['kind']]: PartKind<Extract<Part, { kind: K }>> } = {
  attention,
  mlp,
  experts,
  conv: shortConv,
  recurrence,
  lru,
  per_layer: perLayer,
  laurel,
  shared,
};

/** How a part runs. */
export function kindOf(part: Part): PartKind<Part> {
  return KINDS[part.kind] as PartKind<Part>;
}

/** What a block keeps of the tokens so far. */
export function blockStates(block: Block): StateShape[] {
  return partsOf(block).flatMap((part) => kindOf(part).states(part));
}

/** The parts of a block's branches, and what stands ahead of them. */
export function partsOf(block: Block): Part[] {
  const branches = [...block.steps.flatMap((step) => step.branches)];
  if (block.planes) branches.push(block.planes.share);
  return branches.flatMap(({ ahead, part }) => (ahead ? [ahead, part] : [part]));
}

/**
 * Refuses models whose layers read more than the stream: other streams, keys of other layers, the embedding again.
 * @throws AmalgamError `ArchitectureUnsupported`
 */
export function requireOneStream({ planes, blocks, modelType }: Architecture, what: string): void {
  const parts = blocks.flatMap(partsOf);
  const isOne = !parts.some(
    (part) => part.kind === 'shared' || (part.kind === 'attention' && part.keysOf !== undefined),
  );
  if (planes || !isOne)
    throw unsupported(`A ${modelType} cannot ${what}: its layers read more than one stream.`);
}

/** What layers read besides the stream: the embedding again, and keys of these layers. */
export function sharedReads({ blocks }: Architecture): {
  keepsEmbedded: boolean;
  donors: ReadonlySet<number | undefined>;
} {
  const parts = blocks.flatMap(partsOf);
  return {
    keepsEmbedded: parts.some(({ kind }) => kind === 'shared'),
    donors: new Set(parts.flatMap((part) => (part.kind === 'attention' ? (part.keysOf ?? []) : []))),
  };
}
