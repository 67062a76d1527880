import { displayName } from '../formats/names';
import { formatBytes, formatCount, formatReal, formatSeconds } from '../formats/quantity';
import type { CollapseReport, MeasureDepthReport } from '../reports/collapse';

/** What could go: one line per layer. */
export function measureText(report: MeasureDepthReport): string {
  const { influence, distance, curve, calibration, seconds, engine, adapter } = report;
  const similarity = new Map(curve?.map((point) => [point.layer, point.similarity]));
  const rows = influence.map((value, layer) => [
    String(layer),
    formatReal(value),
    formatReal(distance.lastToken[layer]![layer + 1]!),
    formatReal(distance.allTokens[layer]![layer + 1]!),
    ...(curve ? [similarity.has(layer) ? formatSimilarity(similarity.get(layer)!) : ''] : []),
  ]);
  const head = ['layer', 'block influence', 'distance, last tokens', 'distance, all tokens'];
  return [
    ...table([curve ? [...head, 'similarity when collapsed'] : head, ...rows]),
    '',
    `Measured on ${formatCount(calibration.tokens)} tokens in ${formatSeconds(seconds)} on ${engine} (${displayName(adapter)})`,
  ].join('\n');
}

/** What a collapse made and what it cost. */
export function collapseText(report: CollapseReport, folder: string): string {
  const { layers, parameters, removed, steps, similarity, perplexity, shards, seconds, engine, adapter } =
    report;
  const bytes = shards.reduce((sum, shard) => sum + shard.bytes, 0);
  return [
    ...steps.map(
      (step) =>
        `layer ${step.layer} takes in ${step.count}: similarity ${formatSimilarity(step.similarity)}, ${step.accepted ? `kept, ${step.layers} layers` : 'not kept'}`,
    ),
    `${layers.after} of ${layers.before} layers, ${formatCount(parameters.after)} of ${formatCount(parameters.before)} parameters; removed: ${removed.join(', ')}`,
    ...(similarity ? [`Similarity to the original ${formatReal(similarity.mean)}`] : []),
    ...(perplexity
      ? [
          `Perplexity ${formatReal(perplexity.before.perplexity)} before, ${formatReal(perplexity.after.perplexity)} after, over ${formatCount(perplexity.after.tokens)} tokens`,
        ]
      : []),
    ...report.notes.map((note) => displayName(note, 2000)),
    `Written in ${formatSeconds(seconds)} on ${engine} (${displayName(adapter)}): ${folder}, ${formatBytes(bytes)}`,
  ].join('\n');
}

const formatSimilarity = (value: number | null) => (value === null ? 'not finite' : formatReal(value));

function table(rows: readonly string[][]): string[] {
  const widths = rows[0]!.map((_, i) => Math.max(...rows.map((row) => row[i]!.length)));
  return rows.map((row) => row.map((cell, i) => cell.padStart(widths[i]!)).join('  '));
}
