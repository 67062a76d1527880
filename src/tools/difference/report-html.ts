/** `comparison_report.html`: one page without scripts or outside resources, on which foreign names are text only. */

import { displayName } from '../../formats/names';
import { real } from './number-text';
import type { CompareReport, TensorDifference } from './report';
import { LORA_COLUMNS, loraRow, ranked, TENSOR_COLUMNS, tensorRow } from './report-text';

type Report = Omit<CompareReport, 'files' | 'stages'>;

const STYLE = `
:root { color-scheme: light dark; --line: #8884; --bar: #3b82a0; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; } dd { margin: 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .85rem; }
th, td { padding: .15rem .6rem .15rem 0; text-align: left; border-bottom: 1px solid var(--line); white-space: nowrap; }
.map td, .map th { padding: .1rem .3rem; border: 0; } .map td { min-width: 2.2rem; height: 1.2rem; }
code { font-size: .85em; } svg { display: block; }
`;

/** The page. Everything that comes from a file is escaped. */
export function comparisonReportHtml(report: Report): string {
  const order = ranked(report);
  const analysed = order.filter(({ lora }) => lora !== undefined);
  const body = [
    '<h1>Comparison of two models</h1>',
    `<dl><dt>base</dt><dd>${code(report.base)}</dd><dt>fine-tune</dt><dd>${code(report.finetuned)}</dd>
<dt>engine</dt><dd>${html(report.engine)} (${html(displayName(report.adapter))}), ${real(report.seconds)} s, Amalgam ${html(report.version)}</dd></dl>`,
    section('Findings', list(report.words)),
    section('Relative difference by layer and module', heatmap(report.tensors)),
    section(
      `The ${Math.min(report.top, order.length)} most changed tensors`,
      table(TENSOR_COLUMNS, order.slice(0, report.top).map(tensorRow)),
    ),
    analysed.length > 0
      ? section(
          'Similarity to a LoRA',
          table(
            [...LORA_COLUMNS, 'singular values'],
            analysed.map(loraRow),
            analysed.map(({ lora }) => spectrum(lora!.singularValues)),
          ),
        )
      : '',
    section('Config', list(report.config.words)),
    section('Architecture', list(report.architecture.words)),
    section('Tokenizer', list(report.tokenizer.words)),
    section('All tensors', table(TENSOR_COLUMNS, order.map(tensorRow))),
  ].join('\n');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${html(displayName(report.base))} and ${html(displayName(report.finetuned))}</title>
<style>${STYLE}</style>
</head>
<body>
${body}
</body>
</html>
`;
}

function section(title: string, content: string): string {
  return `<section><h2>${html(title)}</h2>\n${content}</section>`;
}

function list(sentences: readonly string[]): string {
  return `<ul>${sentences.map((sentence) => `<li>${html(displayName(sentence, 2000))}</li>`).join('')}</ul>`;
}

/** @param pictures markup for a last column */
function table(head: readonly string[], rows: readonly string[][], pictures?: readonly string[]): string {
  const cells = (row: readonly string[], tag: string) =>
    row.map((cell) => `<${tag}>${html(cell)}</${tag}>`).join('');
  const body = rows.map(
    (row, i) => `<tr>${cells(row, 'td')}${pictures ? `<td>${pictures[i]!}</td>` : ''}</tr>`,
  );
  return `<div class="wide"><table><thead><tr>${cells(head, 'th')}</tr></thead><tbody>${body.join('\n')}</tbody></table></div>`;
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
    return `<td style="${style}" title="${html(displayName(t.name))}: ${real(t.relative)}">${real(Number(t.relative.toPrecision(2)))}</td>`;
  };
  const rows = layers.map(
    (layer) => `<tr><th>${layer}</th>${modules.map((module) => cell(layer, module)).join('')}</tr>`,
  );
  const head = modules.map((module) => `<th>${html(displayName(module))}</th>`).join('');
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
  return `<code>${html(displayName(name))}</code>`;
}

/** Text inside an element or a double-quoted attribute. */
function html(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}
