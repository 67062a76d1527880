import process from 'node:process';
import { familyLines } from '../formats/model-family';
import { displayName, printableText } from '../formats/names';
import {
  formatBytes,
  formatCount,
  formatCounted,
  formatLeft,
  formatRate,
  formatSeconds,
  formatShape,
  formatWeightFiles,
} from '../formats/quantity';
import { computedWords } from '../reports/backend';
import type { DatasetText } from '../reports/dataset';
import type { EvaluateReport, RunningProgress } from '../reports/evaluate';
import type { TensorProgress } from '../reports/job';
import { cutWords } from '../reports/lora';
import type { MergeReport } from '../reports/merge';
import { BLOCK_TOKENS, ENOUGH_BLOCKS, meanLoss } from '../reports/paired-error';
import type { PlanProblem, PlanReport, StreamReport } from '../reports/plan';
import { isQuiet } from './arguments';

/** Problems that `--strict` makes mistakes of: names without effect. */
export const STRICT = ['KeyIgnored', 'ParameterIgnored'];

/** A plan as text: what it costs, every output tensor, and at the end, where they are seen, the problems. */
export function planText(plan: PlanReport, method: string): string {
  if (!plan.clean && plan.tensors.length === 0) {
    return problemLines(plan.problems.filter(({ severity }) => severity === 'error'))
      .slice(1)
      .join('\n');
  }
  const names = plan.contributors.map((name) => displayName(name));
  const copied = plan.tensors.filter((tensor) => tensor.copied).length;
  const elements = plan.tensors.reduce((sum, tensor) => sum + tensor.elements, 0);
  const stages = plan.stages?.map(
    ({ name, report }) => `${name} (${formatCounted(report.tensors.length, 'tensor')})`,
  );
  const parts = [
    ...(stages ? [['stages', stages.join(', ')]] : []),
    ['method', method],
    ['base', plan.base === undefined ? 'none' : displayName(plan.base)],
    ['models', names.join(', ')],
    ['tensors', `${formatCount(plan.tensors.length)}, ${formatCount(copied)} of them copied untouched`],
    ['parameters', formatCount(elements)],
    ['download', formatBytes(plan.bytesToDownload)],
    ...(plan.stream && plan.stream.bytes > 0 ? [['', streamWords(plan.stream)]] : []),
    ['read', formatBytes(plan.bytesToRead)],
    ['write', `${formatBytes(plan.bytesToWrite)} in ${formatWeightFiles(plan.outputFiles)}`],
    ['peak memory', formatBytes(plan.peakBytes)],
    ['files', plan.outputFiles.map((file) => displayName(namedAfterFolder(file))).join(', ')],
  ].map(([name = '', value = '']) => `${name.padEnd(12)} ${value}`);

  const rows = plan.tensors.map((tensor) => [
    displayName(tensor.name),
    formatShape(tensor.shape),
    tensor.dtype,
    tensor.copied ? 'copied' : tensor.contributors.map((index) => names[index] ?? '?').join(', '),
  ]);
  const table = columns([['tensor', 'shape', 'dtype', 'changed by'], ...rows]);
  return [
    ...parts,
    ...familyText(plan),
    '',
    ...table,
    ...problemLines(plan.problems),
    ...elsewhereLines(plan),
  ].join('\n');
}

/** What `--stream` does to a plan, in words. */
function streamWords({ bytes, memory, again }: StreamReport): string {
  const twice = again.map(({ why, bytes: more }) => `${more === null ? '' : `${formatBytes(more)}: `}${why}`);
  const more = twice.length > 0 ? `; read again: ${twice.join('; ')}` : '';
  return `with --stream ${formatBytes(bytes)} of it pass by and are not kept, for ${formatBytes(memory)} of memory${more}`;
}

/** The tree of models that those of the plan come from; empty where none has parents. */
export function familyText({ family = [] }: Pick<PlanReport, 'family'>): string[] {
  if (!family.some(({ parents }) => parents.length > 0)) return [];
  return familyLines(family).map(({ depth, id, said }, i) => {
    const name = `${'  '.repeat(depth)}${displayName(id)}${said === '' ? '' : ` (${said})`}`;
    return `${(i === 0 ? 'family' : '').padEnd(12)} ${name}`;
  });
}

/** Lines on settings of the recipe that mergekit reads differently; empty when there are none. */
export function elsewhereLines({ elsewhere = [] }: PlanReport): string[] {
  if (elsewhere.length === 0) return [];
  const lines = elsewhere.map(
    ({ setting, consequence }) => `  ${displayName(setting)}: ${displayName(consequence, 200)}`,
  );
  return ['', 'In mergekit the same recipe means something else:', ...lines];
}

/** The problems, errors first, each with its remedy; empty when there are none. */
export function problemLines(problems: readonly PlanProblem[]): string[] {
  const order = ['error', 'warning', 'note'] as const;
  const lines = order.flatMap((severity) =>
    problems
      .filter((problem) => problem.severity === severity)
      .flatMap(({ message, remedy, tensors = [] }) => [
        `${severity}: ${message}`,
        ...(tensors.length > 0 ? [`  tensors: ${someNames(tensors)}`] : []),
        `  ${remedy}`,
      ]),
  );
  if (problems.some(({ code }) => STRICT.includes(code)))
    lines.push('  With --strict, plan and merge refuse names without effect.');
  return lines.length > 0 ? ['', ...lines] : [];
}

function countedText({ done, total, unit }: { done: number; total: number; unit: string }): string {
  return `${formatCount(done)}/${formatCount(total)} ${unit}`;
}

/** Stages that count layers run, not tensors. */
const PASSES: ReadonlySet<string> = new Set(['measuring', 'searching']);

/** Progress of any job; reports of single tensors come with the final report. */
type AnyProgress = TensorProgress | RunningProgress;

/** One line of progress without an end of line. */
export function progressText(progress: AnyProgress): string {
  if (!('tensors' in progress)) return runningText(progress);
  const { phase, item, tensorsDone, tensors, bytesDone, bytes, bytesPerSecond, secondsLeft } = progress;
  const parts = [
    ...(progress.step ? [`${displayName(progress.step.name)} ${progress.step.at}/${progress.step.of}`] : []),
    phase,
    ...(tensors > 0
      ? [`${formatCount(tensorsDone)}/${formatCount(tensors)} ${PASSES.has(phase) ? 'layers' : 'tensors'}`]
      : []),
    ...(progress.counted ? [countedText(progress.counted)] : []),
    ...(bytes > 0 ? [`${formatBytes(bytesDone)} of ${formatBytes(bytes)}`] : []),
    ...(bytesPerSecond > 0 ? [formatRate(bytesPerSecond)] : []),
    formatLeft(secondsLeft),
    displayName(item, 60),
  ];
  return parts.filter((part) => part !== '').join(' · ');
}

function runningText({ phase, done, total, rate, secondsLeft }: RunningProgress): string {
  const amount =
    phase === 'downloading'
      ? `${formatBytes(done)} of ${formatBytes(total)}`
      : `${formatCount(Math.round(done))}/${formatCounted(total, 'token')}`;
  const parts = [
    phase,
    ...(total > 0 ? [amount] : []),
    ...(rate > 0
      ? [phase === 'downloading' ? formatRate(rate) : `${formatCount(Math.round(rate))} tokens/s`]
      : []),
    formatLeft(secondsLeft),
  ];
  return parts.filter((part) => part !== '').join(' · ');
}

/** A GGUF file gets the name of the folder, which a plan does not know. */
function namedAfterFolder(file: string): string {
  return file.endsWith('.gguf') ? file.replace(/^.*?(?=-[A-Z0-9_]+\.gguf$)/, 'DIR') : file;
}

/** Names that are printed of many; `plan --json` has them all. */
export const MOST_NAMES = 8;

export function someNames(names: readonly string[]): string {
  const more = names.length - MOST_NAMES;
  const some = names
    .slice(0, MOST_NAMES)
    .map((name) => displayName(name))
    .join(', ');
  return more > 0 ? `${some} and ${formatCount(more)} more` : some;
}

/** ` ± 0.0123`: the standard error of a perplexity, where there is one. */
export function errorText({ perplexity, blocks }: EvaluateReport): string {
  const { stderr } = meanLoss([blocks ?? []]);
  return stderr === null ? '' : ` ± ${(perplexity * stderr).toFixed(4)}`;
}

/**
 * That two are not told apart, and why where a text is too short for it: Student's t asks more of the error of few blocks.
 * @param unit of what the error is
 */
export function alikeWords(count: number, unit: 'block' | 'item'): string {
  if (count >= ENOUGH_BLOCKS) return 'cannot be told apart';
  const take = unit === 'block' ? `a text of ${ENOUGH_BLOCKS * BLOCK_TOKENS} tokens` : ENOUGH_BLOCKS;
  const few = `${formatCounted(count, unit)} ${count === 1 ? 'is' : 'are'} few for Student’s t`;
  return `cannot be told apart (${few}: take ${take} or more)`;
}

/** What ± is in a table. @param comparisons that are told apart in it */
export function errorWords(comparisons: number): string {
  const together = comparisons > 1 ? ` for all ${comparisons} comparisons by one metric together` : '';
  return `±: standard error${comparisons > 0 ? `; told apart at 95 %${together}` : ''}.`;
}

/** Result of an evaluation in one line, with its protocol. */
export function evaluateText(report: EvaluateReport): string {
  const { window, stride, bos, masked } = report.protocol;
  const bits = report.bitsPerByte === null ? '' : `, ${report.bitsPerByte.toFixed(4)} bits per byte`;
  const front = bos === null ? 'nothing in front' : `token ${bos} in front`;
  return (
    `perplexity ${report.perplexity.toFixed(4)}${errorText(report)}, mean loss ${report.meanNll.toFixed(5)} nats over ` +
    `${formatCounted(report.tokens, 'token')}${bits} (${masked ? `one of ${masked} tokens masked at a time, ` : ''}windows of ${window} that advance by ${stride}, ${front}; ` +
    `${formatSeconds(report.seconds)} on ${report.engine}, ${displayName(report.adapter)}, at most ` +
    `${formatBytes(report.peakBytes)} of its memory)${errorText(report) && `\n${errorWords(0)}`}`
  );
}

/** Summary in one line of the text read from a dataset. */
export function datasetText(read: DatasetText): string {
  const plain = read.column === null;
  const what = [
    ...(plain ? [] : [`column ${displayName(read.column ?? '')}`, formatCounted(read.rows, 'row')]),
    formatCounted(read.text.length, 'character'),
    ...(read.empty > 0 ? [`${formatCounted(read.empty, 'row')} without text skipped`] : []),
    read.whole ? 'the whole file' : 'the beginning of the file',
  ];
  return `${displayName(read.ref)}: ${displayName(read.path)}: ${what.join(', ')}`;
}

/** Summary in one line of a finished merge. */
export function mergeText(report: MergeReport, folder: string, part?: { index: number; of: number }): string {
  const bytes = report.shards.reduce((sum, shard) => sum + shard.bytes, 0);
  const { lora } = report;
  const what = lora
    ? `a LoRA of ${formatCounted(lora.modules.length, 'module')}`
    : formatCounted(report.tensors.length, 'tensor');
  return [
    `Merged ${what}, ${formatBytes(bytes)}, ${computedWords(report)}: ${folder}`,
    ...(report.passed && report.passed.files > 0 ? [passedWords(report.passed)] : []),
    ...(lora ? [...cutWords(lora), ...lora.notes.map((note) => displayName(note, 2000))] : []),
    ...(part ? [`Part ${part.index} of ${part.of}: join them when all are there.`] : []),
    ...(report.use?.length && !part ? ['Its README.md says how to use it.'] : []),
  ].join('\n');
}

function passedWords({ bytes, again, checked, files }: NonNullable<MergeReport['passed']>): string {
  const twice = again > 0 ? `, ${formatBytes(again)} of it again` : '';
  const rest = checked < files ? '; of the others not all came, or in another order' : '';
  return `${formatBytes(bytes)} passed by${twice}, and nothing was kept: ${formatCount(checked)} of ${formatCounted(files, 'file')} came whole, with the sha256 that the Hub has${rest}.`;
}

/** Pads every column but the last to its widest cell. */
export function columns(rows: string[][]): string[] {
  const widths = rows[0]!.map((_, column) =>
    rows.reduce((widest, row) => Math.max(widest, row[column]!.length), 0),
  );
  return rows.map((row) =>
    row.map((cell, i) => (i < row.length - 1 ? cell.padEnd(widths[i]!) : cell)).join('  '),
  );
}

interface Terminal {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

/** Seconds between two lines in a log file. */
const LOG_SECONDS = 10;

/**
 * Prints progress: one line that is written over on a terminal; elsewhere a line when the phase changes and every ten
 * seconds.
 */
export function progressPrinter(
  out: Terminal,
  now: () => number = Date.now,
): { print: (progress: AnyProgress) => void; end: () => void } {
  if (isQuiet()) return { print: () => undefined, end: () => undefined };
  let phase = '';
  let printedAt = Number.NEGATIVE_INFINITY;
  let isLineOpen = false;
  return {
    print(progress) {
      const text = printableText(progressText(progress));
      if (out.isTTY) {
        out.write(`\r\x1b[K${text.slice(0, Math.max(1, (out.columns ?? 80) - 1))}`);
        isLineOpen = true;
        return;
      }
      if (progress.phase === phase && now() - printedAt < LOG_SECONDS * 1000) return;
      phase = progress.phase;
      printedAt = now();
      out.write(`${text}\n`);
    },
    end() {
      if (isLineOpen) out.write('\n');
      isLineOpen = false;
    },
  };
}

/** Does something with its progress on the terminal. */
export async function withProgress<T>(
  run: (print: (progress: AnyProgress) => void) => Promise<T>,
): Promise<T> {
  const printer = progressPrinter(process.stderr);
  return run(printer.print).finally(() => printer.end());
}
