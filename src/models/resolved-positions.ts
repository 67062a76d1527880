/** Per layer: which positions it uses (rotary base, scaling, none) and how far it sees. */
import { isJsonNumber } from '../formats/strict-json';
import type { Rope } from './architecture';
import {
  type ConfigFile,
  needNumber,
  needSize,
  readFlag,
  readLayerList,
  readNumber,
  readSize,
  readText,
  unsupported,
  valueAt,
  wrong,
} from './config-reader';
import type { RopeWiring, WindowWiring } from './wiring';

/**
 * For every layer the number of keys it sees, or undefined for all.
 * @param others types of layers that have no attention
 * @throws AmalgamError `ConfigInvalid`
 */
export function layerWindows(
  config: ConfigFile,
  wiring: WindowWiring | undefined,
  layers: number,
  hasRope: readonly boolean[],
  others?: (type: unknown) => boolean,
): (number | undefined)[] {
  const all = Array.from({ length: layers }, (_, i) => i);
  if (!wiring || !readFlag(config, wiring.enabled ?? true)) return all.map(() => undefined);
  // 0 in some files means that there is none
  const size = readNumber(config, wiring.size) === 0 ? undefined : readSize(config, wiring.size);
  if (size === undefined) return all.map(() => undefined);
  const rule = wiring.layers;
  if (rule === 'all') return all.map(() => size);
  const types = readLayerList(config, wiring.list ?? 'layer_types', layers);
  if (types) {
    return types.map((type) => {
      if (type === 'full_attention' || type === 'global') return undefined;
      if (type === 'sliding_attention' || type === 'local') return size;
      if (others?.(type)) return undefined;
      throw unsupported(`${config.fileName}: the layer type ${JSON.stringify(type)} is not known.`);
    });
  }
  return all.map((i) => (isLocal(config, rule.orElse, i, hasRope[i]!) ? size : undefined));
}

/** The rules by which the configuration classes derive `layer_types`. */
function isLocal(
  config: ConfigFile,
  rule: Exclude<WindowWiring['layers'], 'all'>['orElse'],
  layer: number,
  hasRope: boolean,
): boolean {
  if (rule === 'even') return layer % 2 === 0;
  if (rule === 'odd') return layer % 2 === 1;
  if (rule === 'without_rope') return !hasRope;
  if ('fromLayer' in rule) return layer >= needNumber(config, rule.fromLayer);
  if ('notMultiplesOf' in rule) return layer % needSize(config, rule.notMultiplesOf) !== 0;
  return (layer + 1) % needSize(config, rule.exceptEvery) !== 0;
}

/** Whether each layer rotates its queries and keys. @throws AmalgamError `ConfigInvalid` */
export function layersWithRope(config: ConfigFile, wiring: RopeWiring, layers: number): boolean[] {
  const { skip } = wiring;
  if (!skip) return Array.from({ length: layers }, () => true);
  const list = readLayerList(config, skip.list, layers);
  if (list) {
    return list.map((entry) => {
      const value = isJsonNumber(entry) ? entry.text : undefined;
      if (value !== '0' && value !== '1') throw wrong(config, skip.list, 'holds something else than 0 and 1');
      return value === '1';
    });
  }
  const interval = needSize(config, skip.interval);
  return Array.from({ length: layers }, (_, i) => (i + 1) % interval !== 0);
}

/**
 * The rotary embedding of local or of all other layers, from `rope_parameters` (transformers 5; per layer type or for
 * all) or from the older `rope_theta`, `rotary_emb_base`, `rope_scaling` and `rope_local_base_freq`.
 * @throws AmalgamError `ConfigInvalid`, `ArchitectureUnsupported` for scaling types other than linear, llama3, yarn and longrope
 */
export function resolveRope(config: ConfigFile, wiring: RopeWiring, headDim: number, local: boolean): Rope {
  const share = wiring.fraction ? needNumber(config, wiring.fraction) : 1;
  const dims = (wiring.dims && readSize(config, wiring.dims)) ?? Math.floor(headDim * share);
  if (dims < 2 || dims > headDim || dims % 2 !== 0) {
    throw wrong(config, wiring.fraction?.fields[0] ?? 'head_dim', `rotates ${dims} of ${headDim} dimensions`);
  }
  const pairs = wiring.pairs ? { pairs: wiring.pairs } : {};
  const parameters = valueAt(config, 'rope_parameters');
  const type = local ? 'sliding_attention' : 'full_attention';
  const perType = parameters instanceof Map && parameters.get(type) instanceof Map;
  if (wiring.local && local && !perType) {
    const theta = needTheta(config, needNumber(config, wiring.local));
    return { theta, dims, ...pairs, scaling: { type: 'default' } };
  }
  const path = perType ? `rope_parameters.${type}` : parameters ? 'rope_parameters' : 'rope_scaling';
  const theta = readNumber(config, {
    fields: [`${path}.rope_theta`, 'rope_theta', 'rotary_emb_base', 'global_rope_theta'],
    orElse: wiring.theta,
  });
  const given = needTheta(config, theta);
  return scaled(config, path, { theta: given, dims, ...pairs });
}

/** With its scaling; `dynamic` with an α (HunYuan) is another base, without one it follows the length and cannot be run. */
function scaled(config: ConfigFile, path: string, rope: Omit<Rope, 'scaling'>): Rope {
  const { theta, dims } = rope;
  const alpha = readNumber(config, { fields: [`${path}.alpha`] });
  const type = readText(config, `${path}.rope_type`) ?? readText(config, `${path}.type`);
  if (type === 'dynamic' && alpha) {
    return { ...rope, theta: theta * alpha ** (dims / (dims - 2)), scaling: { type: 'default' } };
  }
  return { ...rope, scaling: resolveScaling(config, path, dims) };
}

function needTheta(config: ConfigFile, theta: number | null | undefined): number {
  if (typeof theta === 'number' && theta > 0) return theta;
  throw wrong(config, 'rope_theta', 'is not a positive number');
}

function resolveScaling(config: ConfigFile, path: string, dims: number): Rope['scaling'] {
  const type = readText(config, `${path}.rope_type`) ?? readText(config, `${path}.type`) ?? 'default';
  const need = (key: string) => {
    const value = needNumber(config, { fields: [`${path}.${key}`] });
    if (value <= 0) throw wrong(config, `${path}.${key}`, 'is not positive');
    return value;
  };
  if (type === 'default') return { type };
  if (type === 'linear') return { type, factor: need('factor') };
  if (type === 'llama3') {
    const [factor, low, high] = [need('factor'), need('low_freq_factor'), need('high_freq_factor')];
    if (low >= high) throw wrong(config, `${path}.low_freq_factor`, 'is not below high_freq_factor');
    return { type, factor, low, high, original: need('original_max_position_embeddings') };
  }
  if (type === 'proportional') {
    const at = (key: string) => readNumber(config, { fields: [`${path}.${key}`] }) ?? 1;
    return { type, factor: at('factor'), turning: Math.floor((at('partial_rotary_factor') * dims) / 2) };
  }
  if (type === 'yarn') return resolveYarn(config, path, need);
  if (type === 'longrope' || type === 'su') return resolveLongrope(config, path, dims);
  throw unsupported(`${config.fileName}: rotary positions scaled by “${type}” are not known.`);
}

const MAX_POSITIONS = 'max_position_embeddings';

/** yarn_get_mscale of transformers (modeling_deepseek_v3.py). */
function yarnSize(factor: number, weight: number): number {
  return factor <= 1 ? 1 : 0.1 * weight * Math.log(factor) + 1;
}

/**
 * By what DeepSeek multiplies the scores of scaled positions besides what cos and sin carry: (0.1 · mscale_all_dim · ln factor + 1)²
 * (yarn_apply_mscale of transformers, modeling_deepseek_v2.py since 5.17, and of DeepSeek's own modeling_deepseek.py; 0 and a
 * missing mscale_all_dim stand for none).
 * @throws AmalgamError `ConfigInvalid` where there is no factor
 */
export function yarnScoreFactor(config: ConfigFile): number {
  const path = valueAt(config, 'rope_parameters') ? 'rope_parameters' : 'rope_scaling';
  const type = readText(config, `${path}.rope_type`) ?? readText(config, `${path}.type`) ?? 'default';
  const weight = readNumber(config, { fields: [`${path}.mscale_all_dim`] });
  if (type === 'default' || !weight) return 1;
  return yarnSize(needNumber(config, { fields: [`${path}.factor`] }), weight) ** 2;
}

/**
 * `factor` where it is given, else the ratio of all positions to the original ones. (Between 4.47 and 4.57 transformers
 * took the ratio even where a factor stood beside it; its authors undid that.)
 */
function resolveYarn(config: ConfigFile, path: string, need: (key: string) => number): Rope['scaling'] {
  const at = (key: string) => readNumber(config, { fields: [`${path}.${key}`] }) ?? undefined;
  const original = at('original_max_position_embeddings') ?? needNumber(config, { fields: [MAX_POSITIONS] });
  const factor =
    at('factor') === undefined ? needNumber(config, { fields: [MAX_POSITIONS] }) / original : need('factor');
  const size = (weight: number) => yarnSize(factor, weight);
  const [mscale, all] = [at('mscale'), at('mscale_all_dim')];
  const [fast, slow] = [at('beta_fast') || 32, at('beta_slow') || 1];
  if (!(original > 0 && factor > 0 && fast > slow && slow > 0)) {
    throw wrong(config, path, 'holds numbers that yarn cannot scale by');
  }
  return {
    type: 'yarn',
    factor,
    original,
    fast,
    slow,
    truncate: readFlag(config, { field: `${path}.truncate`, orElse: true }),
    attention: at('attention_factor') ?? (mscale && all ? size(mscale) / size(all) : size(1)),
  };
}

function resolveLongrope(config: ConfigFile, path: string, dims: number): Rope['scaling'] {
  const at = (field: string) => readNumber(config, { fields: [field] }) ?? undefined;
  const list = (key: string) => {
    const values = valueAt(config, `${path}.${key}`);
    const numbers = Array.isArray(values) ? values.map((v) => (isJsonNumber(v) ? Number(v.text) : 0)) : [];
    if (numbers.length === dims / 2 && numbers.every((n) => n > 0)) return numbers;
    throw wrong(config, `${path}.${key}`, `is not a list of ${dims / 2} positive numbers`);
  };
  const most = needNumber(config, { fields: [MAX_POSITIONS] });
  const field = 'original_max_position_embeddings';
  const original = at(`${path}.${field}`) ?? at(field) ?? most;
  const stated = at(field) === undefined ? at(`${path}.factor`) : undefined;
  const factor = stated ?? most / original;
  if (!(original > 1 && factor > 0)) throw wrong(config, path, 'holds numbers that longrope cannot scale by');
  const size = factor <= 1 ? 1 : Math.sqrt(1 + Math.log(factor) / Math.log(original));
  const common = at(`${path}.attention_factor`) ?? size;
  return {
    type: 'longrope',
    short: list('short_factor'),
    long: list('long_factor'),
    original,
    // modeling_phimoe.py (PhimoeRotaryEmbedding): a factor given for a list counts in place of the common one
    attention: {
      short: at(`${path}.short_mscale`) ?? common,
      long: at(`${path}.long_mscale`) ?? common,
    },
  };
}
