/** What a collapse is and what it cost, in sentences: for the card, the report and the terminal. */

import { type Architecture, partOf } from '../models/architecture';
import type {
  CollapsedLayer,
  CollapseParts,
  CollapsePlanner,
  CollapseReport,
  CollapseVariant,
  DepthTarget,
} from '../reports/collapse';
import { isUntouched, type Stack } from './stack';

const VARIANTS: Readonly<Record<CollapseVariant, string>> = {
  rdsc: 'sum of differences (rdsc)',
  'replace-last': 'replaced by the last layer of the block (replace-last)',
  mean: 'mean of the block (mean)',
  drop: 'layers dropped (drop)',
};

const PARTS: Readonly<Record<CollapseParts, string>> = {
  full: 'all tensors',
  linear: 'linear layers, norms as in the first layer',
  attention: 'attention only',
  mlp: 'MLP only',
};

/** `sum of differences (rdsc), linear layers, norms as in the first layer` */
export function kindWords(variant: CollapseVariant, parts: CollapseParts): string {
  return variant === 'drop' ? VARIANTS.drop : `${VARIANTS[variant]}, ${PARTS[parts]}`;
}

/** How the layers were chosen; the planner with its defaults filled in. */
export function plannerWords(planner: CollapsePlanner): string {
  switch (planner.kind) {
    case 'manual':
      return 'chosen by hand';
    case 'influence':
      return `least block influence, ${targetWords(planner.target)}`;
    case 'angular':
      return `least angular distance of ${planner.tokens === 'all' ? 'all' : 'last'} tokens, ${targetWords(planner.target)}`;
    case 'laco':
      return [
        `LaCo's greedy loop, blocks of ${planner.block} from layer ${planner.highest} down to ${planner.lowest}`,
        `interval ${planner.interval}, similarity above ${planner.threshold}`,
        ...(planner.target ? [targetWords(planner.target)] : []),
      ].join(', ');
  }
}

function targetWords(target: DepthTarget | { threshold: number }): string {
  if ('threshold' in target) return `threshold ${target.threshold}`;
  return 'remove' in target ? `${target.remove} to go` : `${target.ratio * 100} % to go`;
}

/** `1, 3 to 5 and 9` */
export function layerList(layers: readonly number[]): string {
  const runs: [number, number][] = [];
  for (const layer of layers) {
    const run = runs.at(-1);
    if (run && run[1] === layer - 1) run[1] = layer;
    else runs.push([layer, layer]);
  }
  const words = runs.flatMap(([a, b]) =>
    b > a + 1 ? [`${a} to ${b}`] : b > a ? [`${a}`, `${b}`] : [`${a}`],
  );
  return words.length > 1 ? `${words.slice(0, -1).join(', ')} and ${words.at(-1)}` : (words[0] ?? 'none');
}

/** Layers that took others in: `layer 4 (was 4): attention and mlp from 4, 5 and 6`. */
export function mergedLayers(stack: Stack): string[] {
  return stack.flatMap((layer, index) => {
    if (isUntouched(layer)) return [];
    const parts = (['attention', 'mlp', 'norm'] as const)
      .filter((part) => !isOwn(layer, part))
      .map((part) => `${part} = ${layer[part].map(term).join(' ')}`.replace('= + ', '= '));
    return [`layer ${index} (was ${layer.origin}): ${parts.join('; ')}`];
  });
}

const isOwn = (layer: CollapsedLayer, part: 'attention' | 'mlp' | 'norm') =>
  layer[part].length === 1 && layer[part][0]!.layer === layer.origin && layer[part][0]!.coefficient === 1;

function term({ layer, coefficient }: { layer: number; coefficient: number }): string {
  const size = Math.abs(coefficient);
  const factor = size === 1 ? '' : `${Number(size.toPrecision(6))}·`;
  return `${coefficient < 0 ? '−' : '+'} ${factor}θ${layer}`;
}

/** What else a person should know of the result. */
export function collapseNotes(
  planner: CollapsePlanner,
  stack: Stack,
  { blocks, modelType }: Architecture,
  spelledOut: readonly string[],
  least: number,
): string[] {
  const notes: string[] = [];
  if (spelledOut.length > 0) {
    notes.push(
      `config.json now says ${spelledOut.join(' and ')}: in a ${modelType} the kind of a layer followed from its index. Programs that know only the old rule run this model wrongly.`,
    );
  }
  const kind = (layer: number) => {
    const attention = partOf(blocks[layer]!, 'attention');
    return JSON.stringify([attention?.window, attention?.rope]);
  };
  const mixed = stack.flatMap((layer, index) =>
    layer.attention.some((t) => kind(t.layer) !== kind(layer.origin)) ? [index] : [],
  );
  if (mixed.length > 0) {
    notes.push(
      `The attention of ${mixed.length === 1 ? 'layer' : 'layers'} ${layerList(mixed)} comes from layers with other windows or positions than its own.`,
    );
  }
  if (planner.kind === 'laco' && planner.target && stack.length > least) {
    notes.push(
      `The model has ${stack.length} layers, not the ${least} that were the target: no further block stays above the threshold.`,
    );
  }
  return notes;
}

/** What the collapse cost. */
export function costWords({
  similarity,
  perplexity,
}: Pick<CollapseReport, 'similarity' | 'perplexity'>): string[] {
  const words: string[] = [];
  if (similarity) {
    words.push(
      `Similarity to the original: ${similarity.mean.toPrecision(4)} (mean cosine of what leaves the final norm)`,
    );
  }
  if (perplexity) {
    const { before, after } = perplexity;
    words.push(
      `Perplexity on ${after.tokens} tokens: ${before.perplexity.toPrecision(5)} before, ${after.perplexity.toPrecision(5)} after (windows of ${after.protocol.window}, stride ${after.protocol.stride})`,
    );
  }
  return words.length > 0 ? words : ['Its effect on quality was not measured.'];
}
