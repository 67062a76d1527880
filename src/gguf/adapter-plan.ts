/**
 * What a GGUF file of a LoRA will hold, for llama.cpp's `--lora` (v0.5.0: src/llama-adapter.cpp): factors under the name of the
 * tensor that they change, rows of B in the order in which the model's file has them.
 */
import { type WeightDtype, weightBytes } from '../formats/dtype';
import { ADAPTER_GGUF_TYPES, type GgufType } from '../formats/gguf-type';
import { parseModelConfig } from '../formats/model-config';
import { familyOf, tensorKey } from '../models/families';
import { GGUF_ARCHITECTURES, type GgufArchitecture } from '../models/gguf-architectures';
import { resolveArchitecture } from '../models/resolution';
import { BLOCK_TYPES, type BlockType, FILE_TYPES, rowBytes } from './block-types';
import { type GgufPlan, type GgufTensorPlan, ggufBeginning } from './gguf-plan';
import { aligned, type GgufMetadata } from './header';
import { refused, requireExpressible } from './hyperparameters';
import { heldBytes } from './row-arranger';
import { type GgufTensor, ggufTensors, type Layout } from './tensors';

/** The factors of one module, as the output has them: ΔW = B · A. */
export interface AdapterModule {
  /** Path of the module in the base. */
  module: string;
  kind: 'linear' | 'embedding';
  rank: number;
  /** Of an embedding `a` is [rank, vocabulary] and `b` [width, rank]. */
  a: FactorTensor;
  b: FactorTensor;
}

export interface FactorTensor {
  name: string;
  shape: readonly number[];
  dtype: WeightDtype;
}

export interface GgufAdapterRequest {
  type: GgufType;
  name: string;
  /** The config.json of the base. */
  config: string;
  modules: readonly AdapterModule[];
}

/**
 * Plans the file of an adapter.
 * @throws AmalgamError `GgufUnsupported` naming what cannot be written, and what parsing the config throws
 */
export function planGgufAdapter({ type, name, config: text, modules }: GgufAdapterRequest): GgufPlan {
  if (!ADAPTER_GGUF_TYPES.includes(type)) {
    throw refused(`A LoRA is not written as ${type}, only as ${ADAPTER_GGUF_TYPES.join(', ')}.`);
  }
  const config = parseModelConfig(text, 'config.json');
  const gguf = GGUF_ARCHITECTURES[config.modelType ?? ''];
  if (!gguf)
    throw refused(`LoRAs for models of type “${config.modelType ?? 'unknown'}” cannot be written as GGUF.`);
  const architecture = resolveArchitecture(config);
  requireExpressible(architecture, gguf);
  const family = familyOf(architecture.modelType);
  const places = new Map(
    ggufTensors(architecture, gguf).map((tensor) => [tensorKey(tensor.source, family), tensor]),
  );
  const factors = modules.flatMap((module) => {
    const place = places.get(tensorKey(`${module.module}.weight`, family));
    return factorPlans(module, requirePlace(module, place, architecture.final.tied, gguf), type);
  });
  const ranks = new Set(modules.map(({ rank }) => rank));
  const metadata: GgufMetadata = new Map([
    ['general.architecture', { type: 'text', value: gguf.name }],
    ['general.type', { type: 'text', value: 'adapter' }],
    ['adapter.type', { type: 'text', value: 'lora' }],
    // factors act unscaled: α is the rank, or 0, which says the same where there are several
    ['adapter.lora.alpha', { type: 'f32', value: ranks.size === 1 ? [...ranks][0]! : 0 }],
    ['general.name', { type: 'text', value: name }],
    ['general.file_type', { type: 'u32', value: FILE_TYPES[type].id }],
    ['general.quantization_version', { type: 'u32', value: 2 }],
  ]);
  const plan = {
    ...{ type, metadata, factors: [], tensors: new Map(factors), isStacked: false },
    peakBytes: factors.reduce((most, [, tensor]) => Math.max(most, heldBytes(tensor)), 0),
  };
  const warnings: GgufPlan['warnings'] = [];
  const bytes = factors.reduce((sum, [, { byteLength }]) => sum + aligned(byteLength), 0);
  return {
    ...plan,
    warnings,
    byteLength: ggufBeginning(plan, [], [...plan.tensors.keys()]).byteLength + bytes,
  };
}

/** The tensor of the model's file that a module is, of the right size. @throws AmalgamError `GgufUnsupported` */
function requirePlace(
  { module, kind, a, b }: AdapterModule,
  place: GgufTensor | undefined,
  isTied: boolean,
  gguf: GgufArchitecture,
): GgufTensor {
  if (place?.shape.length !== 2 || place.stack) {
    throw refused(`llama.cpp’s ${gguf.name} has no matrix of its own for ${module}, which the LoRA changes.`);
  }
  if (kind === 'embedding' && isTied) {
    throw refused(
      `llama.cpp cannot apply factors to ${module}: the head is tied to it, and they would act there too.`,
    );
  }
  const [rows, columns] = kind === 'embedding' ? [a.shape[1], b.shape[0]] : [b.shape[0], a.shape[1]];
  if (rows === place.shape[0] && columns === place.shape[1]) return place;
  throw refused(
    `The factors of ${module} are for a matrix of [${rows}, ${columns}], and the base has [${place.shape.join(', ')}].`,
  );
}

/** A as it is, rows of B where the rows of the weight are; of an embedding llama.cpp looks rows of A up by the token. */
function factorPlans(
  { kind, rank, a, b }: AdapterModule,
  { name, layout }: GgufTensor,
  type: GgufType,
): [string, GgufTensorPlan][] {
  const isLookup = kind === 'embedding';
  const inputs = a.shape[1]!;
  // a weight stored as [in, out] has factors in the usual order
  const rows: Layout = layout.kind === 'rows' ? layout : { kind: 'as_stored' };
  return [
    factorPlan(
      `${name}.lora_a`,
      a,
      isLookup ? [inputs, rank] : [rank, inputs],
      { kind: isLookup ? 'transposed' : 'as_stored' },
      type,
    ),
    factorPlan(`${name}.lora_b`, b, b.shape, rows, type),
  ];
}

function factorPlan(
  name: string,
  { name: source, dtype }: FactorTensor,
  shape: readonly number[],
  layout: Layout,
  wanted: GgufType,
): [string, GgufTensorPlan] {
  const [rows, columns] = [shape[0]!, shape[1]!];
  const { blocks } = FILE_TYPES[wanted];
  const type: BlockType = columns % BLOCK_TYPES[blocks].elements === 0 ? blocks : 'F16';
  const byteLength = rows * rowBytes(type, columns);
  const elementBytes = weightBytes(dtype);
  return [
    source,
    { ...{ name, shape, type, dtype, layout, plus: 0 }, rows, columns, elementBytes, byteLength },
  ];
}
