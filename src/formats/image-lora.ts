/**
 * Keys of the LoRAs of image and video models: what trainers and tools call the same module. Facts from kohya-ss/sd-scripts
 * (networks/lora.py), diffusers (loaders/lora_conversion_utils.py, scripts/convert_diffusers_to_original_stable_diffusion.py),
 * ComfyUI (comfy/lora.py) and LyCORIS. Every convention is read into one path of a module, that of diffusers:
 * `unet.down_blocks.1.attentions.0.proj_in`, `transformer.double_blocks.0.img_attn.proj`, `text_encoder_2.text_model.…`.
 */
import type { ImageConvention } from './image-convention';

/** How a file names its modules. */
export interface ImageNaming {
  convention: ImageConvention;
  /** The blocks of a U-Net as the original Stable Diffusion counts them (`input_blocks.4.1`), not as diffusers does. */
  original: boolean;
  /** What the file puts before the paths of a component, where that is not what is usual. */
  prefixes: Readonly<Record<string, string>>;
}

export type ImagePart =
  | ('a' | 'b' | 'mid' | 'alpha' | 'magnitude')
  | `hada_${'w1_a' | 'w1_b' | 'w2_a' | 'w2_b' | 't1' | 't2'}`
  | `lokr_${'w1' | 'w1_a' | 'w1_b' | 'w2' | 'w2_a' | 'w2_b' | 't2'}`
  | ('oft_blocks' | 'rescale');

/** What the end of a key says: the part that a tensor is of its module. */
const PARTS: readonly [end: RegExp, part: ImagePart, module?: string][] = [
  [/^(.+)\.processor\.to_out_lora\.down\.weight$/, 'a', '$1.to_out.0'],
  [/^(.+)\.processor\.to_out_lora\.up\.weight$/, 'b', '$1.to_out.0'],
  [/^(.+)\.processor\.(to_[qkv])_lora\.down\.weight$/, 'a', '$1.$2'],
  [/^(.+)\.processor\.(to_[qkv])_lora\.up\.weight$/, 'b', '$1.$2'],
  [/^(.+)\.(?:lora_down|lora\.down|lora_linear_layer\.down|lora_A(?:\.default)?)\.weight$/, 'a'],
  [/^(.+)\.(?:lora_up|lora\.up|lora_linear_layer\.up|lora_B(?:\.default)?)\.weight$/, 'b'],
  [/^(.+)\.lora_mid\.weight$/, 'mid'],
  [/^(.+)\.alpha$/, 'alpha'],
  [/^(.+)\.(?:dora_scale|lora_magnitude_vector(?:\.default)?(?:\.weight)?)$/, 'magnitude'],
];

/** Parts of other kinds of adapters, which image tools write beside or in place of factors. */
const OTHERS: readonly [end: RegExp, what: string][] = [
  [/\.boft_\w+$|\.oft_(?:R|diag)(?:\.weight)?$/, 'an orthogonal adapter (OFT) of another form'],
  [/\.on_input$|\.ia3_\w+$/, '(IA)³ vectors'],
  [/\.diff(?:_b)?$|\.set_weight$/, 'whole differences of weights'],
  [/\.w_norm$|\.b_norm$/, 'trained norms'],
  [/^bundle_emb\./, 'trained embeddings'],
  [/^(?:text_encoder|unet|vae):\d+:/, 'factors counted by their place, without names'],
];

/** Parts of LoHa, LoKr and OFT, by which LyCORIS names them. */
const NAMED = /^(.+)\.(hada_w[12]_[ab]|hada_t[12]|lokr_w[12](?:_[ab])?|lokr_t2|oft_blocks|rescale)$/;

/** The part that a key names, and the module as it stands there; undefined for any other key. */
export function imageKey(key: string): { module: string; part: ImagePart } | undefined {
  const [, named, own] = NAMED.exec(key) ?? [];
  if (named !== undefined) return { module: named, part: own as ImagePart };
  for (const [end, part, module = '$1'] of PARTS) {
    if (end.test(key)) return { module: key.replace(end, module), part };
  }
  return undefined;
}

/** What a key is that is no factor of a LoRA, where that is known. */
export function otherImagePart(key: string): string | undefined {
  return OTHERS.find(([end]) => end.test(key))?.[1];
}

/** Blocks that only image and video models have. */
const BARE = /^(?:(?:double|single|joint)_blocks|(?:single_)?transformer_blocks|blocks)\.\d+\./;

/** What kohya's trainers and LyCORIS put before the paths of a part, whose dots they join by `_`. */
const KOHYA = /^(lora_(?:unet|transformer|te[123]?)|oft_unet|lycoris)_(.+)$/;

/** Whether a key names a module as kohya does. */
export const isKohya = (module: string) => KOHYA.test(module);

/** What the parts of a model are called: in diffusers, by kohya's trainer, in ComfyUI. The first of a list is written. */
const COMPONENTS: readonly [diffusers: string, kohya: readonly string[], comfyui: readonly string[]][] = [
  ['unet', ['lora_unet', 'oft_unet', 'lycoris'], ['diffusion_model', 'model.diffusion_model']],
  [
    'transformer',
    ['lora_unet', 'lora_transformer', 'oft_unet', 'lycoris'],
    ['diffusion_model', 'model.diffusion_model'],
  ],
  ['text_encoder', ['lora_te1', 'lora_te'], ['text_encoder']],
  ['text_encoder_2', ['lora_te2'], ['text_encoder_2']],
  ['text_encoder_3', ['lora_te3'], ['text_encoder_3']],
];

/** Whether a path below `unet.` or `transformer.` belongs to a U-Net. */
const IN_UNET =
  /^(?:down_blocks|up_blocks|mid_block|input_blocks|output_blocks|middle_block|conv_in|conv_out|time_embed|time_embedding\.linear_\d|add_embedding|label_emb|out)\./;

/**
 * The path of a module that a key names.
 * @param module as it stands in the key
 * @returns undefined for one that kohya's `_` does not let be split into known words, and for one of no image model
 */
export function imagePath(module: string): { path: string; naming: ImageNaming } | undefined {
  const [, prefix, flat] = KOHYA.exec(module) ?? [];
  if (prefix !== undefined) {
    const dotted = split(flat!);
    return dotted === undefined ? undefined : placed('kohya', prefix, dotted);
  }
  for (const [diffusers, , comfyui] of COMPONENTS) {
    for (const name of comfyui) {
      if (name !== diffusers && module.startsWith(`${name}.`))
        return placed('comfyui', name, module.slice(name.length + 1));
    }
  }
  for (const [diffusers] of COMPONENTS) {
    if (module.startsWith(`${diffusers}.`))
      return placed('diffusers', diffusers, module.slice(diffusers.length + 1));
  }
  // some trainers of Flux and Wan leave the prefix out
  if (BARE.test(module)) return placed('comfyui', 'diffusion_model', module, '');
  return undefined;
}

/** The path of a module of the part that draws, which stands there without a prefix. */
export function imageModelPath(below: string): string {
  return placed('comfyui', 'diffusion_model', below).path;
}

function placed(convention: ImageConvention, prefix: string, path: string, written = prefix) {
  const found = COMPONENTS.find(([diffusers, kohya, comfyui]) =>
    convention === 'diffusers'
      ? diffusers === prefix
      : (convention === 'kohya' ? kohya : comfyui).includes(prefix),
  )!;
  const [component] = found;
  const naming = (of: string, original: boolean) => ({ convention, original, prefixes: { [of]: written } });
  if (component !== 'unet' && component !== 'transformer')
    return { path: `${component}.${path}`, naming: naming(component, false) };
  const unet = IN_UNET.test(`${path}.`) && prefix !== 'transformer';
  const here = unet ? fromOriginal(path) : path;
  const own = unet ? 'unet' : 'transformer';
  return { path: `${own}.${here}`, naming: naming(own, here !== path) };
}

/** What a convention calls the module of a path. */
export function imageModule(path: string, { convention, original, prefixes }: ImageNaming): string {
  const [component, ...rest] = path.split('.') as [string, ...string[]];
  const named = COMPONENTS.find(([diffusers]) => diffusers === component);
  if (!named) return path;
  const below = rest.join('.');
  const own = original && component === 'unet' ? originalPath(below) : below;
  const [diffusers, [kohya], [comfyui]] = named;
  const usual = { kohya, diffusers, comfyui }[convention];
  const prefix = prefixes[diffusers] ?? usual;
  if (convention === 'kohya') return `${prefix}_${own.replaceAll('.', '_')}`;
  return prefix === '' ? own : `${prefix}.${own}`;
}

/** Names in paths that have an underscore themselves. */
const WORDS: readonly string[] = [
  ...['down_blocks', 'up_blocks', 'mid_block', 'input_blocks', 'output_blocks', 'middle_block'],
  ...['transformer_blocks', 'single_transformer_blocks', 'double_blocks', 'single_blocks', 'joint_blocks'],
  ...['to_q', 'to_k', 'to_v', 'to_out', 'to_qkv', 'to_add_out', 'add_q_proj', 'add_k_proj', 'add_v_proj'],
  ...['proj_in', 'proj_out', 'proj_mlp', 'q_proj', 'k_proj', 'v_proj', 'out_proj', 'o_proj'],
  ...[
    'conv_in',
    'conv_out',
    'conv_shortcut',
    'time_emb_proj',
    'time_embedding',
    'add_embedding',
    'time_embed',
  ],
  ...['label_emb', 'in_layers', 'out_layers', 'emb_layers', 'skip_connection', 'linear_1', 'linear_2'],
  ...[
    'img_attn',
    'txt_attn',
    'img_mlp',
    'txt_mlp',
    'img_mod',
    'txt_mod',
    'img_in',
    'txt_in',
    'time_in',
    'vector_in',
  ],
  ...[
    'guidance_in',
    'in_layer',
    'out_layer',
    'final_layer',
    'adaLN_modulation',
    'norm_out',
    'context_embedder',
  ],
  ...[
    'x_embedder',
    'time_text_embed',
    'timestep_embedder',
    'guidance_embedder',
    'text_embedder',
    'ff_context',
  ],
  ...['text_model', 'self_attn', 'cross_attn', 'token_embedding', 'text_projection', 'text_embedding'],
  ...['patch_embedding', 'time_projection', 'img_emb', 'k_img', 'v_img', 'norm1_context', 'context_block'],
  ...[
    'x_block',
    'feed_forward',
    'context_refiner',
    'noise_refiner',
    'cap_embedder',
    't_embedder',
    'all_x_embedder',
  ],
  ...['SelfAttention', 'DenseReluDense', 'wi_0', 'wi_1'],
];

/** Names without one. */
const PLAIN =
  /^(?:\d+|attn[12]?|attentions|resnets|downsamplers|upsamplers|conv[12]?|norm[123q k]?|ff|net|proj|mlp|encoder|layers|layer|block|blocks|fc[12]|linear[12]?|lin|qkv|q|k|v|o|out|op|ffn|emb|wi|wo|modulation|head|in|self|attention|w[123]|to|img|txt)$/;

/** The words of a name that joins them by underscores, joined by dots; undefined where one is not known. */
function split(flat: string): string | undefined {
  const parts = flat.split('_');
  const words: string[] = [];
  for (let at = 0; at < parts.length; ) {
    let size = Math.min(4, parts.length - at);
    while (size > 1 && !WORDS.includes(parts.slice(at, at + size).join('_'))) size--;
    const word = parts.slice(at, at + size).join('_');
    if (size === 1 && !PLAIN.test(word) && !WORDS.includes(word)) return undefined;
    words.push(word);
    at += size;
  }
  return words.join('.');
}

// The blocks of the U-Net of Stable Diffusion 1.5 and XL: diffusers numbers levels and their layers, the original all in a row,
// three a level, with the layer (0), its attention (1) and what changes the size behind one another.

/** Names inside a residual block, of diffusers and of the original. */
const RESNET: readonly [string, string][] = [
  ['norm1', 'in_layers.0'],
  ['conv1', 'in_layers.2'],
  ['norm2', 'out_layers.0'],
  ['conv2', 'out_layers.3'],
  ['time_emb_proj', 'emb_layers.1'],
  ['conv_shortcut', 'skip_connection'],
];
const ENDS: readonly [string, string][] = [
  ['conv_in', 'input_blocks.0.0'],
  ['conv_out', 'out.2'],
  ['time_embedding.linear_1', 'time_embed.0'],
  ['time_embedding.linear_2', 'time_embed.2'],
  ['add_embedding.linear_1', 'label_emb.0.0'],
  ['add_embedding.linear_2', 'label_emb.0.2'],
];

const renamed = (name: string, table: readonly [string, string][], from: 0 | 1): string =>
  table.find((row) => row[from] === name)?.[from === 0 ? 1 : 0] ?? name;

function fromOriginal(path: string): string {
  const end = renamed(path, ENDS, 1);
  if (end !== path) return end;
  const [, side, number, sub, rest] =
    /^(input_blocks|output_blocks|middle_block)\.(\d+)\.(?:(\d+)\.)?(.+)$/.exec(path) ?? [];
  if (side === undefined || rest === undefined) return path;
  const n = Number(number);
  const inner = (name: string) => renamed(name, RESNET, 1);
  if (side === 'middle_block') {
    const below = sub === undefined ? rest : `${sub}.${rest}`;
    return n === 1 ? `mid_block.attentions.0.${below}` : `mid_block.resnets.${n / 2}.${inner(below)}`;
  }
  if (sub === undefined) return path;
  if (side === 'input_blocks') {
    const [level, layer] = [Math.floor((n - 1) / 3), (n - 1) % 3];
    if (layer === 2) return `down_blocks.${level}.downsamplers.0.${rest === 'op' ? 'conv' : rest}`;
    return sub === '1'
      ? `down_blocks.${level}.attentions.${layer}.${rest}`
      : `down_blocks.${level}.resnets.${layer}.${inner(rest)}`;
  }
  const [level, layer] = [Math.floor(n / 3), n % 3];
  if (sub === '0') return `up_blocks.${level}.resnets.${layer}.${inner(rest)}`;
  if (sub === '2' || rest === 'conv') return `up_blocks.${level}.upsamplers.0.${rest}`;
  return `up_blocks.${level}.attentions.${layer}.${rest}`;
}

/** The path of a module of a U-Net, without its component, as the original counts its blocks. */
export function originalPath(path: string): string {
  const end = renamed(path, ENDS, 0);
  if (end !== path) return end;
  const [, mid, index, below] = /^mid_block\.(attentions|resnets)\.(\d+)\.(.+)$/.exec(path) ?? [];
  if (mid === 'attentions') return `middle_block.1.${below}`;
  if (mid) return `middle_block.${2 * Number(index)}.${renamed(below!, RESNET, 0)}`;
  const [, side, level, kind, layer, rest] =
    /^(down|up)_blocks\.(\d+)\.(attentions|resnets|downsamplers|upsamplers)\.(\d+)\.(.+)$/.exec(path) ?? [];
  if (side === undefined) return path;
  const first = 3 * Number(level);
  if (kind === 'downsamplers') return `input_blocks.${first + 3}.0.op`;
  // behind the attention where the level has one, as all do whose LoRAs are counted like this (XL)
  if (kind === 'upsamplers') return `output_blocks.${first + 2}.2.${rest}`;
  const block =
    side === 'down' ? `input_blocks.${first + Number(layer) + 1}` : `output_blocks.${first + Number(layer)}`;
  return kind === 'attentions' ? `${block}.1.${rest}` : `${block}.0.${renamed(rest!, RESNET, 0)}`;
}
