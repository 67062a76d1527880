import { toolVerb } from '../../cli/tool-verb';
import { displayName } from '../../formats/names';
import { formatBytes, formatCounted, formatReal, formatSeconds } from '../../formats/quantity';
import { cutWords } from '../../reports/lora';
import { extractOptions, rankOf } from './options';
import type { ExtractLoraReport } from './report';

/** The most of a list that goes to the terminal; the files have all of it. */
const MOST_LINES = 12;

/** Text of an extraction for the terminal: size, ranks, error, and the changes it leaves out. */
export function extractText(report: ExtractLoraReport, folder: string): string {
  const { modules, saved, left, merged, files, seconds, engine, adapter, notes } = report;
  const ranks = modules.map(({ rank }) => rank);
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const whole = saved.length > 0 ? `, ${formatCounted(saved.length, 'tensor')} carried whole` : '';
  const errors = modules.map(({ error }) => error ?? 0);
  const worst = errors.indexOf(Math.max(...errors));
  const leftOut = left.map(
    ({ name, normDelta, why }) =>
      `not carried: ${displayName(name)}, ${why}${normDelta === null ? '' : ` (norm of the change ${formatReal(normDelta)})`}`,
  );
  return [
    `Extracted ${formatCounted(modules.length, 'module')} of rank ${span(ranks)}${whole}: ${formatBytes(bytes)}`,
    `Merged back, ${formatReal(merged.error)} of the difference is left (largest single error ${formatReal(merged.maxError)}; worst module ${displayName(modules[worst]!.module)}: ${formatReal(errors[worst]!)})`,
    ...cutWords(report),
    ...merged.failed.map(({ name, message }) => `not finite when merged: ${displayName(name)}, ${message}`),
    ...notes.map((note) => displayName(note, 2000)),
    ...leftOut.slice(0, MOST_LINES),
    ...(leftOut.length > MOST_LINES
      ? [`and ${leftOut.length - MOST_LINES} more; README.md names them all`]
      : []),
    `Written in ${formatSeconds(seconds)} on ${engine} (${displayName(adapter)}): ${folder}`,
  ].join('\n');
}

function span(ranks: readonly number[]): string {
  const least = Math.min(...ranks);
  const most = Math.max(...ranks);
  return least === most ? String(most) : `${least} to ${most}`;
}

export const verb = toolVerb({
  name: 'extract-lora',
  subjects: ['base', 'finetuned'],
  about:
    'The difference as a LoRA adapter for PEFT. --energy keeps this share of each change, --cutoff singular values down to this share of the largest, --budget what captures most in so many bytes. --include and --exclude choose modules by a part of their path.',
  options: extractOptions,
  read: async () => undefined,
  async run(calls, { models, engine, options, destination }, onProgress) {
    const [base, finetuned] = models as [string, string];
    const { maxRank, include, exclude, embeddings, vectors, dtype, seed } = options;
    return calls.extractLora(
      {
        ...{ base, finetuned, engine, destination: destination!, rank: rankOf(options)! },
        ...{ maxRank, include, exclude, embeddings, vectors, dtype, seed },
      },
      onProgress,
    );
  },
  print: extractText,
});
