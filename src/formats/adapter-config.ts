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
import { type ModulePatterns, modulePatterns } from './module-pattern';
import { displayName } from './names';
import { isJsonNumber, type JsonObject, strictInteger } from './strict-json';

/** Most patterns of one adapter: one for every module of the largest mixtures of experts. */
const MAX_PATTERNS = 100_000;

export interface AdapterConfig {
  fileName: string;
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
  /** Which biases of the base the adapter carries as replacements. */
  bias: 'none' | 'all' | 'lora_only';
  modulesToSave: string[];
  /** Ranks and alphas of single modules: the first pattern that matches decides. */
  rankPatterns: ModulePatterns;
  alphaPatterns: ModulePatterns;
  /** Adapters on tied layers are tied too. */
  ensureWeightTying: boolean;
  /** Fields that say something and that are not known here. */
  unknown: string[];
}

/**
 * Parses adapter_config.json.
 *
 * @throws AmalgamError `AdapterUnsupported` (naming the variant), `AdapterInvalid`, `JsonInvalid`, `DuplicateKey`
 */
export function parseAdapterConfig(text: string, fileName: string): AdapterConfig {
  const fields = parseConfigFile(text, fileName, 'AdapterInvalid');
  refuseOtherMethods(fields);
  refuseVariants(fields);
  refuseInitialisations(fields);

  const bias = stringField(fields, 'bias') ?? 'none';
  if (bias !== 'none' && bias !== 'all' && bias !== 'lora_only') {
    throw invalid(fileName, `“bias” is “${displayName(bias)}”, not none, all or lora_only`);
  }
  const baseModel = stringField(fields, 'base_model_name_or_path');
  const revision = stringField(fields, 'revision');
  const taskType = stringField(fields, 'task_type');
  return {
    fileName,
    ...(baseModel ? { baseModel } : {}),
    ...(revision ? { revision } : {}),
    ...(taskType ? { taskType } : {}),
    rank: required(integerField(fields, 'r', 1), fileName, 'r'),
    alpha: required(numberField(fields, 'lora_alpha'), fileName, 'lora_alpha'),
    rsLora: booleanField(fields, 'use_rslora') ?? false,
    dora: booleanField(fields, 'use_dora') ?? false,
    fanInFanOut: booleanField(fields, 'fan_in_fan_out') ?? false,
    loraBias: booleanField(fields, 'lora_bias') ?? false,
    bias,
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
    unknown: [...fields.object].flatMap(([key, value]) => (isSet(value) && !KNOWN.has(key) ? [key] : [])),
  };
}

/** An adapter in a few words, e.g. `rsLoRA + DoRA, r 8, α 16`. */
export function adapterSummary(config: AdapterConfig): string {
  const method = `${config.rsLora ? 'rsLoRA' : 'LoRA'}${config.dora ? ' + DoRA' : ''}`;
  const more =
    config.rankPatterns.entries.length + config.alphaPatterns.entries.length > 0
      ? ', others for some modules'
      : '';
  const saved =
    config.modulesToSave.length > 0
      ? `, with ${config.modulesToSave.map((m) => displayName(m, 40)).join(', ')}`
      : '';
  return `${method}, r ${config.rank}, α ${config.alpha}${more}${saved}`;
}

function refuseOtherMethods(fields: ConfigFields): void {
  const { object, fileName } = fields;
  const type = stringField(fields, 'peft_type');
  if (type === undefined) throw invalid(fileName, 'it has no “peft_type”: it is not a PEFT adapter');
  if (type.toUpperCase() !== 'LORA') {
    throw unsupported(
      fileName,
      `describes a ${displayName(type, 40)} adapter; Amalgam merges LoRA adapters only`,
    );
  }
  if (isSet(object.get('enable_lora'))) {
    throw unsupported(
      fileName,
      'uses “enable_lora”, the merged-linear form of early PEFT, in which one pair serves parts of a fused projection',
    );
  }
}

/** LoRA variants that change the arithmetic or the shape of the model: config key → what it is. */
const VARIANTS: ReadonlyMap<string, string> = new Map([
  ['use_qalora', 'QALoRA (A acts on pooled groups of inputs)'],
  ['alora_invocation_tokens', 'aLoRA (active only after certain tokens, so it cannot be merged at all)'],
  ['arrow_config', 'Arrow (routes among several adapters)'],
  ['use_bdlora', 'BD-LoRA (block-diagonal factors)'],
  ['kasa_config', 'KaSA (singular values of the base)'],
  ['monteclora_config', 'MontecLoRA (a distribution over factors)'],
  ['velora_config', 'VeLoRA (compressed activations)'],
  ['use_mica', 'MiCA'],
  ['mica_config', 'MiCA'],
  ['layer_replication', 'layer_replication (the model gets copies of layers)'],
  ['target_parameters', 'target_parameters (factors of 3-D expert weights)'],
  ['trainable_token_indices', 'trainable_token_indices (rows of the embedding)'],
]);

/**
 * Fields of a LoraConfig (PEFT 0.21, and the forms of early versions) that are read here, or that say how the adapter
 * was trained or where, which its weights already tell.
 */
const KNOWN: ReadonlySet<string> = new Set([
  ...['peft_type', 'base_model_name_or_path', 'revision', 'task_type', 'r', 'lora_alpha', 'use_rslora'],
  ...['use_dora', 'fan_in_fan_out', 'lora_bias', 'bias', 'modules_to_save', 'rank_pattern', 'alpha_pattern'],
  ...['ensure_weight_tying', 'init_lora_weights'],
  ...['peft_version', 'auto_mapping', 'inference_mode', 'target_modules', 'exclude_modules', 'lora_dropout'],
  ...['layers_to_transform', 'layers_pattern', 'megatron_core', 'megatron_config', 'runtime_config'],
  ...['loftq_config', 'eva_config', 'corda_config', 'lora_ga_config', 'qalora_group_size', 'merge_weights'],
]);

function refuseVariants({ object, fileName }: ConfigFields): void {
  for (const [key, value] of object) {
    if (!isSet(value)) continue;
    const variant = VARIANTS.get(key);
    if (variant !== undefined) throw unsupported(fileName, `uses ${variant}`);
    // A variant that is newer than this list must not be merged as if it were plain LoRA.
    if (/^use_|_config$/.test(key) && !KNOWN.has(key)) {
      throw unsupported(
        fileName,
        `sets “${displayName(key, 40)}”, a LoRA variant that Amalgam does not know`,
      );
    }
  }
}

/** Initialisations that leave the base as it is; with all others the factors belong to a changed base. */
const PLAIN_INITS: readonly string[] = ['gaussian', 'eva', 'orthogonal', 'true', 'false'];

function refuseInitialisations({ object, fileName }: ConfigFields): void {
  const init = object.get('init_lora_weights') ?? true;
  if (typeof init === 'boolean') return;
  if (typeof init !== 'string')
    throw invalid(fileName, '“init_lora_weights” is neither a text nor a boolean');
  if (PLAIN_INITS.includes(init.toLowerCase())) return;
  throw new AmalgamError(
    'AdapterUnsupported',
    `${displayName(fileName)} was trained with the “${displayName(init, 40)}” initialisation, which changes the base: its factors do not fit the published base.`,
    'Save it again with path_initial_model_for_weight_conversion, which turns it into a plain LoRA, or merge it with PEFT and use the result as a full model.',
  );
}

/** `{pattern: number}` in the order of the file. */
function patterns(
  fields: ConfigFields,
  key: string,
  read: (text: string) => number | undefined,
): ModulePatterns {
  const object: JsonObject = objectField(fields, key)?.object ?? new Map();
  if (object.size > MAX_PATTERNS) {
    throw new AmalgamError(
      'LimitExceeded',
      `${displayName(fields.fileName)}: “${key}” has more than ${MAX_PATTERNS} entries.`,
      'No real adapter comes near this limit: the file is damaged or made to do harm.',
    );
  }
  const entries = [...object].map(([pattern, value]) => {
    const number = isJsonNumber(value) ? read(value.text) : undefined;
    if (number === undefined) {
      throw invalid(fields.fileName, `“${key}” has no sound number for “${displayName(pattern)}”`);
    }
    return { pattern, value: number };
  });
  return modulePatterns(entries, fields.fileName);
}

function required(value: number | undefined, fileName: string, key: string): number {
  if (value === undefined) throw invalid(fileName, `“${key}” is missing`);
  return value;
}

function invalid(fileName: string, what: string): AmalgamError {
  return new AmalgamError(
    'AdapterInvalid',
    `${displayName(fileName)}: ${what}.`,
    'Get the adapter again from its author, with its own adapter_config.json.',
  );
}

function unsupported(fileName: string, what: string): AmalgamError {
  return new AmalgamError(
    'AdapterUnsupported',
    `${displayName(fileName)} ${what}.`,
    'Merge this adapter into its base with PEFT (merge_and_unload) and use the result as a full model.',
  );
}
