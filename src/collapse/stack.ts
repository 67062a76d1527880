/**
 * The one operation of depth pruning: a layer takes the layers behind it in. A stack says what every layer of the
 * result is, as combinations of the layers of the original; collapsing what was collapsed before combines further, and
 * nothing is rounded in between.
 */

import { AmalgamError } from '../errors';
import type { BlockPart } from '../models/depth';
import type { CollapsedLayer, CollapseParts, CollapseVariant, LayerTerm } from '../reports/collapse';

export type Stack = readonly CollapsedLayer[];

/** Parts of a block that take part. */
const MERGED: Readonly<Record<CollapseParts, readonly BlockPart[]>> = {
  full: ['attention', 'mlp', 'norm'],
  linear: ['attention', 'mlp'],
  attention: ['attention'],
  mlp: ['mlp'],
};

export interface CollapseKind {
  variant: CollapseVariant;
  parts: CollapseParts;
}

/** The original: every layer is itself. */
export function wholeStack(layers: number): Stack {
  return Array.from({ length: layers }, (_, layer) => {
    const itself = [{ layer, coefficient: 1 }];
    return { origin: layer, attention: itself, mlp: itself, norm: itself };
  });
}

/** Layer `layer` takes in the `count` layers behind it; the others move up. */
export function collapseAt(
  stack: Stack,
  layer: number,
  count: number,
  { variant, parts }: CollapseKind,
): Stack {
  const block = stack.slice(layer, layer + count + 1);
  const kept = block[0]!;
  const merged = { ...kept };
  for (const part of MERGED[parts])
    merged[part] = combine(
      block.map((b) => b[part]),
      variant,
    );
  return [...stack.slice(0, layer), merged, ...stack.slice(layer + count + 1)];
}

/**
 * Removes layers of the original; each run of them is taken in by the layer before it.
 * @throws AmalgamError `Usage` for layers that are not there, for all layers, and for a run without a layer before it
 *   unless it is dropped; `NothingToCollapse` for none
 */
export function removeLayers(layers: number, removed: readonly number[], kind: CollapseKind): Stack {
  const gone = new Set(removed);
  if (gone.size === 0) {
    throw new AmalgamError(
      'NothingToCollapse',
      'No layer is to be removed, so there is nothing to do.',
      'Choose layers, a larger target, or another threshold.',
    );
  }
  const odd = [...gone].find((layer) => !Number.isInteger(layer) || layer < 0 || layer >= layers);
  if (odd !== undefined) {
    throw new AmalgamError(
      'Usage',
      `There is no layer ${odd}: the model has the layers 0 to ${layers - 1}.`,
      'Choose layers that the model has, counted from 0.',
    );
  }
  if (gone.size === layers) {
    throw new AmalgamError('Usage', `All ${layers} layers would be removed.`, 'Leave at least one layer.');
  }
  if (gone.has(0) && kind.variant !== 'drop') {
    throw new AmalgamError(
      'Usage',
      `Layer 0 has no layer before it to be folded into, as “${kind.variant}” does.`,
      'Keep layer 0, or drop layers (variant drop).',
    );
  }
  let stack = wholeStack(layers);
  for (let end = layers; end > 0; ) {
    if (!gone.has(end - 1)) {
      end--;
      continue;
    }
    let begin = end - 1;
    while (begin > 0 && gone.has(begin - 1)) begin--;
    stack = begin === 0 ? stack.slice(end) : collapseAt(stack, begin - 1, end - begin, kind);
    end = begin;
  }
  return stack;
}

/** Layers of the original without a place of their own. */
export function removedLayers(stack: Stack, layers: number): number[] {
  const kept = new Set(stack.map(({ origin }) => origin));
  return Array.from({ length: layers }, (_, layer) => layer).filter((layer) => !kept.has(layer));
}

/** First layer of the result that is not the original's layer of the same index; the length where none is. */
export function firstChange(stack: Stack): number {
  const changed = stack.findIndex((layer, i) => layer.origin !== i || !isUntouched(layer));
  return changed < 0 ? stack.length : changed;
}

/** Whether a layer of the result is one of the original's, as it is. */
export function isUntouched({ origin, attention, mlp, norm }: CollapsedLayer): boolean {
  return [attention, mlp, norm].every(
    (terms) => terms.length === 1 && terms[0]!.layer === origin && terms[0]!.coefficient === 1,
  );
}

/** Coefficients of a variant over a layer and the m behind it, applied to what those layers are themselves. */
function combine(block: readonly LayerTerm[][], variant: CollapseVariant): LayerTerm[] {
  const coefficients = coefficientsOf(variant, block.length - 1);
  const sums = new Map<number, number>();
  for (const [i, terms] of block.entries()) {
    for (const { layer, coefficient } of terms) {
      sums.set(layer, (sums.get(layer) ?? 0) + coefficients[i]! * coefficient);
    }
  }
  return [...sums]
    .filter(([, coefficient]) => coefficient !== 0)
    .sort(([a], [b]) => a - b)
    .map(([layer, coefficient]) => ({ layer, coefficient }));
}

/** Of θ_l, θ_{l+1}, …, θ_{l+m}. Xia et al. 2024 (LaCo), equation 2: θ_l + Σ (θ_{l+k} − θ_l) = Σ θ_{l+k} − (m − 1) θ_l. */
function coefficientsOf(variant: CollapseVariant, m: number): number[] {
  switch (variant) {
    case 'rdsc':
      return [1 - m, ...Array<number>(m).fill(1)];
    case 'replace-last':
      return [...Array<number>(m).fill(0), 1];
    case 'mean':
      return Array<number>(m + 1).fill(1 / (m + 1));
    case 'drop':
      return [1, ...Array<number>(m).fill(0)];
  }
}
