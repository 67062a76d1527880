/**
 * Scores on tasks in a model card, where the Hub reads them: `model-index` of the front matter
 * (https://huggingface.co/docs/hub/model-cards#evaluation-results; keys as huggingface_hub's `eval_results_to_model_index`).
 */

import { isMap, parseDocument } from 'yaml';
import { counted } from './quantity';
import { type YamlData, yamlText } from './yaml-text';

/** The front matter, and what follows it. */
const FRONT = /^---\r?\n((?:[\s\S]*?\n)?)---(?:\r?\n|$)([\s\S]*)$/;

/** Score of a model on one task. */
export interface CardResult {
  task: string;
  /** `owner/name` on the Hub with its commit; null for rows of one's own. */
  dataset: { id: string; revision: string; config: string | null } | null;
  split: string | null;
  fewshot: number;
  /** Items that were scored, of those there are; the seed by which they were drawn. */
  items: number;
  original: number;
  sampleSeed: number | null;
  metrics: { type: string; value: number; stderr: number | null }[];
}

/**
 * The card with the results in its front matter. Those of another task that stand there already stay, those of the same
 * task are replaced; everything else is as it was.
 * @param name of the model, where the card names none in its `model-index`
 * @throws AmalgamError `RecipeInvalid` for a value that is not finite
 */
export function cardWithResults(card: string, name: string, results: readonly CardResult[]): string {
  if (results.length === 0) return card;
  const [, found, rest] = FRONT.exec(card) ?? [card, '', `\n${card}`];
  const document = parseDocument(found!);
  const there: unknown = document.toJS()?.['model-index'];
  const own = Array.isArray(there)
    ? (there[0] as { name?: unknown; results?: unknown } | undefined)
    : undefined;
  const old = Array.isArray(own?.results) ? (own.results as { dataset?: { name?: unknown } }[]) : [];
  const names = new Set(results.map(({ task }) => task));
  const kept = old.filter(({ dataset }) => !names.has(String(dataset?.name)));
  if (isMap(document.contents)) document.delete('model-index');
  const isAlone = isMap(document.contents) && document.contents.items.length === 0;
  const others = there === undefined ? found! : isAlone ? '' : document.toString();
  const index = yamlText({
    'model-index': [
      {
        name: typeof own?.name === 'string' ? own.name : name,
        results: [...(kept as YamlData[]), ...results.map(resultData)],
      },
    ],
  });
  return `---\n${others}${index}---\n${rest}`;
}

function resultData({
  task,
  dataset,
  split,
  fewshot,
  items,
  original,
  sampleSeed,
  metrics,
}: CardResult): YamlData {
  const scored = items < original ? `${items} of ${counted(original, 'item')}` : counted(items, 'item');
  const drawn = items < original ? (sampleSeed === null ? ', the first' : `, seed ${sampleSeed}`) : '';
  return {
    task: { type: 'text-generation', name: 'Text generation' },
    dataset: {
      name: task,
      type: dataset?.id ?? task,
      ...(dataset?.config ? { config: dataset.config } : {}),
      ...(split === null ? {} : { split }),
      ...(dataset ? { revision: dataset.revision } : {}),
      args: { num_few_shot: fewshot },
    },
    metrics: metrics.map(({ type, value, stderr }) => ({
      type,
      value,
      name: `${type}${stderr === null ? '' : ` ± ${stderr.toFixed(4)}`} (${scored}${drawn})`,
      verified: false,
    })),
  };
}
