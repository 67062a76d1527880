/** How many engines on the processor one model is worth: each holds the weights of the layer at work. */
import type { CountedBackend } from '../backend/counted-backend';
import { DTYPE_BITS } from '../formats/dtype';
import type { Plan } from '../merge/plan/plan';

/** Bytes of layers that the engines of one model hold together; two layers in any case. */
const LAYER_BYTES = 1 << 30;

/** Most engines for a plan's model. */
export function enginesFor(plan: Plan): number {
  return Math.max(2, Math.floor(LAYER_BYTES / Math.max(1, largestLayer(plan))));
}

/** Whether each of so many engines may also hold the next layer. */
export function roomAhead(plan: Plan, engines: number): boolean {
  return engines === 1 || 2 * engines * largestLayer(plan) <= LAYER_BYTES;
}

/** Multiply-adds of running so many tokens, attention left out. */
export function multiplyAdds({ tensors }: Plan, tokens: number): number {
  return tokens * tensors.reduce((sum, { elements }) => sum + elements, 0);
}

/** Most bytes that engines held, all together. */
export function peakOf(engines: readonly CountedBackend[]): number {
  return engines.reduce((sum, { peakBytes }) => sum + peakBytes, 0);
}

/** Stored bytes of the largest layer. */
function largestLayer({ tensors }: Plan): number {
  const layers = new Map<number, number>();
  for (const { role, elements, dtype } of tensors) {
    if (role.layer === null) continue;
    layers.set(role.layer, (layers.get(role.layer) ?? 0) + (elements * DTYPE_BITS[dtype]) / 8);
  }
  return Math.max(0, ...layers.values());
}
