/** PEFT's `adapter_config.json`: what Amalgam needs of a LoRA, and refusals by name of what it cannot merge. */
import { AmalgamError } from '../errors';
import {
  booleanField,
  type ConfigFields,
  integerField,
  isSet,
  numberField,
  objectField,
  parseConfigFile,
  stringField,
  stringListField,
} from './json-fields';
import { displayName } from './names';
import { isJsonNumber, type JsonObject, type JsonValue, limit, strictInteger } from './strict-json';

/** Most patterns of one adapter: one for every module of the largest mixtures of experts. */
const MAX_PATTERNS = 100_000;

/** A number for the modules whose path matches: a regular expression of Python for its end (PEFT `get_pattern_key`). */
export interface ModulePattern {
  pattern: string;
  value: number;
}

export interface AdapterConfig {
  fileName: string;
  /** `peft_type` in capitals, or `MLX`. */
  type: string;
  /** Everything in the file, for kinds with fields of their own. */
  raw: JsonObject;
  /** Name of the base the adapter was trained on, as its author wrote it; often a path on their machine. */
  baseModel?: string;
  /** Revision of that base. */
  revision?: string;
  taskType?: string;
  /** `r` and `lora_alpha` where no pattern matches. */
  rank: number;
  alpha: number;
  /** Scale α/√r instead of α/r. */
  rsLora: boolean;
  /** Weight-decomposed: a magnitude vector goes with every pair. */
  dora: boolean;
  /** Targets store their weight as [in, out] (GPT-2's Conv1D). */
  fanInFanOut: boolean;
  /** lora_B has a bias, which is added to the module's bias. */
  loraBias: boolean;
  /** Biases of the base that the adapter replaces. */
  bias: 'none' | 'all' | 'lora_only';
  modulesToSave: string[];
  /** Ranks and alphas of single modules: the first pattern that matches decides. */
  rankPatterns: ModulePattern[];
  alphaPatterns: ModulePattern[];
  /** Adapters on tied layers are tied too. */
  ensureWeightTying: boolean;
  /** Factors of parameters that are no module's weight, such as fused experts: ends of their paths. */
  targetParameters: string[];
  /** Token rows that were trained by themselves: for all, or by the end of the module's path. */
  trainedTokens?: readonly number[] | ReadonlyMap<string, readonly number[]>;
  /** Unknown fields with a value. */
  unknown: string[];
}

/**
 * Parses adapter_config.json.
 *
 * @throws AmalgamError `AdapterUnsupported` (naming the variant), `AdapterInvalid`, `JsonInvalid`, `DuplicateKey`
 */
export function parseAdapterConfig(text: string, fileName: string): AdapterConfig {
  const fields = parseConfigFile(text, fileName, 'AdapterInvalid');
  if (isMlx(fields)) return mlxConfig(fields);
  const type = methodOf(fields);
  const lora = type === 'LORA';
  if (lora) {
    refuseVariants(fields);
    refuseInitializations(fields);
  }
  const bias = stringField(fields, 'bias') ?? 'none';
  if (lora && bias !== 'none' && bias !== 'all' && bias !== 'lora_only') {
    throw invalid({ fileName }, `“bias” is “${displayName(bias)}”, not none, all or lora_only`);
  }
  const baseModel = stringField(fields, 'base_model_name_or_path');
  const revision = stringField(fields, 'revision');
  const taskType = stringField(fields, 'task_type');
  const trained = fields.object.get(lora ? 'trainable_token_indices' : 'token_indices') ?? undefined;
  return {
    fileName,
    type,
    raw: fields.object,
    ...(baseModel ? { baseModel } : {}),
    ...(revision ? { revision } : {}),
    ...(taskType ? { taskType } : {}),
    rank: needed(lora, integerField(fields, 'r', lora ? 1 : 0), fileName, 'r'),
    alpha: needed(
      lora,
      numberField(fields, 'lora_alpha') ?? numberField(fields, 'alpha'),
      fileName,
      'lora_alpha',
    ),
    rsLora: booleanField(fields, 'use_rslora') ?? false,
    dora: booleanField(fields, 'use_dora') ?? false,
    fanInFanOut: booleanField(fields, 'fan_in_fan_out') ?? false,
    loraBias: booleanField(fields, 'lora_bias') ?? false,
    bias: bias as AdapterConfig['bias'],
    modulesToSave: stringListField(fields, 'modules_to_save'),
    rankPatterns: patterns(fields, 'rank_pattern', (text) => {
      const rank = strictInteger(text);
      return rank !== undefined && rank >= 1 ? rank : undefined;
    }),
    alphaPatterns: patterns(fields, 'alpha_pattern', (text) => {
      const alpha = Number(text);
      return Number.isFinite(alpha) ? alpha : undefined;
    }),
    ensureWeightTying: booleanField(fields, 'ensure_weight_tying') ?? false,
    targetParameters: stringListField(fields, 'target_parameters'),
    ...(trained === undefined ? {} : { trainedTokens: tokenIndices(trained, fileName) }),
    unknown: unknownFields(fields),
  };
}

/** An adapter in a few words, e.g. `rsLoRA + DoRA, r 8, α 16`. */
export function adapterSummary(config: AdapterConfig, title = 'LoRA'): string {
  if (config.type !== 'LORA' && config.type !== 'MLX') {
    return config.rank > 0 ? `${title}, r ${config.rank}` : title;
  }
  const method = `${config.rsLora ? 'rsLoRA' : 'LoRA'}${config.dora ? ' + DoRA' : ''}`;
  const more =
    config.rankPatterns.length + config.alphaPatterns.length > 0 ? ', others for some modules' : '';
  const saved =
    config.modulesToSave.length > 0
      ? `, with ${config.modulesToSave.map((m) => displayName(m, 40)).join(', ')}`
      : '';
  return `${method}, r ${config.rank}, α ${config.alpha}${more}${saved}`;
}

/** A config of mlx_lm: early versions name no type, which is lora then. */
function isMlx(fields: ConfigFields): boolean {
  if (stringField(fields, 'fine_tune_type') !== undefined) return true;
  return !fields.object.has('peft_type') && fields.object.has('lora_parameters');
}

/**
 * An adapter of mlx_lm: scale · a · b of the transposed weight. Its `scale` is α/r.
 */
function mlxConfig(fields: ConfigFields): AdapterConfig {
  const { fileName, object } = fields;
  const type = stringField(fields, 'fine_tune_type') ?? 'lora';
  if (type !== 'lora') {
    throw unsupported(
      { fileName },
      `describes an MLX adapter of the type ${displayName(type, 40)}; lora can be merged`,
      'Fuse it into its model with mlx_lm (mlx_lm.fuse --model … --adapter-path …) and use the result as a full model.',
    );
  }
  const parameters = objectField(fields, 'lora_parameters');
  const rank = needed(
    true,
    parameters && integerField(parameters, 'rank', 1),
    fileName,
    'lora_parameters.rank',
  );
  const scale = needed(
    true,
    parameters && numberField(parameters, 'scale'),
    fileName,
    'lora_parameters.scale',
  );
  const model = stringField(fields, 'model');
  return {
    ...{ fileName, type: 'MLX', raw: object, rank, alpha: scale * rank, rsLora: false, dora: false },
    ...{ fanInFanOut: false, loraBias: false, bias: 'none', modulesToSave: [], rankPatterns: [] },
    ...{ alphaPatterns: [], ensureWeightTying: false, targetParameters: [] },
    unknown: unknownParameters(parameters),
    ...(model ? { baseModel: model } : {}),
  };
}

/** Those of mlx_lm's `lora_parameters` that are read here, or that concern training. */
const MLX_PARAMETERS: readonly string[] = ['rank', 'scale', 'dropout', 'keys', 'alpha'];

function unknownParameters(parameters: ConfigFields | undefined): string[] {
  const set = [...(parameters?.object ?? [])].filter(([, value]) => isSet(value)).map(([key]) => key);
  return set.filter((key) => !MLX_PARAMETERS.includes(key)).map((key) => `lora_parameters.${key}`);
}

function unknownFields({ object }: ConfigFields): string[] {
  return [...object].flatMap(([key, value]) => (isSet(value) && !KNOWN.has(key) ? [key] : []));
}

/** `[3, 5]`, or `{embed_tokens: [3, 5]}`. */
function tokenIndices(value: JsonValue, fileName: string): NonNullable<AdapterConfig['trainedTokens']> {
  const list = (items: JsonValue): number[] => {
    if (!Array.isArray(items)) throw invalid({ fileName }, 'the indices of trained tokens are not a list');
    return items.map((item) => {
      const index = isJsonNumber(item) ? strictInteger(item.text) : undefined;
      if (index === undefined || index < 0) throw invalid({ fileName }, 'a trained token has no index');
      return index;
    });
  };
  return value instanceof Map ? new Map([...value].map(([key, items]) => [key, list(items)])) : list(value);
}

/** Remedy for an adapter that cannot be part of a weight. */
const BESIDE =
  'No tool can merge it into weights: leave it out, and load it beside the merged model with PEFT.';

/** Methods with nothing that could be added to a weight → why. */
const UNFOLDABLE: ReadonlyMap<string, string> = new Map([
  ...[
    'PROMPT_TUNING',
    'MULTITASK_PROMPT_TUNING',
    'P_TUNING',
    'PREFIX_TUNING',
    'CPT',
    'ADAPTION_PROMPT',
    'CARTRIDGE',
  ].map((type) => [type, 'adds to the input or the cache, not to a weight'] as const),
  ['XLORA', 'mixes adapters token by token'],
  ['POLY', 'mixes adapters task by task'],
  ['OSF', 'replaces the singular vectors of the base, which are not in the file'],
  ['SHADOW', 'runs a second network beside the model'],
]);

/** Methods that PEFT merges with what it computes of the base anew, and that is not in the file → why. */
const RECOMPUTED: ReadonlyMap<string, string> = new Map([
  ['PSOFT', 'turns singular vectors of the base, whose signs are not in the file'],
  ['ADAMSS', 'belongs to groups of outputs that are not in the file'],
  ['FROD', 'rebuilds every weight from matrices as large as the weight'],
]);

/** The method of the file. @throws AmalgamError for one that cannot be part of a weight */
function methodOf(fields: ConfigFields): string {
  const { object, fileName } = fields;
  const type = stringField(fields, 'peft_type')?.toUpperCase();
  if (type === undefined) throw invalid({ fileName }, 'it has no “peft_type”: it is not a PEFT adapter');
  const why = UNFOLDABLE.get(type);
  if (why) throw unsupported({ fileName }, `describes a ${type} adapter, which ${why}`, BESIDE);
  const recomputed = RECOMPUTED.get(type);
  if (recomputed) throw unsupported({ fileName }, `describes a ${type} adapter, which ${recomputed}`);
  if (isSet(object.get('enable_lora'))) {
    throw unsupported(
      { fileName },
      'uses “enable_lora”, the merged-linear form of early PEFT, in which one pair serves parts of a fused projection',
      'Merge it with the version of PEFT that trained it (before 0.3: later ones do not load it) and use the result as a full model, or train it again.',
    );
  }
  return type;
}

/** LoRA variants that change the arithmetic or the shape of the model: config key → what it is. */
const VARIANTS: ReadonlyMap<string, string> = new Map([
  ['alora_invocation_tokens', 'aLoRA (active only after certain tokens, so it cannot be merged at all)'],
  ['arrow_config', 'Arrow (routes among several adapters)'],
  ['use_bdlora', 'BD-LoRA (block-diagonal factors)'],
  ['kasa_config', 'KaSA (singular values of the base)'],
  ['monteclora_config', 'MontecLoRA (a distribution over factors)'],
  ['velora_config', 'VeLoRA (compressed activations)'],
  ['use_mica', 'MiCA'],
  ['mica_config', 'MiCA'],
  ['layer_replication', 'layer_replication (the model gets copies of layers)'],
]);

/**
 * Fields of a LoraConfig (PEFT 0.21, and the forms of early versions) that are read here, or that record how the adapter
 * was trained or where, which its weights already imply.
 */
const KNOWN: ReadonlySet<string> = new Set([
  ...['peft_type', 'base_model_name_or_path', 'revision', 'task_type', 'r', 'lora_alpha', 'use_rslora'],
  ...['use_dora', 'fan_in_fan_out', 'lora_bias', 'bias', 'modules_to_save', 'rank_pattern', 'alpha_pattern'],
  ...['ensure_weight_tying', 'init_lora_weights'],
  ...['peft_version', 'auto_mapping', 'inference_mode', 'target_modules', 'exclude_modules', 'lora_dropout'],
  ...['layers_to_transform', 'layers_pattern', 'megatron_core', 'megatron_config', 'runtime_config'],
  ...[
    'loftq_config',
    'eva_config',
    'corda_config',
    'lora_ga_config',
    'qalora_group_size',
    'merge_weights',
    'use_qalora',
    'target_parameters',
    'trainable_token_indices',
    'token_indices',
  ],
]);

function refuseVariants({ object, fileName }: ConfigFields): void {
  for (const [key, value] of object) {
    if (!isSet(value)) continue;
    const variant = VARIANTS.get(key);
    if (variant !== undefined) {
      const isDynamic = key === 'alora_invocation_tokens' || key === 'arrow_config';
      throw unsupported({ fileName }, `uses ${variant}`, isDynamic ? BESIDE : undefined);
    }
    // A variant that is newer than this list must not be merged as if it were plain LoRA.
    if (/^use_|_config$/.test(key) && !KNOWN.has(key)) {
      throw unsupported(
        { fileName },
        `sets “${displayName(key, 40)}”, a LoRA variant that Amalgam does not know`,
      );
    }
  }
}

/** Initializations that leave the base as it is; with all others the factors belong to a changed base. */
const PLAIN_INITS: readonly string[] = ['gaussian', 'eva', 'orthogonal', 'true', 'false'];

function refuseInitializations({ object, fileName }: ConfigFields): void {
  const init = object.get('init_lora_weights') ?? true;
  if (typeof init === 'boolean') return;
  if (typeof init !== 'string')
    throw invalid({ fileName }, '“init_lora_weights” is neither a string nor a boolean');
  if (PLAIN_INITS.includes(init.toLowerCase())) return;
  throw new AmalgamError(
    'AdapterUnsupported',
    `${displayName(fileName)} was trained with the “${displayName(init, 40)}” initialization, which changes the base: its factors do not fit the published base.`,
    'Save it again with path_initial_model_for_weight_conversion, which turns it into a plain LoRA, or merge it with PEFT and use the result as a full model.',
  );
}

/** `{pattern: number}` in the order of the file. */
function patterns(
  fields: ConfigFields,
  key: string,
  read: (text: string) => number | undefined,
): ModulePattern[] {
  const object: JsonObject = objectField(fields, key)?.object ?? new Map();
  if (object.size > MAX_PATTERNS) {
    throw limit(fields.fileName, `has more than ${MAX_PATTERNS} entries in “${key}”`);
  }
  return [...object].map(([pattern, value]) => {
    const number = isJsonNumber(value) ? read(value.text) : undefined;
    if (number === undefined) {
      throw invalid(fields, `“${key}” has no valid number for “${displayName(pattern)}”`);
    }
    return { pattern, value: number };
  });
}

/** A field that LoRA demands; 0 where another kind has none. */
function needed(demanded: boolean, value: number | undefined, fileName: string, key: string): number {
  if (value === undefined && demanded) throw invalid({ fileName }, `“${key}” is missing`);
  return value ?? 0;
}

/** The error for files of an adapter that contradict each other, or themselves. */
export function invalid({ fileName }: Pick<AdapterConfig, 'fileName'>, what: string): AmalgamError {
  return new AmalgamError(
    'AdapterInvalid',
    `${displayName(fileName)}: ${what}.`,
    'The adapter’s files do not belong together, or are incomplete. Get it again from its author.',
  );
}

/** The error for an adapter that cannot be merged here. */
export function unsupported(
  { fileName }: Pick<AdapterConfig, 'fileName'>,
  what: string,
  remedy = 'Merge this adapter into its base with PEFT (merge_and_unload) and use the result as a full model.',
): AmalgamError {
  return new AmalgamError('AdapterUnsupported', `${displayName(fileName)} ${what}.`, remedy);
}
