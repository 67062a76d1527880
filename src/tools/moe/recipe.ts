/**
 * A recipe of experts: mergekit-moe's YAML (mergekit 0.1.4, `moe/config.py`), which Amalgam takes as published model cards have
 * it. What mergekit refuses for lack of sense is refused here at its line.
 */
import { canonicalRef, type Recipe } from '../../formats/recipe';
import { parseOne } from '../../formats/recipe-yaml';
import {
  assign,
  complain,
  type Field,
  need,
  readChoice,
  readInteger,
  readList,
  readMapping,
  readModelRef,
  readNumber,
  readScalar,
  readText,
} from '../../formats/recipe-yaml-nodes';
import { readDtype } from '../../formats/recipe-yaml-read';
import { type YamlData, yamlText } from '../../formats/yaml-text';

/** Where the rows of a router come from. */
export const GATE_MODES = [
  'hidden',
  'hidden_avg',
  'hidden_last',
  'cheap_embed',
  'random',
  'uniform_random',
] as const;

export interface MoeRecipe {
  /** Gives everything but the MLPs. */
  baseModel: string;
  experts: MoeExpert[];
  sharedExperts: MoeExpert[];
  gateMode: (typeof GATE_MODES)[number];
  dtype?: Recipe['outDtype'];
  expertsPerToken: number;
  /** Beginning of the name of an output form; absent: the first that fits. */
  architecture?: string;
  /** Of random gates and noise. */
  seed: number;
  /** Keys without effect. */
  ignored: string[];
}

export interface MoeExpert {
  sourceModel: string;
  positivePrompts: string[];
  negativePrompts: string[];
  /** Standard deviation of noise on its weights. */
  noiseScale?: number;
  /** Factor of what it adds to the stream. */
  residualScale?: number;
}

const MOST_EXPERTS = 256;

/** Parses a recipe of experts. */
export function parseMoeRecipe(text: string) {
  return parseOne(text, readMoeRecipe);
}

function readMoeRecipe(root: Field): MoeRecipe | undefined {
  const ignored = new Map<string, YamlData>();
  const known = ['base_model', 'experts', 'shared_experts', 'gate_mode', 'dtype', 'experts_per_token'];
  const fields = readMapping(root, [...known, 'architecture', 'amalgam'], { ignored });
  if (!fields) return undefined;
  const list = (name: string) =>
    (readList(fields.get(name)) ?? []).flatMap((entry) => readExpert(entry, ignored) ?? []);
  const recipe: MoeRecipe = {
    baseModel: readModelRef(need(fields, root, 'base_model', ignored.keys())) ?? '',
    experts: need(fields, root, 'experts', ignored.keys()) ? list('experts') : [],
    sharedExperts: list('shared_experts'),
    gateMode: readChoice(fields.get('gate_mode'), GATE_MODES) ?? 'hidden',
    expertsPerToken: readInteger(fields.get('experts_per_token'), 1, MOST_EXPERTS) ?? 2,
    seed: readInteger(readMapping(fields.get('amalgam'), ['seed'])?.get('seed'), 0, 2 ** 32 - 1) ?? 0,
    ignored: [...ignored.keys()],
  };
  assign(recipe, 'dtype', readDtype(fields.get('dtype')));
  assign(recipe, 'architecture', readText(fields.get('architecture')));
  checkExperts(recipe, fields.get('experts'));
  return recipe;
}

function readExpert(entry: Field, ignored: Map<string, YamlData>): MoeExpert | undefined {
  const known = ['source_model', 'positive_prompts', 'negative_prompts', 'noise_scale', 'residual_scale'];
  const fields = readMapping(entry, known, { ignored });
  const sourceModel = fields && readModelRef(need(fields, entry, 'source_model'));
  if (!fields || sourceModel === undefined) return undefined;
  const expert: MoeExpert = {
    sourceModel,
    positivePrompts: readPrompts(fields.get('positive_prompts')),
    negativePrompts: readPrompts(fields.get('negative_prompts')),
  };
  assign(expert, 'noiseScale', readScale(fields.get('noise_scale')));
  assign(expert, 'residualScale', readScale(fields.get('residual_scale')));
  return expert;
}

/** Texts, the empty one among them: some cards prompt with nothing. */
function readPrompts(field: Field | undefined): string[] {
  return (readList(field) ?? []).flatMap((item) => {
    const text = readScalar(item);
    if (text === undefined || typeof text === 'string') return text ?? [];
    return complain(item, `${item.where} is not a string.`, 'Put it in quotes.') ?? [];
  });
}

function readScale(field: Field | undefined): number | undefined {
  const value = readNumber(field);
  if (value === undefined || typeof value === 'number') return value;
  return complain(field!, `${field!.where} is not a number.`, 'Correct the number.');
}

/** Whether a mode runs prompts. */
export function readsPrompts({ gateMode }: Pick<MoeRecipe, 'gateMode'>): boolean {
  return !gateMode.endsWith('random');
}

/** What makes no mixture that routes. */
function checkExperts(recipe: MoeRecipe, field: Field | undefined): void {
  const { experts, expertsPerToken } = recipe;
  if (!field || field.reader.problems.length > 0) return;
  if (experts.length < expertsPerToken) {
    complain(
      field,
      `A token takes ${expertsPerToken} experts, and ${experts.length} are listed.`,
      'List more, or lower experts_per_token.',
    );
  }
  if (!readsPrompts(recipe)) return;
  const bare = experts.findIndex(({ positivePrompts }) => positivePrompts.length === 0);
  if (bare >= 0) {
    complain(
      readList(field)![bare]!,
      `experts[${bare}] has no positive_prompts, from which gate_mode ${recipe.gateMode} makes its row of the router.`,
      'Give each expert prompts of what it is for, or choose gate_mode random.',
    );
    return;
  }
  const prompts = experts.map((expert) => JSON.stringify([expert.positivePrompts, expert.negativePrompts]));
  if (prompts.length > 1 && new Set(prompts).size === 1) {
    complain(
      field,
      'All experts have the same prompts, so that a router cannot tell them apart.',
      'Give each expert prompts of what it is for, or choose gate_mode random.',
    );
  }
}

/** The recipe as YAML that mergekit-moe reads too. */
export function formatMoeRecipe(recipe: MoeRecipe): string {
  const { experts, sharedExperts, expertsPerToken, seed } = recipe;
  // an expert without prompts has the place where they go
  const list = (of: readonly MoeExpert[], prompted: boolean) =>
    of.map(({ sourceModel, positivePrompts, negativePrompts, noiseScale, residualScale }) => ({
      source_model: sourceModel,
      positive_prompts: prompted || positivePrompts.length > 0 ? positivePrompts : undefined,
      negative_prompts: negativePrompts.length > 0 ? negativePrompts : undefined,
      noise_scale: noiseScale,
      residual_scale: residualScale,
    }));
  return yamlText({
    base_model: recipe.baseModel,
    gate_mode: recipe.gateMode,
    dtype: recipe.dtype,
    experts_per_token: expertsPerToken,
    architecture: recipe.architecture,
    experts: list(experts, readsPrompts(recipe)),
    shared_experts: sharedExperts.length > 0 ? list(sharedExperts, false) : undefined,
    amalgam: seed > 0 ? { seed } : undefined,
  });
}

/** The models that a recipe names, the base first. */
export function moeModels({ baseModel, experts, sharedExperts }: MoeRecipe): string[] {
  const named = [...experts, ...sharedExperts].map(({ sourceModel }) => sourceModel);
  return [...new Set([baseModel, ...named].map(canonicalRef))];
}

/** The same recipe with each model by another reference. */
export function renameModels(recipe: MoeRecipe, refs: ReadonlyMap<string, string>): MoeRecipe {
  const rename = (ref: string) => refs.get(canonicalRef(ref)) ?? ref;
  const all = (of: readonly MoeExpert[]) =>
    of.map((expert) => ({ ...expert, sourceModel: rename(expert.sourceModel) }));
  return {
    ...recipe,
    baseModel: rename(recipe.baseModel),
    experts: all(recipe.experts),
    sharedExperts: all(recipe.sharedExperts),
  };
}
