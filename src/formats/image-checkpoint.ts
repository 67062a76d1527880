/**
 * Tensors of checkpoints of image and video models, by the modules that LoRAs name (image-lora.ts). What one tool stores as one
 * matrix is several for another (Flux and Z-Image: qkv; OpenCLIP: in_proj), so both sides are read into units: the least parts
 * that any of them has, called as diffusers calls them. Facts from diffusers (scripts/convert_*_to_diffusers.py,
 * loaders/single_file_utils.py) and ComfyUI (comfy/utils.py: flux_to_diffusers, z_image_to_diffusers).
 */
import { imageModelPath } from './image-lora';

/** Rows of a matrix that are a unit. */
export interface UnitRows {
  unit: string;
  begin: number;
  rows: number;
}

/** A tensor of the checkpoint, or rows of it. */
export interface ImageTarget extends UnitRows {
  tensor: string;
}

/** Tensors that only image and video models have. */
const IMAGE_TENSOR = [
  /^(?:model\.)?diffusion_model\./,
  /^(?:double_blocks|single_blocks|joint_blocks|transformer_blocks|single_transformer_blocks)\.\d+\./,
  /^(?:down_blocks|up_blocks|input_blocks|output_blocks)\.\d+\./,
  /^(?:noise_refiner|context_refiner)\.\d+\./,
  /^blocks\.\d+\.(?:self_attn|cross_attn|attn1|attn2)\./,
];

/** Whether tensors of these names are a model of images or video. */
export function isImageModel(names: Iterable<string>): boolean {
  for (const name of names) if (IMAGE_TENSOR.some((begin) => begin.test(name))) return true;
  return false;
}

/** What the parts of a model are called in one file, and in folders of diffusers; undefined: the one that draws. */
const PARTS: readonly [begin: string, part: string | undefined][] = [
  ['model.diffusion_model.', undefined],
  ['diffusion_model.', undefined],
  ['unet.', undefined],
  ['transformer.', undefined],
  ['cond_stage_model.transformer.', 'text_encoder'],
  ['cond_stage_model.model.', 'text_encoder'],
  ['conditioner.embedders.0.transformer.', 'text_encoder'],
  ['conditioner.embedders.0.model.', 'text_encoder_2'],
  ['conditioner.embedders.1.model.', 'text_encoder_2'],
  ['text_encoders.clip_l.transformer.', 'text_encoder'],
  ['text_encoders.clip_g.transformer.', 'text_encoder_2'],
  ['text_encoders.t5xxl.transformer.', 'text_encoder_2'],
  ...['text_encoder', 'text_encoder_2', 'text_encoder_3', 'transformer_2', 'vae', 'first_stage_model'].map(
    (part): [string, string] => [`${part}.`, part],
  ),
];

/** The path of a tensor, or of the module that it is the weight of, and what the file calls it within its part. */
function pathOf(name: string): { path: string; below: string } {
  const module = name.replace(/\.weight$/, '');
  const [begin, part] = PARTS.find(([start]) => name.startsWith(start)) ?? ['', undefined];
  const below = module.slice(begin.length);
  return { below, path: part === undefined ? imageModelPath(below) : `${part}.${below}` };
}

/** The path of a tensor of a checkpoint, or of the module that it is the weight of. */
export const imageTensorPath = (name: string) => pathOf(name).path;

/** How the rows of a module are shared out over its units: alike, or the last takes what others as tall as wide leave. */
type Sharing = 'alike' | 'last takes the rest';

/** Modules that are called otherwise elsewhere, or are several units. */
const UNITS: readonly [module: RegExp, units: readonly string[], sharing?: Sharing][] = [
  // Flux
  ...unitsOfStream('img', { attn: ['to_q', 'to_k', 'to_v'], out: 'to_out.0', ff: 'ff', norm: 'norm1' }),
  ...unitsOfStream('txt', {
    attn: ['add_q_proj', 'add_k_proj', 'add_v_proj'],
    out: 'to_add_out',
    ff: 'ff_context',
    norm: 'norm1_context',
  }),
  [
    /^transformer\.single_blocks\.(\d+)\.linear1$/,
    ['attn.to_q', 'attn.to_k', 'attn.to_v', 'proj_mlp'].map(
      (end) => `transformer.single_transformer_blocks.$1.${end}`,
    ),
    'last takes the rest',
  ],
  [/^transformer\.single_blocks\.(\d+)\.linear2$/, ['transformer.single_transformer_blocks.$1.proj_out']],
  [
    /^transformer\.single_blocks\.(\d+)\.modulation\.lin$/,
    ['transformer.single_transformer_blocks.$1.norm.linear'],
  ],
  [/^transformer\.img_in$/, ['transformer.x_embedder']],
  [/^transformer\.txt_in$/, ['transformer.context_embedder']],
  ...['time_in', 'vector_in', 'guidance_in'].flatMap((from, i): [RegExp, string[]][] => {
    const to = `transformer.time_text_embed.${['timestep', 'text', 'guidance'][i]}_embedder`;
    return [
      [new RegExp(`^transformer\\.${from}\\.in_layer$`), [`${to}.linear_1`]],
      [new RegExp(`^transformer\\.${from}\\.out_layer$`), [`${to}.linear_2`]],
    ];
  }),
  // Flux has shift and scale where diffusers has scale and shift
  [/^transformer\.final_layer\.adaLN_modulation\.1$/, ['shift', 'scale'].map((half) => `final.${half}`)],
  [/^transformer\.norm_out\.linear$/, ['scale', 'shift'].map((half) => `final.${half}`)],
  [
    /^transformer\.all_final_layer\.2-1\.adaLN_modulation\.1$/,
    ['shift', 'scale'].map((half) => `final.${half}`),
  ],
  // the last layer of Flux, Z-Image and Wan
  [
    /^transformer\.(?:final_layer\.linear|all_final_layer\.2-1\.linear|head\.head)$/,
    ['transformer.proj_out'],
  ],
  // Z-Image
  [/^transformer\.all_x_embedder\.2-1$/, ['transformer.x_embedder']],
  [
    /^transformer\.((?:layers|noise_refiner|context_refiner)\.\d+)\.attention\.qkv$/,
    ['to_q', 'to_k', 'to_v'].map((end) => `transformer.$1.attention.${end}`),
  ],
  [
    /^transformer\.((?:layers|noise_refiner|context_refiner)\.\d+)\.attention\.out$/,
    ['transformer.$1.attention.to_out.0'],
  ],
  // Wan
  ...(['self_attn', 'cross_attn'] as const).flatMap((from, i): [RegExp, string[]][] => {
    const to = `transformer.blocks.$1.attn${i + 1}`;
    const begin = `^transformer\\.blocks\\.(\\d+)\\.${from}`;
    return [
      [new RegExp(`${begin}\\.([qkv])$`), [`${to}.to_$2`]],
      [new RegExp(`${begin}\\.o$`), [`${to}.to_out.0`]],
      [new RegExp(`${begin}\\.([kv])_img$`), [`${to}.add_$2_proj`]],
    ];
  }),
  [/^transformer\.blocks\.(\d+)\.ffn\.0$/, ['transformer.blocks.$1.ffn.net.0.proj']],
  [/^transformer\.blocks\.(\d+)\.ffn\.2$/, ['transformer.blocks.$1.ffn.net.2']],
  ...['text', 'time'].flatMap((which): [RegExp, string[]][] => {
    const to = `transformer.condition_embedder.${which}_embedder`;
    return [
      [new RegExp(`^transformer\\.${which}_embedding\\.0$`), [`${to}.linear_1`]],
      [new RegExp(`^transformer\\.${which}_embedding\\.2$`), [`${to}.linear_2`]],
    ];
  }),
  [/^transformer\.time_projection\.1$/, ['transformer.condition_embedder.time_proj']],
  [/^transformer\.img_emb\.proj\.1$/, ['transformer.condition_embedder.image_embedder.ff.net.0.proj']],
  [/^transformer\.img_emb\.proj\.3$/, ['transformer.condition_embedder.image_embedder.ff.net.2']],
  // OpenCLIP, the second text encoder of SDXL
  [
    /^(text_encoder(?:_2)?)\.transformer\.resblocks\.(\d+)\.attn\.in_proj_weight$/,
    ['q_proj', 'k_proj', 'v_proj'].map((end) => `$1.text_model.encoder.layers.$2.self_attn.${end}`),
  ],
  [
    /^(text_encoder(?:_2)?)\.transformer\.resblocks\.(\d+)\.attn\.out_proj$/,
    ['$1.text_model.encoder.layers.$2.self_attn.out_proj'],
  ],
  [
    /^(text_encoder(?:_2)?)\.transformer\.resblocks\.(\d+)\.mlp\.c_fc$/,
    ['$1.text_model.encoder.layers.$2.mlp.fc1'],
  ],
  [
    /^(text_encoder(?:_2)?)\.transformer\.resblocks\.(\d+)\.mlp\.c_proj$/,
    ['$1.text_model.encoder.layers.$2.mlp.fc2'],
  ],
  // T5 is the second text encoder of Flux, and the third in the names of kohya's trainer
  [/^text_encoder(?:_\d)?\.(encoder\.block\..+)$/, ['t5.$1']],
];

function unitsOfStream(
  stream: 'img' | 'txt',
  names: { attn: readonly string[]; out: string; ff: string; norm: string },
): [RegExp, string[]][] {
  const to = 'transformer.transformer_blocks.$1';
  const rows: [string, string[]][] = [
    [`${stream}_attn\\.qkv`, names.attn.map((end) => `${to}.attn.${end}`)],
    [`${stream}_attn\\.proj`, [`${to}.attn.${names.out}`]],
    [`${stream}_mlp\\.0`, [`${to}.${names.ff}.net.0.proj`]],
    [`${stream}_mlp\\.2`, [`${to}.${names.ff}.net.2`]],
    [`${stream}_mod\\.lin`, [`${to}.${names.norm}.linear`]],
  ];
  return rows.map(([end, units]) => [new RegExp(`^transformer\\.double_blocks\\.(\\d+)\\.${end}$`), units]);
}

/**
 * The units of a module, row after row.
 * @param path of a module, as src/formats/image-lora.ts has it
 * @param shape of its weight, outputs first
 */
export function unitRows(path: string, [outputs = 1, inputs = 1]: readonly number[]): UnitRows[] {
  const [module, units, sharing] = UNITS.find(([found]) => found.test(path)) ?? [/^.*$/, ['$&']];
  const height = sharing === 'last takes the rest' ? inputs : Math.floor(outputs / units.length);
  return units.map((unit, i) => ({
    unit: path.replace(module, unit),
    begin: i * height,
    rows: i < units.length - 1 ? height : outputs - i * height,
  }));
}

/** Where the units of LoRAs are in a checkpoint. */
export interface ImageTargets {
  byUnit: ReadonlyMap<string, ImageTarget>;
  /** Modules by kohya's name for them, whose `_` does not always let the words be told apart. */
  byFlatName: ReadonlyMap<string, string>;
  /** The parts that there are: `unet`, `text_encoder`. */
  parts: ReadonlySet<string>;
}

/** @param tensors of a checkpoint by name */
export function imageTargets(tensors: ReadonlyMap<string, { shape: readonly number[] }>): ImageTargets {
  const byUnit = new Map<string, ImageTarget>();
  const byFlatName = new Map<string, string>();
  const parts = new Set<string>();
  for (const [tensor, { shape }] of tensors) {
    if (shape.length < 2 || !/(?:\.weight|\.in_proj_weight)$/.test(tensor)) continue;
    const { path, below } = pathOf(tensor);
    const units = unitRows(path, shape);
    parts.add(partOf(units[0]!.unit));
    byFlatName.set(`lora_unet_${below.replaceAll('.', '_')}`, path);
    for (const rows of units) {
      if (!byUnit.has(rows.unit)) byUnit.set(rows.unit, { ...rows, tensor });
    }
  }
  return { byUnit, byFlatName, parts };
}

/** The part of a model that a module or a unit is of. */
export function partOf(path: string): string {
  return path.startsWith('final.') ? 'transformer' : path.slice(0, path.indexOf('.'));
}
