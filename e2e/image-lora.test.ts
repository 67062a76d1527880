/** LoRAs of image models: keys as each tool writes them, into one LoRA, against the product of their factors in f64. */
import { describe, expect, it } from 'vitest';
import { imageKey, imageModule, imagePath } from '../src/formats/image-lora';
import { openModel } from '../src/inputs/opened-model';
import { ATTENTION, CONV, diffusers, kohya, loraFile, product, tensor } from './image-loras';
import { largestDifference, mergeInNode, planInNode, type Tensors } from './merge-in-node';

/** Modules of each family as its trainers and tools write them, and the paths that they are of. */
const NAMES: readonly [family: string, keys: readonly (readonly [written: string, path: string])[]][] = [
  [
    'SD 1.5, kohya',
    [
      [
        'lora_unet_down_blocks_0_attentions_1_transformer_blocks_0_attn2_to_k',
        'unet.down_blocks.0.attentions.1.transformer_blocks.0.attn2.to_k',
      ],
      ['lora_unet_mid_block_attentions_0_proj_in', 'unet.mid_block.attentions.0.proj_in'],
      ['lora_unet_up_blocks_3_resnets_2_conv_shortcut', 'unet.up_blocks.3.resnets.2.conv_shortcut'],
      [
        'lora_te_text_model_encoder_layers_11_self_attn_out_proj',
        'text_encoder.text_model.encoder.layers.11.self_attn.out_proj',
      ],
    ],
  ],
  [
    'SDXL, kohya',
    [
      [
        'lora_unet_input_blocks_4_1_transformer_blocks_0_attn1_to_out_0',
        'unet.down_blocks.1.attentions.0.transformer_blocks.0.attn1.to_out.0',
      ],
      ['lora_unet_input_blocks_8_1_proj_in', 'unet.down_blocks.2.attentions.1.proj_in'],
      [
        'lora_unet_middle_block_1_transformer_blocks_9_ff_net_0_proj',
        'unet.mid_block.attentions.0.transformer_blocks.9.ff.net.0.proj',
      ],
      ['lora_unet_middle_block_2_in_layers_2', 'unet.mid_block.resnets.1.conv1'],
      ['lora_unet_output_blocks_0_1_proj_out', 'unet.up_blocks.0.attentions.0.proj_out'],
      ['lora_unet_output_blocks_5_1_proj_out', 'unet.up_blocks.1.attentions.2.proj_out'],
      ['lora_unet_output_blocks_2_2_conv', 'unet.up_blocks.0.upsamplers.0.conv'],
      ['lora_unet_input_blocks_3_0_op', 'unet.down_blocks.0.downsamplers.0.conv'],
      ['lora_unet_output_blocks_8_0_skip_connection', 'unet.up_blocks.2.resnets.2.conv_shortcut'],
      ['lora_unet_label_emb_0_2', 'unet.add_embedding.linear_2'],
      ['lora_te1_text_model_encoder_layers_0_mlp_fc1', 'text_encoder.text_model.encoder.layers.0.mlp.fc1'],
      [
        'lora_te2_text_model_encoder_layers_31_self_attn_q_proj',
        'text_encoder_2.text_model.encoder.layers.31.self_attn.q_proj',
      ],
    ],
  ],
  [
    'SDXL, diffusers',
    [
      [
        'unet.up_blocks.0.attentions.2.transformer_blocks.9.attn1.to_q',
        'unet.up_blocks.0.attentions.2.transformer_blocks.9.attn1.to_q',
      ],
      [
        'text_encoder_2.text_model.encoder.layers.5.mlp.fc2',
        'text_encoder_2.text_model.encoder.layers.5.mlp.fc2',
      ],
    ],
  ],
  [
    'Flux, kohya',
    [
      ['lora_unet_double_blocks_18_img_attn_qkv', 'transformer.double_blocks.18.img_attn.qkv'],
      ['lora_unet_double_blocks_0_txt_mlp_2', 'transformer.double_blocks.0.txt_mlp.2'],
      ['lora_unet_single_blocks_37_modulation_lin', 'transformer.single_blocks.37.modulation.lin'],
      ['lora_unet_single_blocks_0_linear1', 'transformer.single_blocks.0.linear1'],
    ],
  ],
  [
    'Flux, ComfyUI',
    [['diffusion_model.double_blocks.18.img_attn.qkv', 'transformer.double_blocks.18.img_attn.qkv']],
  ],
  [
    'Flux, without a prefix',
    [['double_blocks.18.img_attn.qkv', 'transformer.double_blocks.18.img_attn.qkv']],
  ],
  [
    'Flux, diffusers',
    [
      [
        'transformer.single_transformer_blocks.3.attn.to_q',
        'transformer.single_transformer_blocks.3.attn.to_q',
      ],
    ],
  ],
  [
    'Wan, musubi-tuner and ComfyUI',
    [
      ['lora_unet_blocks_39_cross_attn_k_img', 'transformer.blocks.39.cross_attn.k_img'],
      ['lora_unet_blocks_0_ffn_0', 'transformer.blocks.0.ffn.0'],
    ],
  ],
  [
    'Qwen-Image, musubi-tuner',
    [
      [
        'lora_unet_transformer_blocks_59_attn_add_k_proj',
        'transformer.transformer_blocks.59.attn.add_k_proj',
      ],
      [
        'lora_unet_transformer_blocks_0_img_mlp_net_0_proj',
        'transformer.transformer_blocks.0.img_mlp.net.0.proj',
      ],
    ],
  ],
  [
    'Z-Image, ComfyUI',
    [['diffusion_model.layers.29.attention.to_q', 'transformer.layers.29.attention.to_q']],
  ],
];

describe.each(NAMES)('%s', (_, keys) => {
  it.each(keys)('%s is %s, and is written as it was read', (written, path) => {
    const found = imagePath(written)!;
    expect(found.path).toBe(path);
    expect(imageModule(path, found.naming)).toBe(written);
  });
});

it('attention blocks of SDXL: eleven of the original, in the order of diffusers', () => {
  const original = ['4.1', '5.1', '7.1', '8.1'].map((at) => `input_blocks.${at}`);
  original.push('middle_block.1', ...[0, 1, 2, 3, 4, 5].map((at) => `output_blocks.${at}.1`));
  const diffusers = ['down_blocks.1', 'down_blocks.2'].flatMap((at) =>
    [0, 1].map((i) => `${at}.attentions.${i}`),
  );
  diffusers.push('mid_block.attentions.0');
  diffusers.push(
    ...['up_blocks.0', 'up_blocks.1'].flatMap((at) => [0, 1, 2].map((i) => `${at}.attentions.${i}`)),
  );
  const found = original.map((at) => imagePath(`diffusion_model.${at}.proj_in`)!);
  expect(found.map(({ path }) => path)).toEqual(diffusers.map((at) => `unet.${at}.proj_in`));
  expect(found.every(({ naming }) => naming.original)).toBe(true);
});

it.each([
  ['m.lora_down.weight', 'a', 'm'],
  ['m.lora_up.weight', 'b', 'm'],
  ['m.lora_A.weight', 'a', 'm'],
  ['m.lora_B.default.weight', 'b', 'm'],
  ['m.lora.down.weight', 'a', 'm'],
  ['unet.mid.attn1.processor.to_q_lora.up.weight', 'b', 'unet.mid.attn1.to_q'],
  ['unet.mid.attn1.processor.to_out_lora.down.weight', 'a', 'unet.mid.attn1.to_out.0'],
  ['m.alpha', 'alpha', 'm'],
  ['m.dora_scale', 'magnitude', 'm'],
  ['m.lora_mid.weight', 'mid', 'm'],
])('the key %s is the part %s of %s', (key, part, module) => {
  expect(imageKey(key)).toEqual({ part, module });
});

// What files of LoRAs are merged into.

const folders = { one: loraFile('one', kohya), two: loraFile('two', diffusers) };
const recipe = (models: string, amalgam = '') =>
  `merge_method: task_arithmetic\nmodels: [${models}]\namalgam: {output: adapter${amalgam}}\n`;
const BOTH = '{model: one, parameters: {weight: 0.7}}, {model: two, parameters: {weight: -0.4}}';

/** The change of each module of a written LoRA, α being its rank. */
function changes(tensors: Tensors): Map<string, Float64Array> {
  const found = new Map<string, Float64Array>();
  for (const [key, a] of tensors) {
    const named = imageKey(key)!;
    if (named.part !== 'a') continue;
    const other = key.replace('lora_down', 'lora_up').replace('lora_A', 'lora_B');
    found.set(imagePath(named.module)!.path, product(a, tensors.get(other)!, 1));
  }
  return found;
}

const wanted = new Map(
  [
    [ATTENTION, 'lora_unet_input_blocks_4_1_proj_in', 2 / 4],
    [CONV, 'lora_unet_input_blocks_4_0_in_layers_2', 1 / 4],
  ].map(([path, name, scale]) => {
    const first = product(
      kohya[`${name}.lora_down.weight`]!,
      kohya[`${name}.lora_up.weight`]!,
      scale as number,
    );
    const second = product(diffusers[`${path}.lora_A.weight`]!, diffusers[`${path}.lora_B.weight`]!, 1);
    return [path as string, first.map((v, i) => 0.7 * v - 0.4 * second[i]!)];
  }),
);

it.each([
  ['merge_method: linear', 'is a LoRA of an image model, and is named as if it were a model'],
  [
    'merge_method: linear\namalgam: {output: adapter}',
    'become a LoRA by their factors, not by the change of a base',
  ],
  [
    'merge_method: task_arithmetic\namalgam: {output: adapter, energy: 0.9}',
    'become a LoRA by their factors',
  ],
])('%s says what merges them', async (head, message) => {
  await expect(planInNode(`${head}\nmodels: [${BOTH}]\n`, '.', folders)).rejects.toThrow(message);
});

it('a base in front of one is not asked for', async () => {
  const { plan } = await planInNode(recipe('{model: base+one, parameters: {weight: 1}}'), '.', folders);
  expect(plan.inputs.map(({ folder }) => folder)).toEqual(['one']);
});

it('a rank without a combination cuts', async () => {
  const { plan } = await planInNode(recipe(BOTH, ', rank: 3'), '.', folders);
  expect(plan.tensors.map(({ shape }) => Math.min(...shape.slice(0, 2)))).toEqual([3, 3, 3, 3]);
});

describe('two LoRAs of one U-Net, by kohya and by diffusers', () => {
  it.each([
    ['', 6],
    [', combination: svd, rank: 6', 6],
  ])('become one%s: Σ w·α/r·B·A, kernels too, called as in the first', async (amalgam, rank) => {
    const { plan } = await planInNode(recipe(BOTH, amalgam), '.', folders);
    expect(plan.shards.map(({ file }) => file)).toEqual(['lora.safetensors']);
    expect(plan.extras.map(({ path }) => path)).toEqual(['mergekit_config.yml', 'README.md']);
    const { tensors } = await mergeInNode(recipe(BOTH, amalgam), '.', folders);
    expect([...tensors.keys()].sort()).toEqual(
      Object.keys(kohya)
        .filter((key) => !key.endsWith('.alpha'))
        .sort(),
    );
    const down = tensors.get('lora_unet_input_blocks_4_0_in_layers_2.lora_down.weight')!;
    const up = tensors.get('lora_unet_input_blocks_4_0_in_layers_2.lora_up.weight')!;
    expect([down.shape, up.shape]).toEqual([
      [rank, 6, 3, 3],
      [8, rank, 1, 1],
    ]);
    const made = changes(tensors);
    for (const [path, values] of wanted)
      expect(
        largestDifference(Float32Array.from(made.get(path)!), Float32Array.from(values)).relative,
        path,
      ).toBeLessThan(1e-5);
  });

  it('are called as diffusers does where its LoRA comes first, and are stored as it is stored', async () => {
    const half = { ...folders, two: loraFile('two', diffusers, 'F16') };
    const turned = '{model: two, parameters: {weight: 1}}, {model: one, parameters: {weight: 1}}';
    const { tensors } = await mergeInNode(recipe(turned), '.', half);
    expect([...tensors.keys()].sort()).toEqual(Object.keys(diffusers).sort());
    expect(new Set([...tensors.values()].map(({ dtype }) => dtype))).toEqual(new Set(['F16']));
  });

  it('the kernel between two factors of LoCon is multiplied out', async () => {
    const name = 'lora_unet_input_blocks_4_0_in_layers_2';
    const [down, mid, up] = [tensor(11, 3, 6, 1, 1), tensor(12, 3, 3, 3, 3), tensor(13, 8, 3, 1, 1)];
    const tucker = loraFile('tucker', {
      [`${name}.lora_down.weight`]: down,
      [`${name}.lora_mid.weight`]: mid,
      [`${name}.lora_up.weight`]: up,
    });
    const { tensors } = await mergeInNode(recipe('{model: tucker, parameters: {weight: 1}}'), '.', {
      tucker,
    });
    const made = changes(tensors).get(CONV)!;
    const whole = Float32Array.from({ length: 8 * 6 * 9 }, (_, i) => {
      const [o, c, at] = [Math.floor(i / 54), Math.floor(i / 9) % 6, i % 9];
      let sum = 0;
      for (let p = 0; p < 3; p++)
        for (let q = 0; q < 3; q++)
          sum += up.values[o * 3 + p]! * mid.values[(p * 3 + q) * 9 + at]! * down.values[q * 6 + c]!;
      return sum;
    });
    expect(largestDifference(Float32Array.from(made), whole).relative).toBeLessThan(1e-5);
  });
});

it.each([
  ['only a part of LoHa’s four factors', 'lora_unet_mid_block_attentions_0_proj_in.hada_w1_a'],
  ['only a part of LoKr’s factors', 'lora_unet_mid_block_attentions_0_proj_in.lokr_w1'],
  ['an orthogonal adapter (OFT) of another form', 'lora_unet_mid_block_attentions_0_proj_in.oft_diag'],
  ['whole differences of weights', 'lora_unet_mid_block_attentions_0_proj_in.diff'],
  ['factors counted by their place, without names', 'text_encoder:0:down'],
])('%s are refused by name', async (what, key) => {
  const folder = loraFile('odd', { [key]: tensor(1, 4, 4) });
  await expect(openModel(folder)).rejects.toMatchObject({
    code: 'AdapterUnsupported',
    message: expect.stringContaining(what),
  });
});

it.each([
  [
    'have no module in common',
    {
      ...folders,
      two: loraFile('two', {
        'transformer.double_blocks.0.img_attn.qkv.lora_A.weight': tensor(1, 2, 4),
        'transformer.double_blocks.0.img_attn.qkv.lora_B.weight': tensor(2, 4, 2),
      }),
    },
    'no module in common',
  ],
  [
    'have other sizes',
    {
      ...folders,
      two: loraFile('two', { ...diffusers, [`${ATTENTION}.lora_A.weight`]: tensor(1, 2, 10) }),
    },
    'factors of different sizes',
  ],
])('two that %s are not merged', async (_, given, message) => {
  await expect(planInNode(recipe(BOTH), '.', given)).rejects.toThrow(message);
});
