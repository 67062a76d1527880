/** Sentences on a collapse and its cost: for the card, the report and the terminal. */

import { madeCard, markdownText, nameCode } from '../../formats/model-card';
import { displayName } from '../../formats/names';
import { counted, formatBytes, formatCount, formatCounted, formatReal } from '../../formats/quantity';
import { type Architecture, partOf } from '../../models/architecture';
import { computedWords } from '../../reports/backend';
import { layerWords } from './choose-layers';
import type { CollapseReport, MeasureLayersReport } from './report';
import { isUntouched, type Stack } from './stack';

/** Words for the variants. */
const VARIANTS = {
  rdsc: 'sum of differences (rdsc) of the linear layers, norms as in the first layer',
  drop: 'dropped (drop)',
  mean: 'averaged into the most similar expert (mean)',
} as const;

/** How the layers were chosen; settings with their defaults filled in. */
export function plannerWords({ planner, ...settings }: CollapseReport['settings']): string {
  const { remove, ratio, threshold, block, highest, lowest, interval, similarity } = settings;
  const target = [
    ...(remove === undefined ? [] : [`${remove} to go`]),
    ...(ratio === undefined ? [] : [`${ratio * 100} % to go`]),
  ];
  if (planner === 'experts') return ['least router weight times output', ...target].join(', ');
  if (planner === 'laco') {
    return [
      `LaCo's greedy loop, blocks of ${block} from layer ${highest} down to ${lowest}`,
      `interval ${interval}, similarity above ${similarity}`,
      ...target,
    ].join(', ');
  }
  const what = planner === 'influence' ? 'least block influence' : 'least angular distance of last tokens';
  return [what, ...target, ...(threshold === undefined ? [] : [`threshold ${threshold}`])].join(', ');
}

/** Layers that took others in: `layer 4 (was 4): linear layers = − θ4 + θ5 + θ6`. */
export function mergedLayers(stack: Stack): string[] {
  return stack.flatMap((layer, index) => {
    if (layer.experts || isUntouched(layer)) return [];
    const sum = layer.terms.map(term).join(' ').replace(/^\+ /, '');
    return [`layer ${index} (was ${layer.origin}): linear layers = ${sum}`];
  });
}

function term({ layer, coefficient }: { layer: number; coefficient: number }): string {
  const size = Math.abs(coefficient);
  const factor = size === 1 ? '' : `${Number(size.toPrecision(6))}·`;
  return `${coefficient < 0 ? '−' : '+'} ${factor}θ${layer}`;
}

/** Remarks on the result for its user. */
export function collapseNotes(
  { planner, remove, ratio }: CollapseReport['settings'],
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
    layer.terms.some((t) => kind(t.layer) !== kind(layer.origin)) ? [index] : [],
  );
  if (mixed.length > 0) {
    notes.push(
      `The attention of ${mixed.length === 1 ? 'layer' : 'layers'} ${layerWords(mixed)} comes from layers with other windows or positions than its own.`,
    );
  }
  if (planner === 'laco' && (remove ?? ratio) !== undefined && stack.length > least) {
    notes.push(
      `The model has ${counted(stack.length, 'layer')}, not the ${least} that were the target: no further block stays above the similarity asked for.`,
    );
  }
  return notes;
}

/** Cost of the collapse, in words. */
function costWords({ similarity, perplexity }: Pick<CollapseReport, 'similarity' | 'perplexity'>): string[] {
  const words = [
    `Similarity to the original: ${similarity.mean.toPrecision(4)} (mean cosine of what leaves the final norm)`,
  ];
  if (perplexity) {
    const { before, after } = perplexity;
    words.push(
      `Perplexity on ${counted(after.tokens, 'token')}: ${before.perplexity.toPrecision(5)} before, ${after.perplexity.toPrecision(5)} after (windows of ${after.protocol.window}, stride ${after.protocol.stride})`,
    );
  }
  return words;
}

/**
 * The README.md of a collapsed model: what was removed, how, and the measured cost.
 *
 * @param hubModel id of the original where it is on the Hub
 */
export function collapseCard(
  report: Omit<CollapseReport, 'inputs' | 'shards' | 'files' | 'seconds' | 'stages'>,
  hubModel: string | undefined,
): string {
  const { model, version, layers, parameters, removed, stack, calibration, notes, experts } = report;
  const less = (1 - parameters.after / parameters.before) * 100;
  const merged = mergedLayers(stack);
  const card = madeCard(hubModel, {
    tag: 'pruned',
    title: 'Collapsed model',
    lead: `Made from ${nameCode(model)} by collapsing ${experts ? 'experts' : 'layers'}, with Amalgam ${markdownText(version)}. It was not trained afterwards.`,
    facts: [
      experts
        ? `Experts of a layer: ${experts.after} of ${experts.before}`
        : `Layers: ${layers.after} of ${layers.before}. Removed: ${layerWords(removed)} (counted from 0)`,
      `Parameters: ${parameters.after} of ${parameters.before} (${less.toFixed(1)} % less)`,
      `Chosen by: ${plannerWords(report.settings)}`,
      `What became of them: ${VARIANTS[report.settings.variant]}`,
      ...costWords(report),
      `Calibration: ${counted(calibration.tokens, 'token')} in ${counted(calibration.sequences, 'sequence')}`,
      ...notes,
    ],
  });
  const list = merged.map((line) => `* ${markdownText(line)}`).join('\n');
  return merged.length > 0 ? `${card}\n## Layers that took others in\n\n${list}\n` : card;
}

/** Measurements of the layers: one line per layer. */
export function measureText(report: MeasureLayersReport): string {
  const { influence, distance, curve, calibration } = report;
  const similarity = new Map(curve?.map((point) => [point.layer, point.similarity]));
  const rows = influence.map((value, layer) => [
    String(layer),
    formatReal(value),
    formatReal(distance[layer]![layer + 1]!),
    ...(curve ? [similarity.has(layer) ? formatSimilarity(similarity.get(layer)!) : ''] : []),
  ]);
  const head = ['layer', 'block influence', 'angular distance'];
  return [
    ...table([curve ? [...head, 'similarity when collapsed'] : head, ...rows]),
    '',
    `Measured on ${formatCounted(calibration.tokens, 'token')} ${computedWords(report)}`,
  ].join('\n');
}

/** Result of a collapse and its cost. */
export function collapseText(report: CollapseReport, folder: string): string {
  const { layers, parameters, removed, steps, similarity, perplexity, shards, experts } = report;
  const bytes = shards.reduce((sum, shard) => sum + shard.bytes, 0);
  return [
    ...steps.map(
      (step) =>
        `layer ${step.layer} takes in ${step.count}: similarity ${formatSimilarity(step.similarity)}, ${step.accepted ? `kept, ${counted(step.layers, 'layer')}` : 'not kept'}`,
    ),
    `${experts ? `${experts.after} of ${counted(experts.before, 'expert')} a layer` : `${layers.after} of ${counted(layers.before, 'layer')}`}, ${formatCount(parameters.after)} of ${formatCounted(parameters.before, 'parameter')}${experts ? '' : `; removed: ${removed.join(', ')}`}`,
    `Similarity to the original ${formatReal(similarity.mean)}`,
    ...(perplexity
      ? [
          `Perplexity ${formatReal(perplexity.before.perplexity)} before, ${formatReal(perplexity.after.perplexity)} after, over ${formatCounted(perplexity.after.tokens, 'token')}`,
        ]
      : []),
    ...report.notes.map((note) => displayName(note, 2000)),
    `Written ${computedWords(report)}: ${folder}, ${formatBytes(bytes)}`,
  ].join('\n');
}

const formatSimilarity = (value: number | null) => (value === null ? 'not finite' : formatReal(value));

function table(rows: readonly string[][]): string[] {
  const widths = rows[0]!.map((_, i) => Math.max(...rows.map((row) => row[i]!.length)));
  return rows.map((row) => row.map((cell, i) => cell.padStart(widths[i]!)).join('  '));
}
