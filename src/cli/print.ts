import process from 'node:process';
import { familyLines } from '../formats/model-family';
import { displayName, printableText } from '../formats/names';
import {
  formatBytes,
  formatCount,
  formatCounted,
  formatRate,
  formatSeconds,
  formatShape,
  formatWeightFiles,
} from '../formats/quantity';
import { type Contender, conclusion, leading } from '../reports/conclusion';
import type { DatasetText } from '../reports/dataset';
import type { EvaluateReport, RunningProgress } from '../reports/evaluate';
import { type BestRow, type FindBestReport, OVERLAPS } from '../reports/find-best';
import type { TensorProgress } from '../reports/job';
import { cutWords } from '../reports/lora';
import type { MergeReport } from '../reports/merge';
import { margin, meanLoss, pairedDifference } from '../reports/paired-error';
import type { PlanProblem, PlanReport, StreamReport } from '../reports/plan';
import { isQuiet } from './arguments';

/** A plan as text: what it costs, every output tensor, and at the end, where they are seen, the problems. */
export function planText(plan: PlanReport, method: string): string {
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
    ...(secondsLeft === null ? [] : [`${formatSeconds(secondsLeft)} left`]),
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
    amount,
    ...(rate > 0
      ? [phase === 'downloading' ? formatRate(rate) : `${formatCount(Math.round(rate))} tokens/s`]
      : []),
    ...(secondsLeft === null ? [] : [`${formatSeconds(secondsLeft)} left`]),
  ];
  return parts.join(' · ');
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

/** Result of an evaluation in one line, with its protocol. */
export function evaluateText(report: EvaluateReport): string {
  const { window, stride, bos, masked } = report.protocol;
  const bits = report.bitsPerByte === null ? '' : `, ${report.bitsPerByte.toFixed(4)} bits per byte`;
  const front = bos === null ? 'nothing in front' : `token ${bos} in front`;
  return (
    `perplexity ${report.perplexity.toFixed(4)}${errorText(report)}, mean loss ${report.meanNll.toFixed(5)} nats over ` +
    `${formatCounted(report.tokens, 'token')}${bits} (${masked ? `one of ${masked} tokens masked at a time, ` : ''}windows of ${window} that advance by ${stride}, ${front}; ` +
    `${formatSeconds(report.seconds)} on ${report.engine}, ${displayName(report.adapter)}, at most ` +
    `${formatBytes(report.peakBytes)} of its memory)`
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
  const engine = `${report.engine} (${displayName(report.adapter)})`;
  const { lora } = report;
  const what = lora
    ? `a LoRA of ${formatCounted(lora.modules.length, 'module')}`
    : formatCounted(report.tensors.length, 'tensor');
  return [
    `Merged ${what}, ${formatBytes(bytes)}, in ${formatSeconds(report.seconds)} on ${engine}: ${folder}`,
    ...(report.passed ? [passedWords(report.passed)] : []),
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

/** Seconds, λ and what was found so far of a row that has just been measured. */
export function bestRowText(row: BestRow): string {
  const lambda = row.lambda === null ? '' : `, λ ${row.lambda}`;
  const { choosing } = row.blocks;
  const found = choosing
    ? `loss ${meanLoss(choosing).mean.toFixed(4)}`
    : (row.error?.message ?? 'not measured');
  return `${displayName(row.label)}${lambda}: ${found}`;
}

/** The table of all that was tried to find the best merge, with its errors, and the verdict. */
export function bestText(report: FindBestReport): string {
  const { texts, rows, best, lately, kept, overlap, measured, seconds } = report;
  const isTask = texts.some(({ kind }) => kind === 'task');
  const all = rows.flatMap(({ blocks: { reporting }, ...row }): (Contender & { id: string })[] => {
    const kind = row.kind === 'base' || row.kind === 'contributor' ? row.kind : 'merge';
    return reporting ? [{ id: row.id, label: displayName(row.label), kind, texts: reporting }] : [];
  });
  const { leader, isChosen, comparisons } = leading(
    all,
    all.find(({ id, kind }) => id === best && kind === 'merge'),
  );
  const value = (own: Contender) => {
    const { mean } = meanLoss(own.texts);
    return (isTask ? 1 - mean : Math.exp(mean)).toFixed(4);
  };
  const against = (own: Contender) => {
    const apart = leader && leader !== own ? pairedDifference(own.texts, leader.texts) : null;
    if (!apart) return '';
    const half = margin(apart, comparisons);
    return `${apart.mean > 0 ? '+' : '−'}${Math.abs(apart.mean).toFixed(4)}${half === null ? '' : ` ± ${half.toFixed(4)}`}`;
  };
  const lines = rows.map((row) => {
    const own = all.find(({ id }) => id === row.id);
    return [
      row.id === best ? '*' : '',
      displayName(row.label),
      row.lambda === null ? '' : String(row.lambda),
      row.error ? row.error.message : own ? value(own) : '–',
      own ? against(own) : '',
      `${row.tried}`,
      formatSeconds(row.seconds),
    ];
  });
  const named = texts.map(
    ({ name, tokens }) =>
      `${displayName(name)} (${formatCounted(tokens.reporting, isTask ? 'item' : 'token')})`,
  );
  const scope = 'on that part';
  const said = leader && conclusion(leader, { all, leader, comparisons, isAccuracy: isTask, scope });
  const shares = kept.flatMap((share, i) =>
    share === null || share < 0 ? [] : `${Math.round(100 * share)} % of ${displayName(texts[i]!.name)}`,
  );
  const worse = kept.flatMap((share, i) => (share !== null && share < 0 ? displayName(texts[i]!.name) : []));
  const chosen = rows.find(({ id }) => id === best)!;
  return [
    `On the part that nothing was tuned or chosen on, of ${named.join(', ')}:`,
    ...columns([
      [
        '',
        'merge',
        'λ',
        isTask ? 'metric' : 'perplexity',
        `loss beside ${leader?.label ?? 'the best'}`,
        'tried',
        'time',
      ],
      ...lines,
    ]),
    '',
    ...(said ? [`${said.lead}${said.rest}`] : []),
    ...(isChosen ? [] : [`On the choosing part ${displayName(chosen.label)} was best: it is taken.`]),
    `±: 95 % for all ${formatCounted(comparisons, 'comparison')} together.`,
    ...(shares.length > 0
      ? [`Of what the contributors gained on their own text it keeps ${shares.join(', ')}.`]
      : []),
    ...(worse.length > 0 ? [`It is worse than the base on the text of ${worse.join(', ')}.`] : []),
    ...(overlap !== null && overlap > OVERLAPS
      ? ['The contributors know some of the same: text of your own would say more about λ.']
      : []),
    ...(lately
      ? [
          `The last step (${lately.step}) brought ${lately.gain.toFixed(4)} in ${formatSeconds(lately.seconds)}.`,
        ]
      : []),
    `${formatCounted(measured, 'merge')} measured in ${formatSeconds(seconds)}${report.ended === 'budget' ? '; the budget was used up' : ''}.`,
  ].join('\n');
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
