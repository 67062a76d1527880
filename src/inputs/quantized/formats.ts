/** The formats of weights in eight bits and fewer that are read as the weights they stand for, and the weights in them. */
import type { ModelConfig } from '../../formats/model-config';
import type { JsonObject } from '../../formats/strict-json';
import type { Dequantized } from '../dequantization';
import type { TensorRef } from '../tensor-view';
import { eightBits, fourBitStates, fourBits } from './bitsandbytes';
import { foundTensor, type QuantizedFormat } from './format';
import { fp8 } from './fp8';
import { gguf } from './gguf';
import { awq, gptq } from './gptq';
import { mxfp4 } from './mxfp4';
import { integers, mlx, packed } from './rows';

export const formats: Readonly<Record<string, QuantizedFormat>> = {
  ...{ fp8, mxfp4, fourBits, eightBits, gptq, awq, packed, integers, mlx, gguf },
};

/** Scales and zero points of what is computed between the weights: they go with the eight bits. */
const ACTIVATION_SCALE =
  /\.(?:input_scale|activation_scale|output_scale|[qkv]_scale|input_global_scale|(?:input|output)_zero_point)$/;

/**
 * The tensors of a checkpoint by name, quantized ones as derived ones, without their scales.
 * @param read all bytes of a small tensor
 * @throws what reading throws
 */
export async function dequantize(
  stored: ReadonlyMap<string, TensorRef>,
  config: ModelConfig | undefined,
  read: (ref: TensorRef) => Promise<Uint8Array>,
): Promise<Dequantized> {
  const found = new Set<string>();
  const unscaled: string[] = [];
  const tensors = new Map<string, TensorRef>();
  const parts = new Set<string>();
  const nameOf = new Map([...stored].map(([name, ref]) => [ref, name]));
  const checkpoint = {
    tensors: stored,
    settings: settingsOf(config),
    states: await fourBitStates(stored, read),
  };
  for (const [name, ref] of stored) {
    const all = Object.entries(formats).map(
      ([id, format]) => [id, format.find(name, ref, checkpoint)] as const,
    );
    const [id, weight] = all.find(([, one]) => one !== undefined) ?? [];
    if (!weight || weight === 'unscaled') {
      tensors.set(name, ref);
      if (weight) unscaled.push(name);
      continue;
    }
    found.add(weight.format);
    tensors.set(weight.name, foundTensor(id!, formats[id!]!, weight));
    for (const part of weight.from) if (part !== ref) parts.add(nameOf.get(part)!);
    for (const part of weight.beside ?? []) parts.add(part);
  }
  for (const name of parts) tensors.delete(name);
  if (found.size > 0) {
    for (const name of [...tensors.keys()]) if (ACTIVATION_SCALE.test(name)) tensors.delete(name);
  }
  return { tensors, formats: found, unscaled };
}

/** What the config says of quantization: MLX has a key of its own. */
function settingsOf(config: ModelConfig | undefined): JsonObject {
  const said = [config?.raw.get('quantization_config'), config?.raw.get('quantization')];
  return said.find((one) => one instanceof Map) ?? new Map();
}
