/** How an output is run elsewhere: for its report, and as the last section of its model card. */
import { type CardResult, withResults } from '../formats/card-results';
import { parseModelConfig } from '../formats/model-config';
import { snippetSection, snippetsOf, type UseSnippet } from '../formats/use-snippets';
import type { Plan } from '../merge/plan/plan';
import type { DestinationSpec } from '../reports/job';

/** Name of an output that nobody has named. */
const UNNAMED = 'merged';

/** @param gguf name of its GGUF file, where it has one */
export function usesOf(plan: Plan, destination: DestinationSpec, gguf: string | undefined): UseSnippet[] {
  const { amalgam, name: titled } = plan.recipe;
  const name = ('name' in destination ? destination.name : undefined) ?? titled ?? UNNAMED;
  const adapter = textOf(plan, 'adapter_config.json');
  if (adapter !== undefined) {
    // written here a moment ago
    const config = JSON.parse(adapter) as Record<string, unknown>;
    const field = (key: string) => (typeof config[key] === 'string' ? config[key] : undefined);
    const base = field('base_model_name_or_path') ?? '';
    return snippetsOf({
      ...{ name, model: false, base, peft: !amalgam.ggufOnly },
      ...optional('gguf', gguf),
      ...optional('architecture', field('task_type')),
    });
  }
  return snippetsOf({
    name,
    model: !amalgam.ggufOnly,
    ...optional('gguf', gguf),
    ...optional('architecture', architectureOf(textOf(plan, 'config.json'))),
  });
}

/** The small files, the card among them with the section and with what was scored. */
export function withUses(
  extras: Plan['extras'],
  use: readonly UseSnippet[],
  results: readonly CardResult[],
  destination: DestinationSpec,
): Plan['extras'] {
  const name = 'name' in destination ? destination.name : UNNAMED;
  return extras.map((extra) => {
    const { path, content } = extra;
    if (path !== 'README.md' || !('text' in content)) return extra;
    return { path, content: { text: withResults(content.text + snippetSection(use), name, results) } };
  });
}

function textOf({ extras }: Plan, file: string): string | undefined {
  const content = extras.find(({ path }) => path === file)?.content;
  return content && 'text' in content ? content.text : undefined;
}

function architectureOf(config: string | undefined): string | undefined {
  if (config === undefined) return undefined;
  const names = parseModelConfig(config, 'config.json').raw.get('architectures');
  const first = Array.isArray(names) ? names[0] : undefined;
  return typeof first === 'string' ? first : undefined;
}

function optional<K extends string>(key: K, value: string | undefined): Partial<Record<K, string>> {
  return value === undefined ? {} : ({ [key]: value } as Record<K, string>);
}
