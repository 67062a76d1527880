/** One comparison from two references to a report and, where there is a destination, its files. */

import type { Backend } from '../../backend/backend';
import { AmalgamError } from '../../errors';
import { escapeMarkup, htmlPage, htmlTable } from '../../formats/html-page';
import { displayName } from '../../formats/names';
import { openBackend, openMergeBackends } from '../../host/backends';
import type { OpenModels } from '../../host/models';
import { progressMeter, secondsOf } from '../../host/progress-meter';
import { withResources } from '../../host/resources';
import { openForReading } from '../../host/weight-inputs';
import { defaultsOf, isInRange } from '../../reports/option';
import { commitOutput, writeWhole } from '../../write/output-commit';
import { type Comparison, compareModels } from './compare-models';
import { bytesToCompare, requireShared } from './compare-tensors';
import { real } from './number-text';
import { compareOptions } from './options';
import type { CompareProgress, CompareReport, CompareRequest, TensorDifference } from './report';
import {
  architectureComparisonJson,
  configComparisonJson,
  loraAnalysisJson,
  weightDifferencesJson,
} from './report-json';
import { differenceText, LORA_COLUMNS, loraRow, ranked, TENSOR_COLUMNS, tensorRow } from './report-text';
import { openSides, weightFiles } from './sides';
import { pairElements, pairTensors, type TensorPair } from './tensor-pairs';

/**
 * Compares two models. Whatever fails, the destination is discarded.
 * @throws AmalgamError `Usage`, `NothingToCompare`, `Canceled`, and what sources, engine and destination throw
 */
async function runCompare(
  request: CompareRequest,
  models: OpenModels,
  signal: AbortSignal,
  onProgress: (progress: CompareProgress) => void,
): Promise<CompareReport> {
  const { threshold, top, loraAnalysis, seed = 0 } = { ...defaultsOf(compareOptions), ...request };
  checkNumbers(threshold, top);
  const sides = await openSides(request.base, request.finetuned, models.open);
  const pairs = pairTensors(sides.base, sides.tuned);
  requireShared(sides.base, sides.tuned, pairs);
  return withResources(async ({ keep, output }) => {
    // what can refuse does so before anything is downloaded
    // one engine alone where two are timed beside each other
    const engines = request.timeEngines
      ? [await openBackend(request.engine)]
      : await openMergeBackends(request.engine, elementsOf(pairs.shared), navigator.hardwareConcurrency);
    for (const engine of engines) keep(engine);
    const [engine, ...threads] = engines as [Backend, ...Backend[]];
    const other = request.timeEngines && keep(await openBackend(engine.kind === 'cpu' ? 'webgpu' : 'cpu'));
    const destination = request.destination && (await output(request.destination));
    const meter = progressMeter<CompareProgress>(onProgress, () => ({ seconds: secondsOf(engines) }));
    const { read } = keep(await openForReading({ inputs: weightFiles(sides) }, models, meter, signal));
    meter.begin('comparing', bytesToCompare(pairs), pairs.shared.length);
    const comparison = await compareModels(
      {
        base: sides.base,
        tuned: sides.tuned,
        engine,
        threads,
        ...(other ? { other } : {}),
        read,
        threshold,
        loraAnalysis,
        seed,
        ...(request.tileElements === undefined ? {} : { tileElements: request.tileElements }),
        signal,
        onTensor: (difference) => meter.finishTensor(difference),
        onBytes: (bytes, tensor) => meter.advance(bytes, tensor),
      },
      sides.notes,
      top,
    );
    const files: string[] = [];
    if (destination) {
      for (const { path, text } of reportFiles(comparison)) {
        await writeWhole(destination, path, text());
        files.push(path);
      }
      await commitOutput(destination, {});
    }
    meter.flush();
    return { ...comparison.report, stages: meter.stages(), files };
  });
}

function elementsOf(pairs: readonly TensorPair[]): number {
  return pairs.reduce((sum, pair) => sum + pairElements(pair), 0);
}

function checkNumbers(threshold: number, top: number): void {
  if (isInRange(compareOptions.threshold, threshold) && isInRange(compareOptions.top, top)) return;
  throw new AmalgamError(
    'Usage',
    `A threshold of ${threshold} and a table of ${top} rows are not valid.`,
    'Give a threshold from 0 and a whole number of rows.',
  );
}

/** The calls of the tool. */
export const jobs = { compare: runCompare } as const;

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

// `comparison_report.html`: findings in words, the most changed tensors and their spectra.

type Report = Omit<CompareReport, 'files' | 'stages'>;

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
