/** Checks the metadata of a model card as the Hub does before it takes a commit (docs/hub/model-cards). */
import { parse } from 'yaml';

const REPO_ID = /^[\w.-]+\/[\w.-]+$/;
const LICENSE = /^[a-z0-9][a-z0-9.+-]*$/;
const RELATIONS = ['adapter', 'merge', 'quantized', 'finetune'];

/** What is wrong with the metadata of a README.md, in the Hub's words. */
export function cardErrors(readme: string): string[] {
  const yaml = /^---\r?\n([\s\S]*?)\r?\n---(\r?\n|$)/.exec(readme)?.[1];
  if (yaml === undefined) return [];
  let card: Record<string, unknown>;
  try {
    card = (parse(yaml) ?? {}) as Record<string, unknown>;
  } catch (thrown) {
    return [`The metadata is not valid YAML: ${(thrown as Error).message.split('\n')[0]}`];
  }
  const errors: string[] = [];
  const texts = (key: string) => {
    const value = card[key];
    if (value === undefined) return [];
    const all = Array.isArray(value) ? value : [value];
    if (!all.every((one) => typeof one === 'string'))
      errors.push(`"${key}" must be a string or an array of strings`);
    return all.map(String);
  };
  for (const id of texts('base_model')) {
    if (!REPO_ID.test(id))
      errors.push(`"base_model" with value "${id}" is not valid. Use a model id from https://hf.co/models.`);
  }
  for (const relation of texts('base_model_relation')) {
    if (!RELATIONS.includes(relation))
      errors.push(`"base_model_relation" must be one of [${RELATIONS.join(', ')}]`);
  }
  for (const license of texts('license')) {
    if (!LICENSE.test(license))
      errors.push(`"license" must be one of the licenses of https://hf.co/docs/hub/repositories-licenses`);
  }
  texts('tags');
  const index = card['model-index'];
  if (index !== undefined) {
    const results = (Array.isArray(index) ? index : [index]).flatMap(
      (entry) => entry?.results ?? [undefined],
    );
    const isWhole = (result: {
      task?: { type?: unknown };
      dataset?: { name?: unknown; type?: unknown };
      metrics?: unknown;
    }) =>
      typeof result?.task?.type === 'string' &&
      typeof result.dataset?.name === 'string' &&
      typeof result.dataset.type === 'string' &&
      Array.isArray(result.metrics);
    if (!results.every(isWhole))
      errors.push('"model-index[0].results" must have task.type, dataset.name, dataset.type and metrics');
  }
  return errors;
}
