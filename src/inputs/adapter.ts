/** Opening an adapter of PEFT or mlx_lm: its config and the header of its weights. No weight is read. */

import { AmalgamError, errorReport } from '../errors';
import { type AdapterConfig, type ModulePattern, parseAdapterConfig } from '../formats/adapter-config';
import { type AdapterPair, modulePaths, readAdapterTensors } from '../formats/adapter-tensors';
import type { ImageNaming } from '../formats/image-lora';
import { displayName } from '../formats/names';
import { ADAPTER_WEIGHTS } from '../formats/peft-config';
import { counted } from '../formats/quantity';
import type { StoredTensor } from '../formats/safetensors-header';
import { SHARD_INDEX } from '../formats/shard-index';
import { isJsonNumber, type JsonValue } from '../formats/strict-json';
import { splitLayer } from '../models/tensor-role';
import { findFile, type ModelFile, type ModelFolder } from '../sources/model-folder';
import { readHeader, readSmallText, tensorRef } from './header';
import type { AdapterKind, OpenRows } from './kinds/kind';
import { nameSome, type Problems } from './problems';
import type { TensorRef } from './tensor-view';

export type AdapterUpdate = AdapterPair<TensorRef>;

/** Tensors of a kind other than LoRA by their part, and the numbers of their module. */
export interface OwnModule {
  parts: Readonly<Record<string, TensorRef>>;
  rank: number;
  alpha: number;
}

/** A change of the rows of a weight that is no product of factors, as the tools of image models have it. */
export interface RowsUpdate {
  /** Kind of it, in sentences. */
  title: string;
  outputs: number;
  /** Elements of a row, where they follow from what is stored. */
  width: number | undefined;
  /** Rows that change together, one after the other in one array. */
  group: number;
  /** It looks at all rows before it changes one. */
  isWhole?: boolean;
  parts: Readonly<Record<string, TensorRef>>;
  open: OpenRows;
}

export interface Adapter {
  kind: 'adapter';
  /** Key of the opened folder, as in `TensorRef.folder`. */
  path: string;
  folder: ModelFolder;
  config: AdapterConfig;
  /** Module path in the base → update of its weight. */
  updates: ReadonlyMap<string, AdapterUpdate>;
  /** Tensor name in the base → tensor that is loaded over it, ahead of any update. */
  origins: ReadonlyMap<string, TensorRef>;
  /** Tensor name in the base → the adapter's own copy of it. */
  replaces: ReadonlyMap<string, TensorRef>;
  /** Module path in the base → trained rows of its weight, and which tokens' they are. */
  tokenRows: ReadonlyMap<string, { rows: TensorRef; tokens: readonly number[] }>;
  /** For a kind other than LoRA, and its tensors by module path and part. */
  method?: AdapterKind;
  modules: ReadonlyMap<string, OwnModule>;
  /** Of an image or video model: how its file names the modules, which have the paths of src/formats/image-lora.ts here. */
  image?: ImageNaming;
  /** Of an image model: by module path, in place of {@link updates}. */
  rows?: ReadonlyMap<string, RowsUpdate>;
  /** Keys of the weight file that change nothing. */
  ignored: readonly string[];
  /** Modules with factors that PEFT would not give any by the config, or why that is not known. */
  untargeted: readonly string[] | { unread: string };
  weightFile: ModelFile;
  /** For one that is not stored: those that its factors are computed from. */
  madeOf?: readonly Adapter[];
}

const CONFIG = 'adapter_config.json';
/** The weights of an adapter of mlx_lm. */
const MLX_WEIGHTS = 'adapters.safetensors';
/** Most bytes of an adapter config: pattern tables of thousands of modules stay below 1 MB. */
const MAX_CONFIG_BYTES = 16 * 2 ** 20;

/** Whether a folder holds a PEFT adapter rather than a checkpoint. */
export function isAdapterFolder(folder: ModelFolder): boolean {
  const has = (path: string) => findFile(folder, path) !== undefined;
  // a model beside the left-overs of an adapter is one
  if (!has(CONFIG) && (has('model.safetensors') || has(SHARD_INDEX))) return false;
  if (has(ADAPTER_WEIGHTS) || has('adapter_model.bin') || (has(CONFIG) && has(MLX_WEIGHTS))) return true;
  return has(CONFIG) && !folder.files.some((file) => file.path.endsWith('.safetensors'));
}

/**
 * Opens an adapter from its config and the header of its weights.
 *
 * @param path key of the folder, unique among the opened ones; default its own path
 * @throws AmalgamError `AdapterInvalid` (no config), `AdapterUnsupported` (not a LoRA we can merge), `NotSafetensors`
 *   (pickle only), `NotFound` (no weights), and what the parsers throw
 */
export async function openAdapter(
  folder: ModelFolder,
  path: string = folder.path,
  signal?: AbortSignal,
): Promise<Adapter> {
  const configFile = findFile(folder, CONFIG);
  if (!configFile) {
    throw new AmalgamError(
      'AdapterInvalid',
      `${path} has the weights of an adapter, but no ${CONFIG}, which says how to scale them.`,
      'Get the adapter again from its author, with its config.',
    );
  }
  // The config first: its reason why an adapter cannot be merged is worth more than a missing file.
  const text = await readSmallText(configFile, path, MAX_CONFIG_BYTES, signal);
  const config = parseAdapterConfig(text, `${path}/${CONFIG}`);
  const method = await methodOf(config);
  const weightFile = findFile(folder, config.type === 'MLX' ? MLX_WEIGHTS : ADAPTER_WEIGHTS);
  if (!weightFile) throw noWeights(folder, path);

  const refs = new Map<StoredTensor, TensorRef>();
  const header = await readHeader(weightFile, path, signal);
  for (const stored of header.values()) refs.set(stored, tensorRef(path, weightFile, stored));
  const paths = modulePaths(config, header.keys(), method);
  const match = async (patterns: ModulePattern[]): Promise<ReadonlyMap<string, number>> => {
    if (patterns.length === 0) return new Map();
    const { matchModules } = await import('../foreign/foreign-text');
    return matchModules(patterns, paths, config.fileName, signal);
  };
  const ranks = await match(config.rankPatterns);
  const alphas = await match(config.alphaPatterns);
  refuseEmpty(config, header);
  const tensors = readAdapterTensors(config, header, method, { ranks, alphas });
  const whole = [...tensors.lowRank].filter(([, { experts }]) => experts === undefined);
  const untargeted = await untargetedModules(
    config,
    whole.map(([module]) => module),
    signal,
  );
  const ref = (stored: StoredTensor) => refs.get(stored)!;
  const refsOf = (map: ReadonlyMap<string, StoredTensor>) =>
    new Map([...map].map(([name, stored]) => [name, ref(stored)]));
  const update = ({ a, b, magnitude, bias, ...rest }: AdapterPair): AdapterUpdate => ({
    ...rest,
    a: ref(a),
    b: ref(b),
    ...(magnitude ? { magnitude: ref(magnitude) } : {}),
    ...(bias ? { bias: ref(bias) } : {}),
  });
  return {
    kind: 'adapter',
    path,
    folder,
    config: { ...config, unknown: config.unknown.filter((field) => !method?.fields.includes(field)) },
    updates: new Map([...tensors.lowRank].map(([module, pair]) => [module, update(pair)])),
    origins: refsOf(tensors.origins),
    replaces: refsOf(tensors.replaces),
    tokenRows: new Map(
      [...tensors.tokenRows].map(([module, stored]) => [
        module,
        { rows: ref(stored), tokens: tokensOf(config, module, stored) },
      ]),
    ),
    ...(method ? { method } : {}),
    modules: new Map(
      [...tensors.modules].map(([module, parts]) => [
        module,
        {
          parts: Object.fromEntries(refsOf(new Map(Object.entries(parts)))),
          rank: ranks.get(module) ?? config.rank,
          alpha: alphas.get(module) ?? config.alpha,
        },
      ]),
    ),
    ignored: tensors.ignored,
    untargeted,
    weightFile,
  };
}

/** Under DeepSpeed's ZeRO-3 every process holds a part of each weight: saved without gathering them, all are empty. */
function refuseEmpty({ fileName }: AdapterConfig, tensors: ReadonlyMap<string, StoredTensor>): void {
  const empty = [...tensors.values()].filter(({ shape }) => shape.includes(0));
  if (empty.length === 0) return;
  throw new AmalgamError(
    'AdapterInvalid',
    `The adapter of ${displayName(fileName)} has no values in ${empty.length} of its ${counted(tensors.size, 'tensor')}, such as “${displayName(empty[0]!.name)}”: it was saved under DeepSpeed ZeRO-3 while the weights were spread over the processes.`,
    'Save it again with its weights gathered (stage3_gather_16bit_weights_on_model_save, or zero_to_fp32.py on the checkpoint), or take an earlier checkpoint of it.',
  );
}

/** Kinds without tensors of their own form. */
const PLAIN_TYPES: readonly string[] = ['LORA', 'MLX', 'TRAINABLE_TOKENS', 'LN_TUNING'];

/** The kind of an adapter, or undefined for LoRA. @throws AmalgamError `AdapterUnsupported` for one nobody knows here */
async function methodOf({ type, fileName }: AdapterConfig): Promise<AdapterKind | undefined> {
  if (PLAIN_TYPES.includes(type)) return undefined;
  const { kindOf } = await import('./kinds');
  const kind = kindOf(type);
  if (kind) return kind;
  throw new AmalgamError(
    'AdapterUnsupported',
    `${displayName(fileName)} describes a ${displayName(type, 40)} adapter, a kind that is not known here.`,
    'Merge this adapter into its base with PEFT (merge_and_unload) and use the result as a full model.',
  );
}

/** Tokens of the trained rows of a module. @throws AmalgamError `AdapterInvalid` where the config does not name them */
function tokensOf(
  { trainedTokens, fileName }: AdapterConfig,
  module: string,
  rows: StoredTensor,
): readonly number[] {
  const tokens =
    trainedTokens instanceof Map
      ? [...trainedTokens].find(([end]) => `.${module}`.endsWith(`.${end}`))?.[1]
      : (trainedTokens as readonly number[] | undefined);
  if (tokens?.length === rows.shape[0]) return tokens;
  throw new AmalgamError(
    'AdapterInvalid',
    `${displayName(fileName)} names ${tokens?.length ?? 'no'} tokens for the ${rows.shape[0]} rows of ${displayName(module)}.`,
    'The adapter’s files do not belong together. Get it again from its author.',
  );
}

function noWeights(folder: ModelFolder, path: string): AmalgamError {
  if (findFile(folder, 'adapters.npz')) {
    return new AmalgamError(
      'NotSafetensors',
      `${path} has its weights as arrays of an early mlx_lm only: adapters.npz.`,
      'Save them again as adapters.safetensors with mlx (mx.load, mx.save_safetensors), or fuse the adapter with the mlx_lm it was trained with.',
    );
  }
  if (findFile(folder, 'adapter_model.bin')) {
    return new AmalgamError(
      'NotSafetensors',
      `${path} has its weights as a pickle only: adapter_model.bin.`,
      'Amalgam reads safetensors only, since a pickle can run code when it is opened. Load the adapter with PEFT and save it again (save_pretrained), or find a copy in safetensors.',
    );
  }
  return new AmalgamError(
    'NotFound',
    `${path} has a config of an adapter, but no ${ADAPTER_WEIGHTS}.`,
    'Get the adapter again from its author, with its weights.',
  );
}

/** Adds problems for keys of the weight file without effect, and for fields of the config that are unknown or not so. */
export function noteIgnored({ path, ignored, config, untargeted }: Adapter, problems: Problems): void {
  if ('unread' in untargeted) {
    problems.note(
      'AdapterTargetsUnread',
      `Which modules ${path} has factors for was not compared with its config: ${untargeted.unread}`,
    );
  } else if (untargeted.length > 0) {
    problems.warn(
      'AdapterTargetsDiffer',
      `${path} has factors for modules that its config does not name (${TARGET_FIELDS}): ${nameSome(untargeted)}. They are merged; PEFT leaves them out.`,
      'Its config and its weights may be of two trainings: get both from one place, or correct the config.',
    );
  }
  if (config.unknown.length > 0) {
    problems.warn(
      'AdapterFieldsUnknown',
      `The config of ${path} says ${nameSome(config.unknown)}, which is not known here and has no effect.`,
      'Make sure that it only concerns training; otherwise merge the adapter with PEFT and use the result.',
    );
  }
  if (ignored.length === 0) return;
  problems.note(
    'AdapterKeysUnused',
    `${counted(ignored.length, 'tensor')} of ${path} ${ignored.length === 1 ? 'changes' : 'change'} nothing, as in PEFT: ${nameSome(ignored)}.`,
  );
}

const TARGET_FIELDS = 'target_modules, exclude_modules, layers_to_transform';

/**
 * Modules with factors that PEFT would not give any (tuners_utils.py, check_target_module_exists): names are ends of paths, a
 * string is an expression for the whole path, of which layers are not asked.
 * @throws AmalgamError `Canceled`
 */
async function untargetedModules(
  { type, raw, fileName }: AdapterConfig,
  modules: readonly string[],
  signal?: AbortSignal,
): Promise<Adapter['untargeted']> {
  const targets = raw.get('target_modules');
  const layers = raw.get('layers_to_transform') ?? undefined;
  const listed = (Array.isArray(layers) ? layers : [layers])
    .filter(isJsonNumber)
    .map(({ text }) => Number(text));
  if (type !== 'LORA') return [];
  const chosenBy = async (value: JsonValue | undefined): Promise<(module: string) => boolean> => {
    if (typeof value === 'string' && value !== '') {
      const { matchModules } = await import('../foreign/foreign-text');
      const pattern = `\\A(?:${value})`;
      const matched = await matchModules([{ pattern, value: 1 }], [...modules], fileName, signal);
      return (module) => matched.has(module);
    }
    const ends = Array.isArray(value) ? value : [];
    return (module) => ends.some((end) => typeof end === 'string' && `.${module}`.endsWith(`.${end}`));
  };
  try {
    const names =
      targets === 'all-linear' || (Array.isArray(targets) && targets.length === 0) ? null : targets;
    const [isNamed, isExcluded] = [await chosenBy(names), await chosenBy(raw.get('exclude_modules'))];
    return modules.filter((module) => {
      const layer = splitLayer(`${module}.weight`)?.index;
      const isOther = listed.length > 0 && layer !== undefined && !listed.includes(layer);
      return isExcluded(module) || (names && !isNamed(module)) || (isOther && typeof names !== 'string');
    });
  } catch (thrown) {
    const { code, message } = errorReport(thrown);
    if (code !== 'AdapterUnsupported') throw thrown;
    return { unread: message };
  }
}
