import { usage } from '../../cli/arguments';
import { readTextFile } from '../../cli/input-files';
import { requireRecipe } from '../../cli/job';
import { planText } from '../../cli/print';
import { toolVerb } from '../../cli/tool-verb';
import { formatBytes, formatCounted, formatParameters } from '../../formats/quantity';
import { computedWords } from '../../reports/backend';
import { moeOptions } from './options';
import { moeModels, parseMoeRecipe, renameModels } from './recipe';
import type { MoeFigures, MoePlanReport, MoeReport } from './report';

const options = {
  ...moeOptions,
  plan: { kind: 'boolean', help: 'Only says what would be written, from headers.', default: false },
  resume: { kind: 'boolean', help: 'Goes on with what an interrupted run has written.', default: false },
} as const;

export const verb = toolVerb({
  name: 'moe',
  subjects: ['experts.yml'],
  about:
    'A mixture of experts out of dense models, by a recipe of mergekit-moe: Mixtral or DeepSeek MoE of Llama and Mistral models, Qwen MoE of Qwen 2, Qwen3 MoE of Qwen 3. Each expert’s MLPs are its model’s, all else is the base’s; routers come from prompts (gate_mode hidden, cheap_embed), or are random. --plan reads headers only.',
  options,
  writes: ({ plan }) => !plan,
  check({ options: { plan, resume }, given }) {
    if (plan && (resume || given.has('out')))
      throw usage('moe --plan writes nothing: leave --out and --resume out.');
  },
  async read(_, workingFolder, [file = '']) {
    const { read, problems } = parseMoeRecipe(await readTextFile(file, workingFolder));
    return requireRecipe(file, { recipe: read, problems });
  },
  named: moeModels,
  run(
    calls,
    { models, engine, options: form, read, destination },
    onProgress,
  ): Promise<MoePlanReport | MoeReport> {
    const named = moeModels(read);
    const recipe = renameModels(read, new Map(named.map((name, i) => [name, models[i]!])));
    const asked = { recipe, form, engine };
    if (!destination) return calls.planMoe(asked, onProgress);
    return calls.writeMoe({ ...asked, destination, resume: form.resume }, onProgress);
  },
  print(report, folder) {
    if ('clean' in report) return planText(report, figureWords(report));
    const { shards, notes, figures } = report;
    const bytes = formatBytes(shards.reduce((sum, shard) => sum + shard.bytes, 0));
    const wrote = `Wrote ${figureWords(figures)}, ${bytes}, ${computedWords(report)}: ${folder}`;
    return [...notes, wrote].join('\n');
  },
});

/** `Mixtral of 4 experts, 2 a token: 24 B parameters, 13 B of them active` */
export function figureWords({ title, experts, expertsPerToken, parameters }: MoeFigures): string {
  const [all, active] = [parameters.all, parameters.active].map(formatParameters);
  return `${title} of ${formatCounted(experts, 'expert')}, ${expertsPerToken} a token: ${all} parameters, ${active} of them active`;
}
