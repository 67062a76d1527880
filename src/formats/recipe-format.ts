/** Recipes as YAML: mergekit's schema (its `config.py`, version 0.1.4), and our extensions under `amalgam`. */
import type { ParameterFilter, ParameterSetting, Recipe, RecipeParameters, TokenSource } from './recipe';
import { type YamlData, yamlText } from './yaml-text';

/**
 * The recipe as YAML that mergekit reads too (but for `amalgam`, which it ignores): it computes in float32, as we do,
 * and writes the recipe's dtype. A recipe with stages becomes several documents, for mergekit-multi.
 *
 * @throws AmalgamError `RecipeInvalid` for a parameter that is not finite
 */
export function formatRecipe(recipe: Recipe): string {
  return [...(recipe.stages ?? []), recipe].map(formatOne).join('---\n');
}

function formatOne(recipe: Omit<Recipe, 'stages'>): string {
  const { outDtype, amalgam } = recipe;
  const own = Object.fromEntries(
    (recipe.models ?? []).map(({ model, parameters }) => [model, parametersData(parameters, 'amalgam')]),
  );
  return yamlText({
    name: recipe.name,
    merge_method: recipe.mergeMethod,
    base_model: recipe.baseModel,
    models: recipe.models?.map(({ model, parameters, ignored }) => ({
      model,
      parameters: parametersData(parameters, 'mergekit'),
      ...ignored,
    })),
    slices: recipe.slices?.map((slice) => ({
      sources: slice.sources.map(({ model, layerRange, parameters, ignored }) => ({
        model,
        layer_range: layerRange,
        parameters: parametersData(parameters),
        ...ignored,
      })),
      base_model: slice.baseModel,
      parameters: parametersData(slice.parameters),
      ...slice.ignored,
    })),
    parameters: parametersData(recipe.parameters, 'mergekit'),
    dtype: outDtype && 'float32',
    out_dtype: outDtype === 'float32' ? undefined : outDtype,
    ...tokenizerData(recipe),
    chat_template: recipe.chatTemplate,
    ...recipe.ignored,
    amalgam: nonEmpty({
      seed: amalgam.seed,
      gradient_ends: amalgam.gradientEnds,
      shard_bytes: amalgam.shardBytes,
      non_finite: amalgam.nonFinite,
      include: amalgam.include,
      exclude: amalgam.exclude,
      output: amalgam.output,
      combination: amalgam.combination,
      rank: amalgam.rank,
      energy: amalgam.energy,
      gguf: amalgam.gguf,
      gguf_only: amalgam.ggufOnly,
      imatrix: amalgam.imatrix,
      parameters: parametersData(recipe.parameters, 'amalgam'),
      models: nonEmpty(own),
    }),
  });
}

/** @param place which of them: those that mergekit's schema takes, or those with words, for which it would refuse the recipe */
function parametersData(parameters: RecipeParameters, place?: 'mergekit' | 'amalgam'): YamlData | undefined {
  const entries = Object.entries(parameters).filter(
    ([, setting]) => place === undefined || hasWords(setting) === (place === 'amalgam'),
  );
  return nonEmpty(
    Object.fromEntries(
      entries.map(([name, setting]) => [name, Array.isArray(setting) ? setting.map(itemData) : setting]),
    ),
  );
}

/** Whether a value is a text: mergekit 0.1.4 takes numbers only (its `config.py`: ScalarOrGradient). */
export function hasWords(setting: ParameterSetting): boolean {
  if (!Array.isArray(setting)) return typeof setting === 'string';
  return setting.some((entry) => typeof entry === 'object' && hasWords(entry.value));
}

function itemData(item: number | ParameterFilter): YamlData {
  return typeof item === 'number' ? item : { filter: item.filter, value: item.value };
}

function nonEmpty(data: Record<string, YamlData | undefined>): YamlData | undefined {
  return Object.values(data).every((value) => value === undefined) ? undefined : data;
}

/** The two keys as they are written: `tokenizer_source` where it suffices. */
function tokenizerData({
  tokenizerSource,
  tokenizer,
}: Pick<Recipe, 'tokenizerSource' | 'tokenizer'>): Record<string, YamlData | undefined> {
  if (!tokenizer) return { tokenizer_source: tokenizerSource };
  return {
    tokenizer: {
      source: tokenizerSource,
      tokens:
        tokenizer.tokens &&
        new Map(
          tokenizer.tokens.map(({ token, source, force }): [string, YamlData] => [
            token,
            { source: sourceData(source), force } as YamlData,
          ]),
        ),
      pad_to_multiple_of: tokenizer.padToMultipleOf,
    },
  };
}

function sourceData(source: TokenSource): YamlData {
  if (source.kind === 'model') return source.model;
  if (source.kind === 'zero') return { kind: 'zero' };
  const { kind, model } = source;
  return 'token' in source ? { kind, model, token: source.token } : { kind, model, token_id: source.tokenId };
}
