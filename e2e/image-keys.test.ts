/**
 * Whole lists of modules of six families, made by counting their blocks: what every trainer calls them has its place in every form of
 * the checkpoint. Sizes are small; which rows of which tensor is what is checked.
 */
import { describe, expect, it } from 'vitest';
import { imageTargets, unitRows } from '../src/formats/image-checkpoint';
import { imagePath } from '../src/formats/image-lora';

/** A module as diffusers has it, and the tensor and rows that it is in the original's file. */
interface Row {
  diffusers: string;
  original: string;
  begin: number;
  rows: number;
  columns: number;
}
const D = 4;
const row = (diffusers: string, original: string, rows = D, begin = 0, columns = D): Row => ({
  ...{ diffusers, original, begin, rows, columns },
});
/** Modules of one name in both. */
const alike = (modules: readonly string[], from = '', to = from) =>
  modules.map((module) => row(`${from}${module}`, `${to}${module}`));
/** Modules that are one tensor of the original. */
const fused = (diffusers: readonly string[], original: string) =>
  diffusers.map((module, i) => row(module, original, D, i * D));
const range = (n: number) => [...Array(n).keys()];

const ATTENTION = ['to_q', 'to_k', 'to_v', 'to_out.0'];

/** A U-Net: depths of the transformers of each level on the way down; none is 0. */
function unet(depths: readonly number[], middle: number): Row[] {
  const rows = [row('conv_in', 'input_blocks.0.0'), row('conv_out', 'out.2')];
  const resnet = (from: string, to: string) =>
    rows.push(
      row(`${from}.conv1`, `${to}.in_layers.2`),
      row(`${from}.time_emb_proj`, `${to}.emb_layers.1`),
      row(`${from}.conv2`, `${to}.out_layers.3`),
      row(`${from}.conv_shortcut`, `${to}.skip_connection`),
    );
  const attention = (from: string, to: string, depth: number) => {
    rows.push(...alike(['proj_in', 'proj_out'], `${from}.`, `${to}.`));
    for (const block of range(depth)) {
      const own = [1, 2].flatMap((n) => ATTENTION.map((end) => `attn${n}.${end}`));
      const all = [...own, 'ff.net.0.proj', 'ff.net.2'].map((end) => `transformer_blocks.${block}.${end}`);
      rows.push(...alike(all, `${from}.`, `${to}.`));
    }
  };
  const last = depths.length - 1;
  let at = 1;
  for (const [level, depth] of depths.entries()) {
    for (const layer of [0, 1]) {
      resnet(`down_blocks.${level}.resnets.${layer}`, `input_blocks.${at}.0`);
      if (depth > 0) attention(`down_blocks.${level}.attentions.${layer}`, `input_blocks.${at}.1`, depth);
      at++;
    }
    if (level < last) rows.push(row(`down_blocks.${level}.downsamplers.0.conv`, `input_blocks.${at++}.0.op`));
  }
  resnet('mid_block.resnets.0', 'middle_block.0');
  attention('mid_block.attentions.0', 'middle_block.1', middle);
  resnet('mid_block.resnets.1', 'middle_block.2');
  at = 0;
  for (const [level, depth] of depths.toReversed().entries()) {
    for (const layer of [0, 1, 2]) {
      let inside = 0;
      resnet(`up_blocks.${level}.resnets.${layer}`, `output_blocks.${at}.${inside++}`);
      if (depth > 0)
        attention(`up_blocks.${level}.attentions.${layer}`, `output_blocks.${at}.${inside++}`, depth);
      if (layer === 2 && level < last)
        rows.push(row(`up_blocks.${level}.upsamplers.0.conv`, `output_blocks.${at}.${inside}.conv`));
      at++;
    }
  }
  return rows;
}

const CLIP = ['q_proj', 'k_proj', 'v_proj', 'out_proj'].map((end) => `self_attn.${end}`);
const clip = (layers: number) =>
  range(layers).flatMap((n) =>
    alike([...CLIP, 'mlp.fc1', 'mlp.fc2'].map((end) => `text_model.encoder.layers.${n}.${end}`)),
  );
const openClip = (layers: number) =>
  range(layers).flatMap((n) => {
    const [from, to] = [`text_model.encoder.layers.${n}`, `transformer.resblocks.${n}`];
    return [
      ...fused(
        ['q_proj', 'k_proj', 'v_proj'].map((end) => `${from}.self_attn.${end}`),
        `${to}.attn.in_proj_weight`,
      ),
      row(`${from}.self_attn.out_proj`, `${to}.attn.out_proj`),
      row(`${from}.mlp.fc1`, `${to}.mlp.c_fc`),
      row(`${from}.mlp.fc2`, `${to}.mlp.c_proj`),
    ];
  });

const flux = [
  ...range(19).flatMap((n) => {
    const [from, to] = [`transformer_blocks.${n}`, `double_blocks.${n}`];
    const stream = (of: string, heads: readonly string[], out: string, ff: string, norm: string) => [
      ...fused(
        heads.map((end) => `${from}.attn.${end}`),
        `${to}.${of}_attn.qkv`,
      ),
      row(`${from}.attn.${out}`, `${to}.${of}_attn.proj`),
      row(`${from}.${ff}.net.0.proj`, `${to}.${of}_mlp.0`),
      row(`${from}.${ff}.net.2`, `${to}.${of}_mlp.2`),
      row(`${from}.${norm}.linear`, `${to}.${of}_mod.lin`),
    ];
    return [
      ...stream('img', ['to_q', 'to_k', 'to_v'], 'to_out.0', 'ff', 'norm1'),
      ...stream(
        'txt',
        ['add_q_proj', 'add_k_proj', 'add_v_proj'],
        'to_add_out',
        'ff_context',
        'norm1_context',
      ),
    ];
  }),
  ...range(38).flatMap((n) => {
    const [from, to] = [`single_transformer_blocks.${n}`, `single_blocks.${n}`];
    return [
      ...fused(
        ['to_q', 'to_k', 'to_v'].map((end) => `${from}.attn.${end}`),
        `${to}.linear1`,
      ),
      row(`${from}.proj_mlp`, `${to}.linear1`, 4 * D, 3 * D),
      row(`${from}.proj_out`, `${to}.linear2`, D, 0, 5 * D),
      row(`${from}.norm.linear`, `${to}.modulation.lin`),
    ];
  }),
  row('x_embedder', 'img_in'),
  row('context_embedder', 'txt_in'),
  ...[
    ['timestep', 'time_in'],
    ['text', 'vector_in'],
    ['guidance', 'guidance_in'],
  ].flatMap(([from, to]) => [
    row(`time_text_embed.${from}_embedder.linear_1`, `${to}.in_layer`),
    row(`time_text_embed.${from}_embedder.linear_2`, `${to}.out_layer`),
  ]),
  row('proj_out', 'final_layer.linear'),
];

const wan = [
  ...range(40).flatMap((n) => {
    const blocks = `blocks.${n}`;
    return [
      ...[1, 2].flatMap((which) => {
        const [from, to] = [`${blocks}.attn${which}`, `${blocks}.${which === 1 ? 'self' : 'cross'}_attn`];
        return [...'qkv']
          .map((end) => row(`${from}.to_${end}`, `${to}.${end}`))
          .concat(row(`${from}.to_out.0`, `${to}.o`));
      }),
      row(`${blocks}.attn2.add_k_proj`, `${blocks}.cross_attn.k_img`),
      row(`${blocks}.attn2.add_v_proj`, `${blocks}.cross_attn.v_img`),
      row(`${blocks}.ffn.net.0.proj`, `${blocks}.ffn.0`),
      row(`${blocks}.ffn.net.2`, `${blocks}.ffn.2`),
    ];
  }),
  ...['text', 'time'].flatMap((which) => [
    row(`condition_embedder.${which}_embedder.linear_1`, `${which}_embedding.0`),
    row(`condition_embedder.${which}_embedder.linear_2`, `${which}_embedding.2`),
  ]),
  row('condition_embedder.time_proj', 'time_projection.1'),
  row('condition_embedder.image_embedder.ff.net.0.proj', 'img_emb.proj.1'),
  row('condition_embedder.image_embedder.ff.net.2', 'img_emb.proj.3'),
  row('patch_embedding', 'patch_embedding'),
  row('proj_out', 'head.head'),
];

const qwen = [
  ...range(60).flatMap((n) =>
    alike(
      [
        ...[...ATTENTION, 'add_q_proj', 'add_k_proj', 'add_v_proj', 'to_add_out'].map((end) => `attn.${end}`),
        ...['img', 'txt'].flatMap((of) => [`${of}_mlp.net.0.proj`, `${of}_mlp.net.2`, `${of}_mod.1`]),
      ],
      `transformer_blocks.${n}.`,
    ),
  ),
  ...alike(['img_in', 'txt_in', 'proj_out']),
];

const zImage = [
  ...[
    ...range(30).map((n) => `layers.${n}`),
    ...range(2).flatMap((n) => [`noise_refiner.${n}`, `context_refiner.${n}`]),
  ].flatMap((block) => [
    ...fused(
      ['to_q', 'to_k', 'to_v'].map((end) => `${block}.attention.${end}`),
      `${block}.attention.qkv`,
    ),
    row(`${block}.attention.to_out.0`, `${block}.attention.out`),
    ...alike(['feed_forward.w1', 'feed_forward.w2', 'feed_forward.w3', 'adaLN_modulation.0'], `${block}.`),
  ]),
  row('all_x_embedder.2-1', 'x_embedder'),
  row('all_final_layer.2-1.linear', 'final_layer.linear'),
  ...alike(['cap_embedder.1', 't_embedder.mlp.0', 't_embedder.mlp.2']),
];

interface Part {
  rows: readonly Row[];
  /** What the checkpoint of the original, the folder of diffusers, and LoRAs have in front. */
  file: string;
  folder: string;
  lora: readonly [kohya: string, comfyui?: string];
}
const drawing = (rows: readonly Row[], folder: string, file = 'model.diffusion_model.'): Part => ({
  ...{ rows, file, folder },
  lora: ['lora_unet_', 'diffusion_model.'],
});
const reading = (rows: readonly Row[], file: string, number: '' | '_2', kohya: string): Part => ({
  ...{ rows, file, folder: `text_encoder${number}.` },
  lora: [kohya],
});

const FAMILIES: Readonly<Record<string, readonly Part[]>> = {
  'SD 1.5': [
    drawing(unet([1, 1, 1, 0], 1), 'unet.'),
    reading(clip(12), 'cond_stage_model.transformer.', '', 'lora_te_'),
  ],
  SDXL: [
    drawing(unet([0, 2, 10], 10), 'unet.'),
    reading(clip(12), 'conditioner.embedders.0.transformer.', '', 'lora_te1_'),
    reading(openClip(32), 'conditioner.embedders.1.model.', '_2', 'lora_te2_'),
  ],
  Flux: [
    drawing(flux, 'transformer.', ''),
    reading(clip(12), 'text_encoders.clip_l.transformer.', '', 'lora_te1_'),
  ],
  'Qwen-Image': [drawing(qwen, 'transformer.', '')],
  'Z-Image': [drawing(zImage, 'transformer.')],
  Wan: [drawing(wan, 'transformer.', '')],
};

describe.each(Object.entries(FAMILIES))('%s', (_, parts) => {
  const place = (tensor: string, begin: number, rows: number) => `${tensor}[${begin}, ${begin + rows})`;
  const weight = (module: string) => (module.endsWith('in_proj_weight') ? module : `${module}.weight`);
  /** Tensors of a checkpoint, with their shapes. */
  const checkpoint = (nameOf: (part: Part, own: Row) => string, isFused: boolean) => {
    const shapes = new Map<string, { shape: number[] }>();
    for (const part of parts)
      for (const own of part.rows) {
        const name = nameOf(part, own);
        const known = isFused ? (shapes.get(name)?.shape[0] ?? 0) : 0;
        shapes.set(name, { shape: [known + own.rows, own.columns] });
      }
    return shapes;
  };
  const originals = imageTargets(checkpoint(({ file }, { original }) => weight(`${file}${original}`), true));
  const folders = imageTargets(
    checkpoint(({ folder }, { diffusers }) => `${folder}${diffusers}.weight`, false),
  );
  /** Where the units of what a LoRA names are. */
  const found = (targets: ReturnType<typeof imageTargets>, key: string, shape: readonly number[]) => {
    const path = imagePath(key)?.path ?? targets.byFlatName.get(key);
    if (path === undefined) return [`${key} has no known name`];
    return unitRows(path, shape).map(({ unit, rows }) => {
      const target = targets.byUnit.get(unit);
      return target && target.rows === rows ? place(target.tensor, target.begin, rows) : `${key}: no ${unit}`;
    });
  };
  const keysOf = ({ lora: [kohya, comfyui] }: Part, path: string, dotted?: string) => [
    `${kohya}${path.replaceAll('.', '_')}`,
    ...(comfyui === undefined ? [] : [`${comfyui}${path}`]),
    ...(dotted === undefined ? [] : [dotted]),
  ];

  it('every module as diffusers has it is in the original’s file, whoever named it', () => {
    for (const part of parts)
      for (const own of part.rows)
        for (const key of keysOf(part, own.diffusers, `${part.folder}${own.diffusers}`))
          expect(found(originals, key, [own.rows, own.columns])).toEqual([
            place(weight(`${part.file}${own.original}`), own.begin, own.rows),
          ]);
  });

  it('every module as the original has it is in the folders of diffusers', () => {
    for (const part of parts) {
      // trainers name text encoders as transformers does
      if (part.lora.length === 1) continue;
      const modules = new Map<string, Row[]>();
      for (const own of part.rows) modules.set(own.original, [...(modules.get(own.original) ?? []), own]);
      for (const [original, own] of modules) {
        const shape = [own.reduce((sum, { rows }) => sum + rows, 0), own[0]!.columns];
        for (const key of keysOf(part, original))
          expect(found(folders, key, shape)).toEqual(
            own.map(({ diffusers, rows }) => place(`${part.folder}${diffusers}.weight`, 0, rows)),
          );
      }
    }
  });
});
