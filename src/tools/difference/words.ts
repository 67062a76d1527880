import { displayName } from '../../formats/names';
import { formatCounted, formatSeconds } from '../../formats/quantity';
import type { CompareReport } from './report';

/** What a comparison found: its findings, and where the files are. */
export function compareText(report: CompareReport, folder: string): string {
  const { words, config, architecture, tokenizer, seconds, engine, adapter, files } = report;
  const about = [...architecture.words, ...config.words, ...tokenizer.words];
  return [
    ...words,
    ...about,
    `Compared in ${formatSeconds(seconds)} on ${engine} (${displayName(adapter)}): ${folder}, ${formatCounted(files.length, 'file')}`,
  ]
    .map((line) => displayName(line, 2000))
    .join('\n');
}
