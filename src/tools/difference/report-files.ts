/** The files of a comparison: text, JSON with full precision and names as they are, and one page. */

import { escapeMarkup, htmlPage, htmlTable } from '../../formats/html-page';
import { displayName } from '../../formats/names';
import type { Comparison } from './compare-models';
import { percent, real } from './findings';
import type { CompareReport, LoraLikeness, TensorDifference } from './report';

type Report = Omit<CompareReport, 'files' | 'stages'>;

/** The files of a comparison, in the order they are written; each is made when it is asked for. */
export function reportFiles({ report, rowNorms }: Comparison): { path: string; text(): string }[] {
  return [
    { path: 'difference.txt', text: () => differenceText(report) },
    { path: 'weight_differences.json', text: () => weightDifferencesJson(report, rowNorms) },
    { path: 'config_comparison.json', text: () => configComparisonJson(report) },
    { path: 'architecture_comparison.json', text: () => architectureComparisonJson(report) },
    { path: 'lora_analysis.json', text: () => loraAnalysisJson(report) },
    { path: 'comparison_report.html', text: () => comparisonReportHtml(report) },
  ];
}

/** `weight_differences.json`: every figure of every tensor, with ‖Δ‖ of each row in f32 precision. */
function weightDifferencesJson(report: Report, rowNorms: ReadonlyMap<string, Float32Array>): string {
  const { total } = report;
  return json({
    base: report.base,
    finetuned: report.finetuned,
    definition:
      'delta = finetuned - base in float32; relative_diff = norm(delta) / (norm(base) + 1e-10); changed_ratio = mean(|delta| > threshold); modified = changed_ratio > 0.01 or relative_diff > 0.01; stable_rank = norm(delta)^2 / sigma_1^2',
    threshold: report.threshold,
    engine: report.engine,
    adapter: report.adapter,
    amalgam_version: report.version,
    seconds: report.seconds,
    total: {
      numel: total.elements,
      norm_base: total.normBase,
      norm_delta: total.normDelta,
      relative_diff: total.relative,
      changed_ratio: total.changedRatio,
      bit_different_ratio: total.bitDifferentRatio,
      compared: total.compared,
      modified: total.modified,
      identical: total.identical,
    },
    ranking_by_relative_diff: report.ranking,
    only_in_base: report.onlyInBase,
    only_in_finetuned: report.onlyInFinetuned,
    shape_mismatches: report.shapeMismatches,
    compared_byte_by_byte: report.raw,
    failed: report.failed,
    tensors: entries(report.tensors, (t) => ({
      ...figures(t),
      row_norms: shortNumbers(rowNorms.get(t.name)),
    })),
  });
}

function figures(t: TensorDifference) {
  return {
    layer: t.layer,
    module: t.module,
    shape: t.shape,
    dtype: t.dtype,
    numel: t.elements,
    mean_abs: t.meanAbs,
    max_abs: t.maxAbs,
    norm_base: t.normBase,
    norm_finetuned: t.normFinetuned,
    norm_delta: t.normDelta,
    relative_diff: t.relative,
    changed_ratio: t.changedRatio,
    bit_different_ratio: t.bitDifferentRatio,
    sign_flip_ratio: t.signFlipRatio,
    cosine: t.cosine,
    stable_rank: t.stableRank,
    modified: t.modified,
    seconds: t.seconds,
  };
}

/** `lora_analysis.json`: the spectra of all modified matrices. */
function loraAnalysisJson(report: Report): string {
  const analysed = report.tensors.filter(({ lora }) => lora !== undefined);
  return json({
    base: report.base,
    finetuned: report.finetuned,
    definition:
      'effective_rank = #{sigma > 1e-5}; rank95 = smallest k with cumulative sigma^2 >= 0.95 norm(delta)^2; potential_lora = rank95 < 64 and rank95 < 0.1 min(shape); an is_bound number is at least what is given',
    analysed: analysed.length,
    potential_lora: analysed.filter(({ lora }) => lora!.potentialLora).map(({ name }) => name),
    failed: entries(
      report.tensors.filter(({ spectrumFailed }) => spectrumFailed !== undefined),
      ({ spectrumFailed }) => spectrumFailed!,
    ),
    tensors: entries(analysed, ({ lora, shape, normDelta, stableRank }) => ({
      shape,
      norm_delta: normDelta,
      stable_rank: stableRank,
      rank95: lora!.rank95,
      rank95_is_bound: lora!.rank95IsBound,
      effective_rank: lora!.effectiveRank,
      effective_rank_is_bound: lora!.effectiveRankIsBound,
      potential_lora: lora!.potentialLora,
      method: methodOf(lora!),
      singular_values: lora!.singularValues,
    })),
  });
}

/** `config_comparison.json`: configs and tokenizers. */
function configComparisonJson({ base, finetuned, config, tokenizer }: Report): string {
  return json({ base, finetuned, config, tokenizer });
}

/** `architecture_comparison.json` */
function architectureComparisonJson(report: Report): string {
  const { base, finetuned, architecture, onlyInBase, onlyInFinetuned, shapeMismatches } = report;
  return json({
    models: { base, finetuned },
    ...architecture,
    only_in_base: onlyInBase,
    only_in_finetuned: onlyInFinetuned,
    shape_mismatches: shapeMismatches,
  });
}

/** An object by name in which names such as `__proto__` are plain keys. */
function entries<T extends { name: string }, V>(
  items: readonly T[],
  value: (item: T) => V,
): Record<string, V> {
  return Object.fromEntries(items.map((item) => [item.name, value(item)]));
}

/** f32 values with the seven digits that they have. */
const shortNumbers = (values: Float32Array = new Float32Array(0)): number[] =>
  Array.from(values, sevenDigits);

/** Powers of ten with which an f32 multiplied is an exact f64. */
const EXACT_POWERS = Array.from({ length: 13 }, (_, power) => 10 ** power);

/** `Number(x.toPrecision(7))`, and sooner from 1e-6 to 1e7: there are as many norms as rows. @param x an f32, not negative */
export function sevenDigits(x: number): number {
  const power = EXACT_POWERS.find((ten) => x * ten >= 1e6);
  return power === undefined || x >= 1e7 ? Number(x.toPrecision(7)) : Math.round(x * power) / power;
}

function json(value: object): string {
  return `${JSON.stringify(value, null, 1)}\n`;
}

// ---------------------------------------------------------------- figures as text: rows of tables, and the one file of them

/** `difference.txt`: every tensor, the most changed first, and what could not be compared. */
function differenceText(report: Report): string {
  const lines = [
    `${displayName(report.base)} -> ${displayName(report.finetuned)}`,
    `changed: |delta| > ${report.threshold}; * marks a modified tensor`,
    '',
    ...table([TENSOR_COLUMNS, ...ranked(report).map(tensorRow)]),
  ];
  const listed = (title: string, names: readonly string[]) => {
    if (names.length > 0) lines.push('', `${title}:`, ...names.map((name) => `  ${displayName(name)}`));
  };
  listed('only in the base', report.onlyInBase);
  listed('only in the fine-tune', report.onlyInFinetuned);
  listed(
    'other shape',
    report.shapeMismatches.map(({ name, base, finetuned }) => `${name} [${base}] [${finetuned}]`),
  );
  listed(
    'compared byte by byte',
    report.raw.map(({ name, identical }) => `${name} ${identical ? 'identical' : 'different'}`),
  );
  listed(
    'could not be compared',
    report.failed.map(({ name, message }) => `${name}: ${message}`),
  );
  return `${lines.join('\n')}\n`;
}

/** Tensors by descending relative difference. */
function ranked({ ranking, tensors }: Pick<Report, 'ranking' | 'tensors'>): TensorDifference[] {
  const byName = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  return ranking.map((name) => byName.get(name)!);
}

const TENSOR_COLUMNS = [
  'tensor',
  'shape',
  'relative',
  'mean |delta|',
  'max |delta|',
  'changed',
  'cosine',
  'sign flips',
  'stable rank',
];

function tensorRow(t: TensorDifference): string[] {
  return [
    `${displayName(t.name)}${t.modified ? ' *' : ''}`,
    t.shape.join('x') || 'scalar',
    real(t.relative),
    real(t.meanAbs),
    real(t.maxAbs),
    percent(t.changedRatio),
    t.cosine.toFixed(6),
    percent(t.signFlipRatio),
    t.stableRank === null ? '-' : real(t.stableRank),
  ];
}

const LORA_COLUMNS = ['tensor', 'rank95', 'effective rank', 'smaller side', 'looks like a LoRA'];

function loraRow({ name, lora, shape }: TensorDifference): string[] {
  return [
    displayName(name),
    rank(lora!.rank95, lora!.rank95IsBound),
    rank(lora!.effectiveRank, lora!.effectiveRankIsBound),
    String(Math.min(...shape)),
    looks(lora!),
  ];
}

function methodOf({ exact, singularValues }: LoraLikeness): string {
  if (singularValues.length === 0) return 'bounds of blocks';
  return exact ? 'one-sided Jacobi' : 'randomized';
}

function rank(value: number, isBound: boolean): string {
  return isBound ? `>= ${value}` : String(value);
}

function looks({ potentialLora }: LoraLikeness): string {
  return potentialLora ? 'yes' : 'no';
}

/** Pads every column but the last to its widest cell. */
function table(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, i) => rows.reduce((widest, row) => Math.max(widest, row[i]!.length), 0));
  return rows.map((row) =>
    row
      .map((cell, i) => (i < row.length - 1 ? cell.padEnd(widths[i]!) : cell))
      .join('  ')
      .trimEnd(),
  );
}

// ---------------------------------------------------------------- comparison_report.html: findings in words, the most changed tensors and their spectra

/** The page. Everything that comes from a file is escaped. */
function comparisonReportHtml(report: Report): string {
  const order = ranked(report);
  const analysed = order.filter(({ lora }) => lora !== undefined);
  const body = [
    '<h1>Comparison of two models</h1>',
    `<dl><dt>base</dt><dd>${code(report.base)}</dd><dt>fine-tune</dt><dd>${code(report.finetuned)}</dd>
<dt>engine</dt><dd>${escapeMarkup(report.engine)} (${escapeMarkup(displayName(report.adapter))}), ${real(report.seconds)} s, Amalgam ${escapeMarkup(report.version)}</dd></dl>`,
    section('Findings', list(report.words)),
    section('Relative difference by layer and module', heatmap(report.tensors)),
    analysed.length > 0
      ? section(
          'Similarity to a LoRA',
          htmlTable(
            [...LORA_COLUMNS, 'singular values'],
            analysed.map(loraRow),
            analysed.map(({ lora }) =>
              lora!.singularValues.length > 0 ? spectrum(lora!.singularValues) : '-',
            ),
          ),
        )
      : '',
    section('Config', list(report.config.words)),
    section('Architecture', list(report.architecture.words)),
    section('Tokenizer', list(report.tokenizer.words)),
    section('All tensors', htmlTable(TENSOR_COLUMNS, order.map(tensorRow))),
  ].join('\n');
  return htmlPage(`${displayName(report.base)} and ${displayName(report.finetuned)}`, body);
}

function section(title: string, content: string): string {
  return `<section><h2>${escapeMarkup(title)}</h2>\n${content}</section>`;
}

function list(sentences: readonly string[]): string {
  return `<ul>${sentences.map((sentence) => `<li>${escapeMarkup(displayName(sentence, 2000))}</li>`).join('')}</ul>`;
}

/** Layers down, modules across; the color is the distance of a tensor from its base, on a square-root scale. */
function heatmap(tensors: readonly TensorDifference[]): string {
  const inLayers = tensors.filter(({ layer }) => layer !== null);
  const modules = [...new Set(inLayers.map(({ module }) => module))];
  const layers = [...new Set(inLayers.map(({ layer }) => layer!))].sort((a, b) => a - b);
  const most = tensors.reduce((largest, { relative }) => Math.max(largest, relative), 0);
  if (inLayers.length === 0 || most === 0) return '<p>Nothing differs inside the layers.</p>';
  const found = new Map(inLayers.map((t) => [`${t.layer} ${t.module}`, t]));
  const cell = (layer: number, module: string) => {
    const t = found.get(`${layer} ${module}`);
    if (!t) return '<td></td>';
    const strength = Math.round(100 * Math.sqrt(t.relative / most));
    const style = `background:color-mix(in srgb, var(--bar) ${strength}%, transparent)`;
    return `<td style="${style}" title="${escapeMarkup(displayName(t.name))}: ${real(t.relative)}">${real(Number(t.relative.toPrecision(2)))}</td>`;
  };
  const rows = layers.map(
    (layer) => `<tr><th>${layer}</th>${modules.map((module) => cell(layer, module)).join('')}</tr>`,
  );
  const head = modules.map((module) => `<th>${escapeMarkup(displayName(module))}</th>`).join('');
  return `<div class="wide"><table class="map"><thead><tr><th>layer</th>${head}</tr></thead><tbody>${rows.join('\n')}</tbody></table></div>`;
}

/** Singular values as bars relative to the largest. */
function spectrum(values: readonly number[]): string {
  const [width, height] = [3, 24];
  const top = values[0] ?? 0;
  const bars = values.map((s, i) => {
    const size = top > 0 ? Math.max(0.5, (height * s) / top) : 0;
    return `<rect x="${i * width}" y="${(height - size).toFixed(1)}" width="${width - 1}" height="${size.toFixed(1)}" fill="var(--bar)"/>`;
  });
  const label = `${values.length} singular values, the largest ${real(top)}`;
  return `<svg role="img" aria-label="${label}" width="${values.length * width}" height="${height}">${bars.join('')}</svg>`;
}

function code(name: string): string {
  return `<code>${escapeMarkup(displayName(name))}</code>`;
}
