import { markdownText, nameCode } from '../../formats/model-card';
import { yamlText } from '../../formats/yaml-text';
import { count } from '../difference/findings';
import { real } from '../difference/number-text';
import type { ExtractLoraReport } from './report';

/**
 * The README.md of an extracted adapter: what it is, how near it comes, and what it does not carry.
 *
 * @param hubBase id of the base where it is on the Hub
 */
export function adapterCard(
  report: Pick<
    ExtractLoraReport,
    'base' | 'finetuned' | 'modules' | 'saved' | 'left' | 'merged' | 'notes' | 'parameters' | 'version'
  >,
  rankWords: string,
  hubBase: string | undefined,
): string {
  const { base, finetuned, modules, saved, left, merged, notes } = report;
  const front = yamlText({
    ...(hubBase === undefined ? {} : { base_model: hubBase }),
    library_name: 'peft',
    tags: ['lora', 'amalgam'],
  });
  const ranks = modules.map((m) => m.rank);
  const lines = [
    `A LoRA adapter extracted from ${nameCode(finetuned)} on the base ${nameCode(base)}, made with Amalgam ${markdownText(report.version)}.`,
    '',
    `* ${count(modules.length, 'module')} with factors, ${rankWords}: smallest ${Math.min(...ranks)}, largest ${Math.max(...ranks)}, ${report.parameters} parameters`,
    `* merged into the base it leaves ${real(merged.error)} of the difference (Frobenius norm; largest single error ${real(merged.maxError)})`,
    ...(saved.length > 0 ? [`* ${count(saved.length, 'tensor')} carried whole (modules\\_to\\_save)`] : []),
    ...(left.length > 0 ? [`* ${count(left.length, 'change')} not carried, see below`] : []),
    ...notes.map((note) => `* ${markdownText(note)}`),
  ];
  const missing = left.map(
    ({ name, normDelta, why }) =>
      `* ${nameCode(name)}: ${markdownText(why)}${normDelta === null ? '' : ` (norm of the change ${real(normDelta)})`}`,
  );
  return `---
${front}---

# LoRA adapter

${lines.join('\n')}

    from peft import PeftModel
    model = PeftModel.from_pretrained(base_model, "this folder")
${missing.length > 0 ? `\n## What it does not carry\n\n${missing.join('\n')}\n` : ''}`;
}
