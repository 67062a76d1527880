/** LoRAs of image models in memory, in the names of kohya's tools and of diffusers. */
import { normals } from '../src/backend/philox';
import { encodeFromF32 } from '../src/formats/half';
import { buildSafetensorsHeader, sortForFile } from '../src/formats/safetensors-write';
import { memoryFolder } from '../src/inputs/memory-models.test.support';

export type Values = Record<string, { shape: number[]; values: Float32Array }>;

/** A folder with one file of weights. */
export function loraFile(name: string, tensors: Values, dtype: 'F32' | 'F16' = 'F32', file = name) {
  return memoryFolder(name, { [`${file}.safetensors`]: fileBytes(tensors, dtype) });
}

/** A safetensors file. */
export function fileBytes(tensors: Values, dtype: 'F32' | 'F16' = 'F32'): Uint8Array<ArrayBuffer> {
  const sorted = sortForFile(
    Object.entries(tensors).map(([key, { shape }]) => ({ name: key, dtype, shape })),
  );
  const width = dtype === 'F32' ? 4 : 2;
  const listed = sorted.map((tensor) => ({
    ...tensor,
    byteLength: tensors[tensor.name]!.values.length * width,
  }));
  const header = buildSafetensorsHeader(listed, {});
  const parts = listed.map((tensor) => {
    const bytes = new Uint8Array(tensor.byteLength);
    encodeFromF32(tensors[tensor.name]!.values, dtype, bytes);
    return bytes;
  });
  return Uint8Array.from(Buffer.concat([header, ...parts]));
}

export const tensor = (seed: number, ...shape: number[]) => ({
  shape,
  values: Float32Array.from(
    normals(
      shape.reduce((a, b) => a * b, 1),
      [seed, 0],
    ),
  ),
});
export const scalar = (value: number) => ({ shape: [], values: Float32Array.of(value) });

/** scale · B · A in f64, of factors with kernels too. */
export function product(a: Values[string], b: Values[string], scale: number): Float64Array {
  const rank = a.shape[0]!;
  const inputs = a.values.length / rank;
  const outputs = b.values.length / rank;
  return Float64Array.from({ length: outputs * inputs }, (_, i) => {
    let sum = 0;
    for (let k = 0; k < rank; k++)
      sum += b.values[Math.floor(i / inputs) * rank + k]! * a.values[k * inputs + (i % inputs)]!;
    return scale * sum;
  });
}

export const ATTENTION = 'unet.down_blocks.1.attentions.0.proj_in';
export const CONV = 'unet.down_blocks.1.resnets.0.conv1';

/** A kohya LoRA with α, and one of diffusers without, of the same modules, each with another rank. */
export const kohya: Values = {
  'lora_unet_input_blocks_4_1_proj_in.lora_down.weight': tensor(1, 4, 12),
  'lora_unet_input_blocks_4_1_proj_in.lora_up.weight': tensor(2, 8, 4),
  'lora_unet_input_blocks_4_1_proj_in.alpha': scalar(2),
  'lora_unet_input_blocks_4_0_in_layers_2.lora_down.weight': tensor(3, 4, 6, 3, 3),
  'lora_unet_input_blocks_4_0_in_layers_2.lora_up.weight': tensor(4, 8, 4, 1, 1),
  'lora_unet_input_blocks_4_0_in_layers_2.alpha': scalar(1),
};
export const diffusers: Values = {
  [`${ATTENTION}.lora_A.weight`]: tensor(5, 2, 12),
  [`${ATTENTION}.lora_B.weight`]: tensor(6, 8, 2),
  [`${CONV}.lora_A.weight`]: tensor(7, 2, 6, 3, 3),
  [`${CONV}.lora_B.weight`]: tensor(8, 8, 2, 1, 1),
};
