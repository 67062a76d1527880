/** The goldens `forward`, parsed. */

import { goldenFolder } from '../../e2e/goldens';
import type { WeightDtype } from '../formats/dtype';
import { decodeToF32 } from '../formats/half';
import { type ModelConfig, parseModelConfig } from '../formats/model-config';
import { headerLength, parseSafetensorsHeader } from '../formats/safetensors-header';
import type { Architecture } from '../models/architecture';
import { claimTensors } from '../models/claim';
import type { Weights } from './oracle';

export const GOLDEN_FOLDER = goldenFolder('forward');

export const GOLDEN_NAMES = [
  'bloom',
  'gemma',
  'gemma2',
  'gemma3',
  'gemma3_linear',
  'gpt2',
  'gpt2_inv_layer',
  'gpt_neox',
  'gpt_neox_seq',
  'granite',
  'llama',
  'llama_rope3_tied',
  'mistral',
  'olmo2',
  'opt',
  'opt_postnorm_proj',
  'phi3',
  'qwen2',
  'qwen3',
  'smollm3',
  'stablelm',
] as const;
/** Models without rotary positions have one config layout only. */
export const HAS_LEGACY = (name: string) => !/^(?:bloom|gpt2|opt)/.test(name);

export type ReadFile = (path: string) => Promise<Uint8Array<ArrayBuffer>>;

export interface FileTensor {
  dtype: string;
  shape: number[];
  bytes: Uint8Array<ArrayBuffer>;
}

/** Expected values and tolerances in golden.json. */
export interface GoldenInfo {
  mean_nll: number;
  perplexity: number;
  gram_alias: Record<string, string>;
  tolerances: {
    logits: Limits;
    resid: Limits;
    nll_max_abs: number;
    mean_nll_abs: number;
    perplexity_rel: number;
    gram: { max_abs_over_max_diag: number };
    f64_oracle: { logits_f64_max_abs: number };
  };
  sensitivity_rel_rms_of_logits: Record<string, number>;
}
interface Limits {
  rel_rms: number;
  max_abs_over_rms: number;
}

export interface Golden {
  name: string;
  config: ModelConfig;
  legacyConfig?: ModelConfig;
  weights: Map<string, FileTensor>;
  golden: Map<string, FileTensor>;
  info: GoldenInfo;
  ids: number[];
}

export async function loadGolden(name: string, read: ReadFile): Promise<Golden> {
  const file = (path: string) => read(`${GOLDEN_FOLDER}/${name}/${path}`);
  const text = async (path: string) => new TextDecoder().decode(await file(path));
  const golden = readTensors(await file('golden.safetensors'));
  return {
    name,
    config: parseModelConfig(await text('config.json'), 'config.json'),
    ...(HAS_LEGACY(name) && {
      legacyConfig: parseModelConfig(await text('config.legacy.json'), 'config.legacy.json'),
    }),
    weights: readTensors(await file('model.safetensors')),
    golden,
    info: JSON.parse(await text('golden.json')) as GoldenInfo,
    ids: [...new Int32Array(golden.get('input_ids')!.bytes.buffer)],
  };
}

/** Every tensor of a safetensors file, its bytes copied out. */
export function readTensors(bytes: Uint8Array<ArrayBuffer>): Map<string, FileTensor> {
  const length = headerLength(bytes.subarray(0, 8), bytes.length);
  const { tensors } = parseSafetensorsHeader(bytes.subarray(8, 8 + length), bytes.length, 'fixture');
  return new Map(
    [...tensors.values()].map((t) => [
      t.name,
      { dtype: t.dtype, shape: t.shape, bytes: bytes.slice(t.begin, t.end) },
    ]),
  );
}

/** The values of a tensor as f64. */
export function values({ dtype, bytes }: FileTensor): Float64Array<ArrayBuffer> {
  if (dtype === 'F64') return new Float64Array(bytes.buffer);
  const out = new Float32Array(bytes.length / (dtype === 'F32' ? 4 : 2));
  decodeToF32(bytes, dtype as WeightDtype, out);
  return Float64Array.from(out);
}

/** The weights by the architecture's names; throws what `claimTensors` throws. */
export function goldenWeights(architecture: Architecture, weights: ReadonlyMap<string, FileTensor>): Weights {
  const claimed = claimTensors(architecture, weights);
  const cache = new Map<string, Float64Array<ArrayBuffer>>();
  return (name) => {
    let found = cache.get(name);
    if (!found) {
      found = values(weights.get(claimed.get(name)!)!);
      cache.set(name, found);
    }
    return found;
  };
}

/** rms(a − b) / rms(b) and max |a − b| / rms(b). */
export function deviation(
  a: ArrayLike<number>,
  b: ArrayLike<number>,
): { relRms: number; maxOverRms: number } {
  let square = 0;
  let reference = 0;
  let max = 0;
  for (let i = 0; i < b.length; i++) {
    const d = a[i]! - b[i]!;
    square += d * d;
    reference += b[i]! ** 2;
    // not Math.max: it must not swallow a NaN
    if (!(Math.abs(d) <= max)) max = Math.abs(d);
  }
  const rms = Math.sqrt(reference / b.length);
  return { relRms: Math.sqrt(square / b.length) / rms, maxOverRms: max / rms };
}
