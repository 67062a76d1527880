/**
 * Differences in how a recipe reads elsewhere. mergekit 0.1.4 ignores keys it does not know (its `config.py` takes them and
 * drops them), and so ours: settings lost or read otherwise there are named before a recipe is exported.
 */
import {
  type ParameterScalar,
  type ParameterSetting,
  type Recipe,
  type RecipeExtensions,
  type RecipeLevel,
  recipeLevels,
  yamlKey,
} from '../formats/recipe';
import { isGlob } from '../formats/tensor-pattern';
import { drawsRandomly, type MergeMethod, type ParameterSpec } from './method';

/** One thing that mergekit does otherwise. */
interface ExportWarning {
  /** Setting of the recipe: `semantics: paper of the recipe`. */
  setting: string;
  /** Effect in mergekit, as a sentence. */
  consequence: string;
  /** mergekit stops at it. */
  refused?: true;
}

type OneRecipe = Omit<Recipe, 'stages'>;

/** The methods mergekit 0.1.4 registers (its `merge_methods/registry.py`). */
export const MERGEKIT_METHODS: ReadonlySet<string> = new Set([
  ...[
    'linear',
    'slerp',
    'nuslerp',
    'multislerp',
    'karcher',
    'task_arithmetic',
    'ties',
    'dare_linear',
    'dare_ties',
  ],
  ...['della', 'della_linear', 'breadcrumbs', 'breadcrumbs_ties', 'sce', 'ram', 'ramplus_tl', 'model_stock'],
  ...['nearswap', 'arcee_fusion', 'passthrough'],
]);

/** Everything of a recipe, its stages included, that means something else in mergekit 0.1.4; in reading order. */
export function exportWarnings(recipe: Recipe, methods: ReadonlyMap<string, MergeMethod>): ExportWarning[] {
  const warnings = [...(recipe.stages ?? []), recipe].flatMap((part) => {
    const method = methods.get(part.mergeMethod);
    const found = method ? [...ofMethod(part, method), ...ofExtensions(part, method)] : [];
    const where = recipe.stages ? ` (${part.name ?? 'result'})` : '';
    return [...found, ...ofFilters(part), ...ofVocabulary(part)].map((w) => ({
      ...w,
      setting: w.setting + where,
    }));
  });
  const stages: ExportWarning[] = recipe.stages
    ? [
        {
          setting: 'several documents',
          consequence: 'Only mergekit-multi reads them; mergekit-yaml refuses the file.',
        },
      ]
    : [];
  return [...stages, ...warnings];
}

function ofMethod(recipe: OneRecipe, method: MergeMethod): ExportWarning[] {
  if (!MERGEKIT_METHODS.has(method.id)) {
    return [
      {
        setting: method.id,
        consequence: 'mergekit has no such method and refuses the recipe.',
        refused: true,
      },
    ];
  }
  const dtype: ExportWarning[] = recipe.outDtype
    ? []
    : [
        {
          setting: 'no dtype',
          consequence:
            'mergekit then computes in the dtype of the models, which for bfloat16 is coarser than here. With an output dtype the recipe asks it for float32.',
        },
      ];
  return [...recipeLevels(recipe).flatMap((level) => ofParameters(level, method)), ...dtype];
}

function ofParameters({ kind, parameters, where }: RecipeLevel, method: MergeMethod): ExportWarning[] {
  const specs = new Map([...Object.entries(method.parameters), ...Object.entries(method.modelParameters)]);
  return Object.entries(parameters).flatMap(([name, setting]) => {
    const spec = specs.get(name);
    if (!spec) return [];
    return [...new Set(valuesOf(setting))].flatMap((value) => {
      const found = reading(spec, value, kind === 'slice' || kind === 'source');
      return found ? [{ setting: `${name}: ${value} of ${where}`, ...found }] : [];
    });
  });
}

/** Meaning of a value in mergekit, where it differs from ours. Words stand under `amalgam`, but for those of slices. */
function reading(
  spec: ParameterSpec,
  value: ParameterScalar,
  inSlice: boolean,
): Omit<ExportWarning, 'setting'> | undefined {
  if (typeof value === 'string' && inSlice) {
    return { consequence: 'mergekit takes numbers only and refuses the recipe.', refused: true };
  }
  if (value === spec.default || (!spec.extension && typeof value !== 'string')) return undefined;
  return {
    consequence:
      spec.kind === 'choice' && spec.booleans
        ? `In the recipe for mergekit it stands under amalgam, which mergekit ignores: there it is ${spec.default}. Write true for ${spec.booleans.true}, false for ${spec.booleans.false}.`
        : 'In the recipe for mergekit it stands under amalgam, which mergekit ignores: it goes on without it.',
  };
}

function valuesOf(setting: ParameterSetting): ParameterScalar[] {
  if (!Array.isArray(setting)) return [setting];
  return setting.flatMap((entry) => (typeof entry === 'number' ? [entry] : valuesOf(entry.value)));
}

function ofFilters(recipe: OneRecipe): ExportWarning[] {
  const globs = recipeLevels(recipe).flatMap(({ parameters }) =>
    Object.values(parameters).flatMap((setting) =>
      Array.isArray(setting)
        ? setting.flatMap((entry) =>
            typeof entry !== 'number' && entry.filter !== undefined && isGlob(entry.filter)
              ? [entry.filter]
              : [],
          )
        : [],
    ),
  );
  return [...new Set(globs)].map((glob) => ({
    setting: `filter: ${glob}`,
    consequence: 'mergekit looks for these very characters, so the filter matches nothing there.',
  }));
}

/** mergekit's `tokenizer/build.py` and `tokenizer/embed.py`; see docs/vocabulary.md. */
function ofVocabulary({ tokenizerSource }: OneRecipe): ExportWarning[] {
  if (tokenizerSource === undefined) return [];
  const setting = `tokenizer_source: ${tokenizerSource}`;
  const rows = {
    setting,
    consequence:
      'Where all models have the same tokens, mergekit cuts the rows that stand for none; here they stay.',
  };
  if (tokenizerSource !== 'union') return [rows];
  const order = {
    setting,
    consequence:
      'mergekit appends tokens in no fixed order, and makes added tokens of those that another model splits text into.',
  };
  return [rows, order];
}

function ofExtensions(recipe: OneRecipe, method: MergeMethod): ExportWarning[] {
  const { amalgam } = recipe;
  const known: Partial<Record<keyof RecipeExtensions, string | undefined>> = {
    seed: isRandom(recipe, method) ? undefined : '',
    gradientEnds:
      amalgam.gradientEnds === 'nearest' && hasGradient(recipe)
        ? 'mergekit takes the first value of every gradient for embeddings, final norm and head.'
        : '',
    shardBytes: 'mergekit cuts shards by its option --out-shard-size.',
    nonFinite: amalgam.nonFinite === 'carry' ? '' : undefined,
    include: 'mergekit merges the other tensors too.',
    exclude: 'mergekit merges these tensors too.',
  };
  const random: ExportWarning[] = isRandom(recipe, method)
    ? [
        {
          setting: `seed ${amalgam.seed ?? 0}`,
          consequence:
            'mergekit draws other masks: it takes --random-seed, and they depend on the order of tensors.',
        },
      ]
    : [];
  const lost = (Object.keys(amalgam) as (keyof RecipeExtensions)[]).flatMap((key) => {
    if (amalgam[key] === undefined || (key === 'seed' && known.seed === undefined)) return [];
    const consequence = key in known ? known[key] : 'mergekit ignores it.';
    return consequence === '' || consequence === undefined
      ? []
      : [{ setting: `amalgam.${yamlKey(key)}`, consequence }];
  });
  return [...random, ...lost];
}

/** Whether any tensor's result depends on the seed, by the method-wide parameters of the recipe. */
function isRandom({ parameters }: OneRecipe, method: MergeMethod): boolean {
  const { compute } = method;
  if (compute.kind !== 'delta') return false;
  const values = Object.entries(method.parameters).map(([name, spec]) => {
    const given = parameters[name];
    return [name, given === undefined || Array.isArray(given) ? (spec.default ?? 0) : given] as const;
  });
  return drawsRandomly(compute.preset(Object.fromEntries(values)));
}

function hasGradient(recipe: OneRecipe): boolean {
  const isGradient = (setting: ParameterSetting): boolean =>
    Array.isArray(setting) &&
    setting.some((entry) => (typeof entry === 'number' ? setting.length > 1 : isGradient(entry.value)));
  return recipeLevels(recipe).some(({ parameters }) => Object.values(parameters).some(isGradient));
}
