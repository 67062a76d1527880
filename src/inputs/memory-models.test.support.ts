/** Small models in memory, for tests of opening and planning. */
import { DTYPE_BITS, type Dtype } from '../formats/dtype';
import type { Recipe } from '../formats/recipe';
import { buildSafetensorsHeader } from '../formats/safetensors-write';
import { bufferSource } from '../sources/byte-source';
import type { ModelFolder, ModelOrigin } from '../sources/model-folder';
import { type OpenModel, openModel } from './opened-model';

/** Name → dtype and shape. */
export type Shapes = Record<string, [Dtype, number[]]>;

/** A safetensors file whose data are all `fill`. */
export function safetensors(shapes: Shapes, fill = 0): Uint8Array<ArrayBuffer> {
  const tensors = Object.entries(shapes).map(([name, [dtype, shape]]) => ({
    name,
    dtype,
    shape,
    byteLength: shape.reduce((n, extent) => n * extent, DTYPE_BITS[dtype] / 8),
  }));
  const header = buildSafetensorsHeader(tensors, {});
  const file = new Uint8Array(tensors.reduce((n, t) => n + t.byteLength, header.length)).fill(fill);
  file.set(header);
  return file;
}

/** A folder over buffers; texts and objects become files of their text. */
export function memoryFolder(
  path: string,
  files: Record<string, Uint8Array<ArrayBuffer> | string | object>,
  origin: ModelOrigin = { kind: 'local' },
): ModelFolder {
  const bytesOf = (content: Uint8Array<ArrayBuffer> | string | object): Uint8Array<ArrayBuffer> => {
    if (content instanceof Uint8Array) return content as Uint8Array<ArrayBuffer>;
    return new TextEncoder().encode(typeof content === 'string' ? content : JSON.stringify(content));
  };
  return {
    path,
    origin,
    files: Object.entries(files).map(([name, content]) => {
      const bytes = bytesOf(content);
      return { path: name, byteLength: bytes.length, open: () => bufferSource(bytes, name) };
    }),
  };
}

export interface TinyOptions {
  layers?: number;
  hidden?: number;
  vocabulary?: number;
  dtype?: Dtype;
  /** A head of its own. */
  head?: boolean;
  /** All the tensors of a Llama with two attention heads, and a config that can be run. */
  whole?: boolean;
  /** Config members over the usual ones; `undefined` removes one. */
  config?: Record<string, unknown>;
  /** Tensors over the usual ones; `undefined` removes one. */
  tensors?: Record<string, [Dtype, number[]] | undefined>;
  /** More files. */
  files?: Record<string, Uint8Array<ArrayBuffer> | string | object>;
}

/** Shapes of a Llama of two projections a layer, or of all of them. */
export function tinyShapes(options: TinyOptions = {}): Shapes {
  const { layers = 2, hidden = 4, vocabulary = 8, dtype = 'F32', head = false, whole = false } = options;
  const shapes: Shapes = { 'model.embed_tokens.weight': [dtype, [vocabulary, hidden]] };
  for (let i = 0; i < layers; i++) {
    shapes[`model.layers.${i}.self_attn.q_proj.weight`] = [dtype, [hidden, hidden]];
    shapes[`model.layers.${i}.mlp.up_proj.weight`] = [dtype, [2 * hidden, hidden]];
    shapes[`model.layers.${i}.input_layernorm.weight`] = [dtype, [hidden]];
    if (!whole) continue;
    for (const side of ['k', 'v', 'o']) {
      shapes[`model.layers.${i}.self_attn.${side}_proj.weight`] = [dtype, [hidden, hidden]];
    }
    shapes[`model.layers.${i}.mlp.gate_proj.weight`] = [dtype, [2 * hidden, hidden]];
    shapes[`model.layers.${i}.mlp.down_proj.weight`] = [dtype, [hidden, 2 * hidden]];
    shapes[`model.layers.${i}.post_attention_layernorm.weight`] = [dtype, [hidden]];
  }
  shapes['model.norm.weight'] = [dtype, [hidden]];
  if (head) shapes['lm_head.weight'] = [dtype, [vocabulary, hidden]];
  for (const [name, shape] of Object.entries(options.tensors ?? {})) {
    if (shape) shapes[name] = shape;
    else delete shapes[name];
  }
  return shapes;
}

/** A folder with a tiny Llama: 2 layers, hidden size 4, vocabulary 8, F32, tied, unless the options differ. */
export function tinyModel(path: string, options: TinyOptions = {}): ModelFolder {
  const { layers = 2, hidden = 4, vocabulary = 8, head = false } = options;
  const config = {
    model_type: 'llama',
    architectures: ['LlamaForCausalLM'],
    hidden_size: hidden,
    num_hidden_layers: layers,
    vocab_size: vocabulary,
    tie_word_embeddings: !head,
    torch_dtype: 'float32',
    ...(options.whole && { num_attention_heads: 2, intermediate_size: 2 * hidden, rms_norm_eps: 1e-6 }),
    ...options.config,
  };
  return memoryFolder(path, {
    'config.json': config,
    'model.safetensors': safetensors(tinyShapes(options)),
    'tokenizer.json': '{"model":{"vocab":{}}}',
    ...options.files,
  });
}

/** A folder with a LoRA of rank 2, alpha 4. */
export function tinyAdapter(path: string, shapes: Shapes, config: Record<string, unknown> = {}): ModelFolder {
  return memoryFolder(path, {
    'adapter_config.json': { peft_type: 'LORA', r: 2, lora_alpha: 4, target_modules: [], ...config },
    'adapter_model.safetensors': safetensors(shapes),
  });
}

/** Both factors of a module, `base_model.model.<module>.lora_A.weight` [2, inputs] and its B [outputs, 2]. */
export function factors(module: string, inputs: number, outputs: number): Shapes {
  return {
    [`base_model.model.${module}.lora_A.weight`]: ['F32', [2, inputs]],
    [`base_model.model.${module}.lora_B.weight`]: ['F32', [outputs, 2]],
  };
}

/** Opens the folders given, each once, by their paths. */
export function openerOf(...folders: ModelFolder[]): (path: string) => Promise<OpenModel> {
  const opened = new Map<string, Promise<OpenModel>>();
  return (path) => {
    const folder = folders.find((f) => f.path === path);
    if (!folder) throw new Error(`no folder ${path}`);
    const model = opened.get(path) ?? openModel(folder);
    opened.set(path, model);
    return model;
  };
}

/** A recipe of task arithmetic: models with weight 1 on `base`. */
export function recipeOf(models: string[], changes: Partial<Recipe> = {}): Recipe {
  return {
    mergeMethod: 'task_arithmetic',
    baseModel: 'base',
    models: models.map((model) => ({ model, parameters: { weight: 1 } })),
    parameters: {},
    amalgam: {},
    ...changes,
  };
}
