/** Every kind of part by its name. */
import type { Block, Part } from '../../models/architecture';
import { attention } from './attention';
import { experts } from './experts';
import { lru } from './lru';
import { mlp } from './mlp';
import type { PartKind, StateShape } from './part';
import { perLayer } from './per-layer';
import { recurrence } from './recurrence';
import { shortConv } from './short-conv';

const KINDS: { [K in Part['kind']]: PartKind<Extract<Part, { kind: K }>> } = {
  attention,
  mlp,
  experts,
  conv: shortConv,
  recurrence,
  lru,
  per_layer: perLayer,
};

/** How a part runs. */
export function kindOf(part: Part): PartKind<Part> {
  return KINDS[part.kind] as PartKind<Part>;
}

/** What a block keeps of the tokens so far. */
export function blockStates(block: Block): StateShape[] {
  return block.steps.flatMap((step) => step.branches).flatMap(({ part }) => kindOf(part).states(part));
}
