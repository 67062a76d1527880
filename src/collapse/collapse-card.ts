import { markdownText, nameCode } from '../formats/model-card';
import { yamlText } from '../formats/yaml-text';
import type { CollapseReport } from '../reports/collapse';
import { costWords, kindWords, layerList, mergedLayers, plannerWords } from './collapse-words';

/**
 * The README.md of a collapsed model: what was removed, how, and the measured cost.
 *
 * @param hubModel id of the original where it is on the Hub
 */
export function collapseCard(
  report: Omit<CollapseReport, 'shards' | 'files' | 'seconds' | 'stages'>,
  hubModel: string | undefined,
): string {
  const { model, version, layers, parameters, removed, stack, calibration, notes } = report;
  const front = yamlText({
    ...(hubModel === undefined ? {} : { base_model: [hubModel] }),
    library_name: 'transformers',
    tags: ['pruned', 'amalgam'],
  });
  const less = (1 - parameters.after / parameters.before) * 100;
  const merged = mergedLayers(stack);
  const items = [
    `Layers: ${layers.after} of ${layers.before}. Removed: ${layerList(removed)} (counted from 0)`,
    `Parameters: ${parameters.after} of ${parameters.before} (${less.toFixed(1)} % less)`,
    `Chosen by: ${plannerWords(report.planner)}`,
    `What became of them: ${kindWords(report.variant, report.parts)}`,
    ...costWords(report),
    ...(calibration
      ? [`Calibration: ${calibration.tokens} tokens in ${calibration.sequences} sequences`]
      : []),
    ...notes,
  ];
  return `---
${front}---

# Collapsed model

Made from ${nameCode(model)} by collapsing layers, with Amalgam ${markdownText(version)}. It was not trained afterwards.

${items.map((item) => `* ${markdownText(item)}`).join('\n')}
${merged.length > 0 ? `\n## Layers that took others in\n\n${merged.map((line) => `* ${markdownText(line)}`).join('\n')}\n` : ''}`;
}
