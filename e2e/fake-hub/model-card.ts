/** Checks the metadata of a model card as the Hub does before it takes a commit (docs/hub/model-cards). */
import { parse } from 'yaml';

const REPO_ID = /^[\w.-]+\/[\w.-]+$/;
const LICENSE = /^[a-z0-9][a-z0-9.+-]*$/;
const RELATIONS = ['adapter', 'merge', 'quantized', 'finetune'];

/** Errors in the metadata of a README.md, in the Hub's words. */
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
  if (index !== undefined) errors.push(...indexErrors(index));
  return errors;
}

type Fields = Record<string, unknown>;

/** `model-index`: what `ModelCardData` of huggingface_hub and the Hub require of it. */
function indexErrors(index: unknown): string[] {
  if (!Array.isArray(index)) return ['"model-index" must be an array'];
  return (index as Fields[]).flatMap((entry, i) => {
    const at = `"model-index[${i}]`;
    const errors: string[] = [];
    const need = (isGood: boolean, what: string) => {
      if (!isGood) errors.push(`${at}${what}`);
    };
    need(typeof entry?.name === 'string', '.name" is required');
    const results = entry?.results;
    need(Array.isArray(results) && results.length > 0, '.results" must be an array that is not empty');
    for (const [j, result] of (Array.isArray(results) ? (results as Fields[]) : []).entries()) {
      const where = `.results[${j}]`;
      const [task, dataset] = [(result?.task ?? {}) as Fields, (result?.dataset ?? {}) as Fields];
      need(typeof task.type === 'string', `${where}.task.type" is required`);
      for (const key of ['name', 'type']) {
        need(typeof dataset[key] === 'string', `${where}.dataset.${key}" is required`);
      }
      for (const key of ['config', 'split', 'revision']) {
        need(
          ['string', 'undefined'].includes(typeof dataset[key]),
          `${where}.dataset.${key}" must be a string`,
        );
      }
      const metrics = Array.isArray(result?.metrics) ? (result.metrics as Fields[]) : [];
      need(metrics.length > 0, `${where}.metrics" must be an array that is not empty`);
      for (const [k, metric] of metrics.entries()) {
        need(typeof metric.type === 'string', `${where}.metrics[${k}].type" is required`);
        need(
          metric.value !== undefined && metric.value !== null,
          `${where}.metrics[${k}].value" is required`,
        );
        need(
          ['boolean', 'undefined'].includes(typeof metric.verified),
          `${where}.metrics[${k}].verified" must be a boolean`,
        );
      }
    }
    return errors;
  });
}
