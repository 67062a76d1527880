import { toolVerb } from '../../cli/tool-verb';
import { displayName } from '../../formats/names';
import { formatCounted } from '../../formats/quantity';
import { computedWords } from '../../reports/backend';
import { compareOptions } from './options';
import type { CompareReport } from './report';

export const verb = toolVerb({
  name: 'compare',
  subjects: ['base', 'finetuned'],
  about:
    'How two models differ, tensor by tensor, as text, JSON and a page. --no-lora-analysis leaves out whether they look like a LoRA.',
  options: compareOptions,
  read: async () => undefined,
  async run(calls, { models, engine, options, destination }, onProgress) {
    const [base, finetuned] = models as [string, string];
    const { threshold, loraAnalysis, allSpectra } = options;
    const request = { base, finetuned, engine, threshold, loraAnalysis, allSpectra };
    return calls.compare({ ...request, ...(destination && { destination }) }, onProgress);
  },
  print: compareText,
});

/** Text of a comparison for the terminal: its findings, and the folder of its files. */
export function compareText(report: CompareReport, folder: string): string {
  const { words, config, architecture, tokenizer, files } = report;
  const about = [...architecture.words, ...config.words, ...tokenizer.words];
  return [
    ...words,
    ...about,
    `Compared ${computedWords(report)}: ${folder}, ${formatCounted(files.length, 'file')}`,
  ]
    .map((line) => displayName(line, 2000))
    .join('\n');
}
