/** `comparison_report.html`: findings in words, the most changed tensors and their spectra. */

import { escapeMarkup, htmlPage, htmlTable } from '../../formats/html-page';
import { displayName } from '../../formats/names';
import { real } from './number-text';
import type { CompareReport, TensorDifference } from './report';
import { LORA_COLUMNS, loraRow, ranked, TENSOR_COLUMNS, tensorRow } from './report-text';

type Report = Omit<CompareReport, 'files' | 'stages'>;

/** The page. Everything that comes from a file is escaped. */
export function comparisonReportHtml(report: Report): string {
  const order = ranked(report);
  const analysed = order.filter(({ lora }) => lora !== undefined);
  const body = [
    '<h1>Comparison of two models</h1>',
    `<dl><dt>base</dt><dd>${code(report.base)}</dd><dt>fine-tune</dt><dd>${code(report.finetuned)}</dd>
<dt>engine</dt><dd>${escapeMarkup(report.engine)} (${escapeMarkup(displayName(report.adapter))}), ${real(report.seconds)} s, Amalgam ${escapeMarkup(report.version)}</dd></dl>`,
    section('Findings', list(report.words)),
    section('Relative difference by layer and module', heatmap(report.tensors)),
    section(
      `The ${Math.min(report.top, order.length)} most changed tensors`,
      htmlTable(TENSOR_COLUMNS, order.slice(0, report.top).map(tensorRow)),
    ),
    analysed.length > 0
      ? section(
          'Similarity to a LoRA',
          htmlTable(
            [...LORA_COLUMNS, 'singular values'],
            analysed.map(loraRow),
            analysed.map(({ lora }) => spectrum(lora!.singularValues)),
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

/** Layers down, modules across; the colour says how far a tensor is from its base, on a scale of roots. */
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
