/** Writing a plan that is no recipe's, as a merge is written: small files and card, then shards; the index last. */
import { AmalgamError } from '../errors';
import { type ModelConfig, parseModelConfig } from '../formats/model-config';
import { SHARD_INDEX } from '../formats/shard-index';
import type { OpenModels } from '../host/models';
import type { Plan } from '../merge/plan/plan';
import { runMerge } from '../recipe/job';
import type { Progress } from '../reports/job';
import type { MergeReport, MergeRequest } from '../reports/merge';
import { hubCommit } from '../sources/model-folder';

/** What the files say of how they were made. */
interface Origin {
  /** Of its metadata: `amalgam_<key>`. */
  key: string;
  /** Request and settings, as JSON. */
  made: object;
  /** Its README.md. */
  card: string;
}

interface Written extends Pick<MergeReport, 'inputs' | 'shards' | 'stages'> {
  /** All of them, shards first. */
  files: string[];
}

/**
 * @param plan of which everything that the tool reads has been downloaded
 * @throws what `runMerge` throws
 */
export async function writePlan(
  plan: Plan,
  { key, made, card }: Origin,
  request: Pick<MergeRequest, 'engine' | 'destination' | 'tileElements'> & { shardBytes?: number },
  models: OpenModels,
  signal: AbortSignal,
  onProgress: (progress: Progress) => void,
): Promise<Written> {
  const { shardBytes, ...where } = request;
  const { amalgam } = plan.recipe;
  const recipe = { ...plan.recipe, amalgam: { ...amalgam, ...(shardBytes !== undefined && { shardBytes }) } };
  const extras = [...plan.extras, { path: 'README.md', content: { text: card } }];
  const { inputs, shards, stages } = await runMerge(
    { ...plan, recipe, extras, bytesToDownload: 0, madeBy: { key, text: JSON.stringify(made) } },
    { ...where, recipe },
    models,
    signal,
    onProgress,
  );
  const files = [...shards.map(({ file }) => file), ...extras.map(({ path }) => path)];
  return { inputs, shards, stages, files: shards.length > 1 ? [...files, SHARD_INDEX] : files };
}

/**
 * The config of a planned model.
 * @param parts that are known by it, for the message
 * @throws AmalgamError `ArchitectureUnsupported` where it has none, `ConfigInvalid`
 */
export function configOf({ extras }: Plan, model: string, parts: string): ModelConfig {
  const content = extras.find(({ path }) => path === 'config.json')?.content;
  if (content && 'text' in content) return parseModelConfig(content.text, `${model}/config.json`);
  throw new AmalgamError(
    'ArchitectureUnsupported',
    `${model} has no config.json, so it is not known which tensors are its ${parts}.`,
    'Add the config.json of its architecture.',
  );
}

/** Small files of a plan but those that speak of a merge; the card is written anew. */
export function withoutRecipe(extras: Plan['extras']): Plan['extras'] {
  return extras.filter(({ path }) => !/^(?:mergekit_(?:moe_)?config\.yml|README\.md)$/.test(path));
}

/** The original's id where it is on the Hub. */
export function hubModel({ inputs: [input] }: Plan, models: OpenModels): string | undefined {
  return input && hubCommit(models.file(input.folder, input.file).folder.origin)?.repo;
}
