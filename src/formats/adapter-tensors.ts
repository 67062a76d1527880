/** Roles of the tensors in an adapter file: PEFT's key names (its `save_and_load.py`), with or without adapter name. */
import type { AmalgamError } from '../errors';
import { type AdapterConfig, invalid, unsupported } from './adapter-config';
import { isWeightDtype } from './dtype';
import { type KindParts, kindPart } from './kind-key';
import { displayName, withoutWrappers } from './names';
import { counted } from './quantity';
import type { StoredTensor } from './safetensors-header';
import { limit } from './strict-json';

/** Low-rank update of one module. */
export interface AdapterPair<T = StoredTensor> {
  /** lora_A, [rank, inputs]; for an embedding [rank, vocabulary]. */
  a: T;
  /** lora_B, [outputs, rank]; for an embedding [width, rank]. */
  b: T;
  /** DoRA: one value per output. */
  magnitude?: T;
  /** `lora_bias`: `scale` × this is added to the module's bias. */
  bias?: T;
  kind: 'linear' | 'embedding';
  rank: number;
  /** α/r, or α/√r with rsLoRA. */
  scale: number;
  /** Set for factors of fused expert weights, one pair after the other: how many. */
  experts?: number;
}

interface AdapterTensors {
  /** Module path in the base (`model.layers.0.self_attn.q_proj`) → update of its weight. */
  lowRank: Map<string, AdapterPair>;
  /**
   * Tensor name in the base → tensor that PEFT loads over it, ahead of any update: `….base_layer.…` (trained biases,
   * the embedding that factors were trained on), and what stands under the base's own name (biases, resized embeddings).
   */
  origins: Map<string, StoredTensor>;
  /** Tensor name in the base → the adapter's own copy of it (`modules_to_save`). */
  replaces: Map<string, StoredTensor>;
  /** Module path in the base → trained rows of its weight, [tokens, width]. */
  tokenRows: Map<string, StoredTensor>;
  /** Module path in the base → tensors of a kind with its own, shared ones included, by their part. */
  modules: Map<string, Record<string, StoredTensor>>;
  /** Keys that PEFT does not use either: the base's side of saved modules, biases of lora_B without `lora_bias`. */
  ignored: string[];
}

type Part = 'a' | 'b' | 'embeddingA' | 'embeddingB' | 'magnitude' | 'bias';
type Key =
  | { role: 'part'; module: string; part: Part }
  | { role: 'rows'; module: string }
  | { role: 'own'; module: string; part: string }
  | { role: 'origin' | 'saved'; name: string }
  | { role: 'ignored' }
  | { role: 'unknown' };

/** Longest module path: real ones stay below 200. */
const MAX_MODULE_PATH = 300;

/** Values of patterns by module path, where one matches: see {@link modulePaths}. */
interface MatchedModules {
  ranks: ReadonlyMap<string, number>;
  alphas: ReadonlyMap<string, number>;
}

/** `.suffix`, with the adapter's name between or behind, as PEFT has it in memory and some tools save it. */
const PARTS: readonly [pattern: RegExp, part: Part][] = [
  [/^(.+)\.lora_A(?:\.[^.]+)?\.weight$/, 'a'],
  [/^(.+)\.lora_B(?:\.[^.]+)?\.weight$/, 'b'],
  [/^(.+)\.lora_B(?:\.[^.]+)?\.bias$/, 'bias'],
  [/^(.+)\.lora_embedding_A(?:\.[^.]+)?$/, 'embeddingA'],
  [/^(.+)\.lora_embedding_B(?:\.[^.]+)?$/, 'embeddingB'],
  [/^(.+)\.lora_magnitude_vector(?:\.[^.]+)?(?:\.weight)?$/, 'magnitude'],
];

/** Marks of methods that are not LoRA, in case the config disagrees. */
const FOREIGN = /(?:^|[._])(?:ia3_l|hada_w|lokr_|oft_r|vera_lambda)|\.lora_\w+(?:\.|$)/;
/** Rows of single tokens, by themselves or beside LoRA. */
const TOKEN_ROWS = /^(.+?)(?:\.token_adapter)?\.trainable_tokens_delta(?:\.[^.]+)?$/;
/** A norm that was trained whole. */
const TRAINED_NORM = /^(.+)\.ln_tuning_layers(?:\.[^.]+)?\.(weight|bias)$/;

const PREFIX = 'base_model.model.';

/** Types with pairs of LoRA; another kind that has such parts names them as its own. */
const WITH_FACTORS: readonly string[] = ['LORA', 'MLX'];

/**
 * Sorts the tensors of an adapter by their effect on the base.
 *
 * @param tensors the header of adapter_model.safetensors
 * @param kind tensors of a kind other than LoRA
 * @param matched what the config's patterns give, by the paths of {@link modulePaths}
 * @throws AmalgamError `AdapterInvalid` (half a pair, shapes that contradict each other or the config),
 *   `AdapterUnsupported` (a key that is no LoRA of a language model, convolutions, DoRA embeddings, other dtypes)
 */
export function readAdapterTensors(
  config: AdapterConfig,
  tensors: ReadonlyMap<string, StoredTensor>,
  kind?: KindParts,
  matched: MatchedModules = { ranks: new Map(), alphas: new Map() },
): AdapterTensors {
  checkSaved(config, tensors);
  const modules = new Map<string, Partial<Record<Part, StoredTensor>>>();
  const origins = new Map<string, StoredTensor>();
  const replaces = new Map<string, StoredTensor>();
  const tokenRows = new Map<string, StoredTensor>();
  const own = new Map<string, Record<string, StoredTensor>>();
  const ignored: string[] = [];
  for (const tensor of tensors.values()) {
    const key = readKey(tensor.name, config, kind);
    if (key.role === 'unknown') throw unknownKey(config, tensor.name);
    if (key.role === 'part' && !WITH_FACTORS.includes(config.type)) {
      const what = `it describes a ${displayName(config.type, 40)} adapter, but the weights hold factors of LoRA, such as “${displayName(tensor.name)}”`;
      throw invalid(config, what);
    }
    if (key.role === 'ignored') {
      ignored.push(tensor.name);
      continue;
    }
    const integers = key.role === 'own' && (tensor.dtype === 'I32' || tensor.dtype === 'I64');
    if (!isWeightDtype(tensor.dtype) && !integers) {
      throw unsupported(
        config,
        `belongs to an adapter that holds “${displayName(tensor.name)}” as ${tensor.dtype}; F32, F16 and BF16 can be merged`,
      );
    }
    const once = (isTaken: boolean) => {
      if (isTaken) throw twice(config, tensor.name);
    };
    if (key.role === 'own') {
      const parts = own.get(key.module) ?? {};
      once(parts[key.part] !== undefined);
      own.set(key.module, { ...parts, [key.part]: tensor });
    } else if (key.role === 'rows') {
      once(tokenRows.has(key.module));
      tokenRows.set(key.module, tensor);
    } else if (key.role !== 'part') {
      once(origins.has(key.name) || replaces.has(key.name));
      (key.role === 'saved' ? replaces : origins).set(key.name, tensor);
    } else {
      if (key.module.length > MAX_MODULE_PATH)
        throw invalid(config, `the key “${displayName(tensor.name)}” is over-long`);
      const parts = modules.get(key.module) ?? {};
      once(parts[key.part] !== undefined);
      modules.set(key.module, { ...parts, [key.part]: tensor });
    }
  }

  const lowRank = new Map<string, AdapterPair>();
  const levels = new Map<string, number>();
  for (const path of modules.keys()) {
    const module = unwrapped(path);
    levels.set(module, (levels.get(module) ?? 0) + 1);
  }
  for (const [path, parts] of modules) {
    const { module, parameter } = targetOf(config, path, levels);
    if (parts.bias && !config.loraBias) {
      // mergekit-extract-lora writes such biases; PEFT does not load them.
      ignored.push(parts.bias.name);
      delete parts.bias;
    }
    const name = `${module}.weight`;
    if (replaces.has(name) || (origins.has(name) && !/\.base_layer\./.test(origins.get(name)!.name))) {
      throw invalid(config, `module “${displayName(module)}” is both updated by factors and replaced`);
    }
    lowRank.set(
      parameter ? `${module}.${parameter}` : module,
      makePair(config, matched, module, parts, parameter),
    );
  }
  const complete = kind ? ownModules(config, own, kind) : own;
  if (kind?.lacking && own.has('') && complete.size === 0)
    throw unsupported(config, `belongs to an adapter without ${kind.lacking}`);
  if (lowRank.size + origins.size + replaces.size + tokenRows.size + complete.size === 0)
    throw invalid(config, 'the adapter holds nothing that changes the base');
  return { lowRank, origins, replaces, tokenRows, modules: complete, ignored };
}

/** The paths that rank and alpha are asked for: of modules with factors or tensors of a kind, and of their parameters. */
export function modulePaths(config: AdapterConfig, names: Iterable<string>, kind?: KindParts): string[] {
  const paths = new Set<string>();
  for (const name of names) {
    const key = readKey(name, config, kind);
    if (key.role !== 'part' && key.role !== 'own') continue;
    paths.add(key.module);
    if (config.targetParameters.length === 0) continue;
    for (const parameter of FUSED_PARAMETERS) paths.add(`${unwrapped(key.module)}.${parameter}`);
  }
  return [...paths].filter(({ length }) => length <= MAX_MODULE_PATH);
}

/** Every module of a kind with all its tensors, and those that the adapter shares. */
function ownModules(
  config: AdapterConfig,
  own: ReadonlyMap<string, Record<string, StoredTensor>>,
  { parts, optional = [] }: KindParts,
): Map<string, Record<string, StoredTensor>> {
  const shared = own.get('') ?? {};
  const modules = new Map<string, Record<string, StoredTensor>>();
  for (const [module, found] of own) {
    if (module === '') continue;
    const missing = parts.find((part) => !found[part] && !optional.includes(part));
    if (missing) throw invalid(config, `module “${displayName(module)}” has no ${missing}`);
    modules.set(module, { ...shared, ...found });
  }
  return modules;
}

/** Weights of fused experts, in the order in which their modules hold them (transformers 5). */
const FUSED_PARAMETERS = ['gate_up_proj', 'down_proj'];

/**
 * The module of a key, or the parameter of a module. PEFT wraps a module once for each of its targeted parameters, the
 * first one innermost: `experts.base_layer.lora_A` are the factors of the first, `experts.lora_A` those of the second.
 * @param levels how often each module is wrapped
 */
function targetOf(
  { targetParameters }: AdapterConfig,
  path: string,
  levels: ReadonlyMap<string, number>,
): { module: string; parameter?: string } {
  const module = unwrapped(path);
  const targeted = FUSED_PARAMETERS.filter((parameter) =>
    targetParameters.some((end) => `.${module}.${parameter}`.endsWith(`.${end}`)),
  );
  const depth = (path.length - module.length) / '.base_layer'.length;
  const count = levels.get(module)!;
  const parameter = count === targeted.length ? targeted[count - 1 - depth] : undefined;
  return parameter === undefined ? { module: path } : { module, parameter };
}

const unwrapped = (path: string): string => path.replace(/(?:\.base_layer)+$/, '');

function readKey(key: string, config: AdapterConfig, kind: KindParts | undefined): Key {
  const plain = withoutWrappers(key).replace(/^module\./, '');
  // behind what a trainer held PEFT's model in: `policy.`, `pretrained_model.`, PEFT once more
  const at = `.${plain}`.lastIndexOf(`.${PREFIX}`);
  const prefixed = at >= 0;
  const path = prefixed ? plain.slice(at + PREFIX.length).replace(/^module\./, '') : plain;
  const own = kind && kindPart(path, kind);
  if (own) return { role: 'own', ...own };
  const rows = TOKEN_ROWS.exec(path)?.[1];
  if (rows !== undefined) return { role: 'rows', module: rows };
  const norm = TRAINED_NORM.exec(path);
  if (norm) return { role: 'origin', name: `${norm[1]}.${norm[2]}` };
  if (config.type === 'MLX') {
    const [, module, part] = /^(.+)\.lora_([ab])$/.exec(path) ?? [];
    // a [in, r] and b [r, out] of the transposed weight: those of an embedding, the other way round
    const table = module !== undefined && /(?:^|\.)(?:embed_tokens|wte)$/.test(module);
    if (module && table) return { role: 'part', module, part: part === 'a' ? 'b' : 'a' };
    if (module) return { role: 'part', module, part: part === 'a' ? 'embeddingB' : 'embeddingA' };
    return { role: 'unknown' };
  }
  for (const [pattern, part] of PARTS) {
    const module = pattern.exec(path)?.[1];
    if (module !== undefined) return { role: 'part', module, part };
  }
  if (FOREIGN.test(path)) return { role: 'unknown' };
  const under = /^(.+?)(?:\.token_adapter)?\.base_layer(\.[^.]+)$/.exec(path);
  if (under) return { role: 'origin', name: `${under[1]}${under[2]}` };
  if (/\.original_module\.[^.]+$/.test(path)) return { role: 'ignored' };
  const wrapped = /^(.+)\.modules_to_save\.[^.]+\.(.+)$/.exec(path);
  if (wrapped) return { role: 'saved', name: `${wrapped[1]}.${wrapped[2]}` };
  if (isSaved(path, config)) return { role: 'saved', name: path };
  // Other tensors under the prefix are loaded into the base by name in PEFT: biases, resized embeddings.
  if (prefixed) return { role: 'origin', name: path };
  return { role: 'unknown' };
}

/** Characters that names are compared by with `modules_to_save`: a second's work, and a thousand times that of real adapters. */
const MAX_COMPARED = 1e9;

/** @throws LimitExceeded for an adapter whose names would be compared for hours */
function checkSaved({ fileName, modulesToSave }: AdapterConfig, tensors: ReadonlyMap<string, unknown>): void {
  let characters = 0;
  for (const name of tensors.keys()) characters += name.length;
  if (characters * modulesToSave.length <= MAX_COMPARED) return;
  const entries = `“modules_to_save” has ${counted(modulesToSave.length, 'entry', 'entries')}`;
  throw limit(fileName, `is too large: ${entries} for the adapter’s ${counted(tensors.size, 'tensor')}`);
}

/** Does the tensor belong to a module of `modules_to_save`? PEFT matches the ends of module paths. */
function isSaved(path: string, { modulesToSave }: AdapterConfig): boolean {
  return modulesToSave.some((saved) => `.${path}`.includes(`.${saved}.`));
}

function makePair(
  config: AdapterConfig,
  { ranks, alphas }: MatchedModules,
  module: string,
  parts: Partial<Record<Part, StoredTensor>>,
  parameter?: string,
): AdapterPair {
  const embedding = parts.embeddingA !== undefined || parts.embeddingB !== undefined;
  const a = embedding ? parts.embeddingA : parts.a;
  const b = embedding ? parts.embeddingB : parts.b;
  const about = `module “${displayName(module)}”`;
  const [aName, bName] = embedding ? ['lora_embedding_A', 'lora_embedding_B'] : ['lora_A', 'lora_B'];
  if (embedding && (parts.a || parts.b))
    throw invalid(config, `${about} has both linear and embedding factors`);
  if (!a || !b) throw invalid(config, `${about} has no ${a ? bName : aName}, only ${partNames(parts)}`);
  // of a convolution A has the kernel, and B is 1 × 1 (PEFT tuners/lora/layer.py, _ConvNd)
  if (a.shape.length < 2 || b.shape.length < 2 || b.shape.slice(2).some((extent) => extent !== 1)) {
    throw unsupported(
      config,
      `belongs to an adapter with factors of [${a.shape}] and [${b.shape}] at ${about}`,
    );
  }
  const path = parameter ? `${module}.${parameter}` : module;
  const rank = ranks.get(path) ?? config.rank;
  const experts = parameter ? a.shape[0]! / rank : 1;
  if (a.shape[0] !== experts * rank || b.shape[1] !== experts * rank || !Number.isInteger(experts)) {
    throw invalid(
      config,
      `${about} has factors of [${a.shape}] and [${b.shape}], but its rank by the config is ${rank}`,
    );
  }
  const alpha = alphas.get(path) ?? config.alpha;
  const pair: AdapterPair = {
    a,
    b,
    kind: embedding ? 'embedding' : 'linear',
    rank,
    scale: config.rsLora ? alpha / Math.sqrt(rank) : alpha / rank,
    ...(parameter ? { experts } : {}),
  };
  addMagnitude(config, about, pair, parts.magnitude);
  addBias(config, about, pair, parts.bias);
  return pair;
}

function addMagnitude(
  config: AdapterConfig,
  about: string,
  pair: AdapterPair,
  magnitude: StoredTensor | undefined,
): void {
  if (!magnitude && !config.dora) return;
  if (!magnitude) throw invalid(config, `${about} has no lora_magnitude_vector, which “use_dora” demands`);
  if (!config.dora)
    throw invalid(config, `${about} has a lora_magnitude_vector, but the config does not say “use_dora”`);
  if (magnitude.shape.length !== 1 || magnitude.shape[0] !== pair.b.shape[0]) {
    throw invalid(config, `${about} has a magnitude of [${magnitude.shape}] for ${pair.b.shape[0]} outputs`);
  }
  pair.magnitude = magnitude;
}

function addBias(
  config: AdapterConfig,
  about: string,
  pair: AdapterPair,
  bias: StoredTensor | undefined,
): void {
  if (!config.loraBias) return;
  if (!bias) throw invalid(config, `${about} has no bias of lora_B, which “lora_bias” demands`);
  if (bias.shape.length !== 1 || bias.shape[0] !== pair.b.shape[0]) {
    throw invalid(config, `${about} has a bias of [${bias.shape}] for ${pair.b.shape[0]} outputs`);
  }
  pair.bias = bias;
}

function partNames(parts: Partial<Record<Part, StoredTensor>>): string {
  return Object.values(parts)
    .map(({ name }) => `“${displayName(name)}”`)
    .join(' and ');
}

function unknownKey(config: AdapterConfig, key: string): AmalgamError {
  return unsupported(
    config,
    `belongs to weights that hold “${displayName(key)}”, which is not a key of a PEFT adapter of its kind`,
    'Look for a version in PEFT format. A LoRA of an image model is opened as its one file, without a config.',
  );
}

function twice(config: AdapterConfig, key: string): AmalgamError {
  return invalid(
    config,
    `the file holds more than one adapter: “${displayName(key)}” is there under another adapter name too`,
  );
}
