/** `adapter_config.json` of a LoRA that is written, in PEFT's own terms (its `tuners/lora/config.py`). */

/** Its weights beside it. */
export const ADAPTER_WEIGHTS = 'adapter_model.safetensors';

export interface PeftConfigFields {
  /** Name of the base, and its commit where it is on the Hub. */
  base: string;
  revision?: string;
  /** Modules with factors, with their ranks; at least one. */
  modules: readonly { module: string; rank: number }[];
  /** Every module of the base with a matrix; where the base is not known, targets are named by their whole paths. */
  all?: readonly string[];
  saved: readonly string[];
  /** lora_B has biases. */
  loraBias: boolean;
  /** Weights of the targets are stored as [in, out]. */
  fanInFanOut: boolean;
  /** Factors of an embedding hold for the head that is tied to it too. */
  tied: boolean;
  /** PEFT's task, which decides the class it loads; null for a model that is loaded as it is. */
  task: string | null;
}

/**
 * The text of the config. α is the rank of every module, so that the factors act unscaled. Targets are named by the
 * last part of their path where every module of that name is one and nothing on the way to one is called so, else by the whole path; saved modules always by the
 * whole path, since PEFT matches the ends of paths and `norm` would be every norm.
 */
export function peftConfigText(fields: PeftConfigFields): string {
  const { modules } = fields;
  const rank = modules.reduce((most, m) => Math.max(most, m.rank), 1);
  const others = Object.fromEntries(modules.filter((m) => m.rank !== rank).map((m) => [m.module, m.rank]));
  const config = {
    alpha_pattern: others,
    auto_mapping: null,
    base_model_name_or_path: fields.base,
    bias: 'none',
    ...(fields.tied ? { ensure_weight_tying: true } : {}),
    fan_in_fan_out: fields.fanInFanOut,
    inference_mode: true,
    init_lora_weights: true,
    layers_pattern: null,
    layers_to_transform: null,
    lora_alpha: rank,
    ...(fields.loraBias ? { lora_bias: true } : {}),
    lora_dropout: 0,
    modules_to_save: fields.saved.length > 0 ? fields.saved : null,
    peft_type: 'LORA',
    r: rank,
    rank_pattern: others,
    revision: fields.revision ?? null,
    target_modules: targetNames(
      modules.map((m) => m.module),
      fields.all,
    ),
    task_type: fields.task,
    use_rslora: false,
  };
  return `${JSON.stringify(config, null, 2)}\n`;
}

/** Ends of class names → PEFT's task; a model of any other class is loaded as it is. */
const TASKS: readonly (readonly [end: string, task: string])[] = [
  ['ForCausalLM', 'CAUSAL_LM'],
  ['LMHeadModel', 'CAUSAL_LM'],
  ['ForSequenceClassification', 'SEQ_CLS'],
  ['ForTokenClassification', 'TOKEN_CLS'],
  ['ForQuestionAnswering', 'QUESTION_ANS'],
];

/** PEFT's task for the classes of a config. */
export function taskOf(architectures: readonly string[]): string | null {
  if (architectures.length === 0) return 'CAUSAL_LM';
  return TASKS.find(([end]) => architectures.some((name) => name.endsWith(end)))?.[1] ?? null;
}

function targetNames(targets: readonly string[], all: readonly string[] | undefined): string[] {
  if (!all) return [...targets];
  const chosen = new Set(targets);
  // a block can have the name of a module: `blocks.0` and `merger.mlp.0` end alike
  const inside = new Set(all.flatMap((module) => module.split('.').slice(0, -1)));
  const isWhole = (last: string) =>
    !inside.has(last) && all.every((module) => lastPart(module) !== last || chosen.has(module));
  const names = targets.map((module) => (isWhole(lastPart(module)) ? lastPart(module) : module));
  return [...new Set(names)];
}

function lastPart(module: string): string {
  return module.slice(module.lastIndexOf('.') + 1);
}
