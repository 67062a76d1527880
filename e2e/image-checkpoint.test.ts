/** LoRAs of image models in their checkpoints, file by file and folder by folder, against W + s·B·A in f64. */
import { describe, expect, it } from 'vitest';
import { memoryFolder } from '../src/inputs/memory-models.test.support';
import { describeModel, openModel } from '../src/inputs/opened-model';
import type { ModelFolder } from '../src/sources/model-folder';
import { fileBytes, loraFile, product, scalar, tensor, type Values } from './image-loras';
import { mergeInNode, planInNode } from './merge-in-node';

const recipe = (models: string, amalgam = '') =>
  `merge_method: task_arithmetic\nbase_model: base\nmodels: [${models}]\n${amalgam}`;
const ONE = '{model: base+one, parameters: {weight: 0.5}}';

/** W + Σ of changes, each of some rows. */
function changed(weight: Values[string], ...changes: [begin: number, change: Float64Array, by: number][]) {
  const columns = weight.values.length / weight.shape[0]!;
  const out = Float64Array.from(weight.values);
  for (const [begin, change, by] of changes)
    for (const [i, value] of change.entries()) out[begin * columns + i]! += by * value;
  return out;
}

/** Merges, and compares every tensor of the output: the named ones with what is wanted, all others with the base. */
async function merged(
  text: string,
  folders: Record<string, ModelFolder>,
  base: Values,
  wanted: Record<string, Float64Array>,
) {
  const { tensors } = await mergeInNode(text, '.', folders);
  expect([...tensors.keys()].sort()).toEqual(Object.keys(base).sort());
  for (const [name, { values, shape }] of tensors) {
    expect(shape).toEqual(base[name]!.shape);
    const want = wanted[name] ?? base[name]!.values;
    const size = Math.max(...want.map(Math.abs));
    const worst = values.reduce((most, v, i) => Math.max(most, Math.abs(v - want[i]!)), 0);
    expect(worst / size, name).toBeLessThan(name in wanted ? 2e-6 : Number.MIN_VALUE);
  }
}

describe('SDXL in one file', () => {
  const CONV = 'model.diffusion_model.input_blocks.4.0.in_layers.2.weight';
  const PROJ = 'model.diffusion_model.input_blocks.4.1.proj_in.weight';
  const FUSED = 'conditioner.embedders.1.model.transformer.resblocks.3.attn.in_proj_weight';
  const FC = 'conditioner.embedders.1.model.transformer.resblocks.3.mlp.c_fc.weight';
  const CLIP = 'conditioner.embedders.0.transformer.text_model.encoder.layers.0.mlp.fc1.weight';
  const base: Values = {
    [CONV]: tensor(1, 8, 6, 3, 3),
    [PROJ]: tensor(2, 8, 12),
    [FUSED]: tensor(3, 12, 4),
    [FC]: tensor(4, 8, 4),
    [CLIP]: tensor(5, 8, 4),
    'first_stage_model.decoder.conv_in.weight': tensor(6, 4, 4, 3, 3),
    'model.diffusion_model.out.0.bias': tensor(7, 5),
    'conditioner.embedders.0.transformer.text_model.embeddings.token_embedding.weight': tensor(8, 9, 4),
  };
  const [a, b] = [tensor(11, 2, 6, 3, 3), tensor(12, 8, 2, 1, 1)];
  const [c, d] = [tensor(13, 3, 12), tensor(14, 8, 3)];
  const [k, l] = [tensor(15, 2, 4), tensor(16, 4, 2)];
  const [e, f] = [tensor(17, 2, 4), tensor(18, 8, 2)];
  const kohya: Values = {
    'lora_unet_input_blocks_4_0_in_layers_2.lora_down.weight': a,
    'lora_unet_input_blocks_4_0_in_layers_2.lora_up.weight': b,
    'lora_unet_input_blocks_4_0_in_layers_2.alpha': scalar(1),
    'lora_unet_input_blocks_4_1_proj_in.lora_down.weight': c,
    'lora_unet_input_blocks_4_1_proj_in.lora_up.weight': d,
    'lora_te2_text_model_encoder_layers_3_self_attn_k_proj.lora_down.weight': k,
    'lora_te2_text_model_encoder_layers_3_self_attn_k_proj.lora_up.weight': l,
    'lora_te2_text_model_encoder_layers_3_mlp_fc1.lora_down.weight': e,
    'lora_te2_text_model_encoder_layers_3_mlp_fc1.lora_up.weight': f,
    'lora_te1_text_model_encoder_layers_0_mlp_fc1.lora_down.weight': e,
    'lora_te1_text_model_encoder_layers_0_mlp_fc1.lora_up.weight': f,
  };
  const diffusers: Values = {
    'unet.down_blocks.1.attentions.0.proj_in.lora_A.weight': c,
    'unet.down_blocks.1.attentions.0.proj_in.lora_B.weight': d,
    'text_encoder_2.text_model.encoder.layers.3.self_attn.k_proj.lora_A.weight': k,
    'text_encoder_2.text_model.encoder.layers.3.self_attn.k_proj.lora_B.weight': l,
  };
  const folders = {
    base: loraFile('base', base, 'F32', 'sdxl'),
    one: loraFile('one', kohya),
    two: loraFile('two', diffusers),
  };

  it('takes a LoRA of kohya, kernels, α and both text encoders', async () => {
    await merged(recipe(ONE), folders, base, {
      [CONV]: changed(base[CONV]!, [0, product(a, b, 1 / 2), 0.5]),
      [PROJ]: changed(base[PROJ]!, [0, product(c, d, 1), 0.5]),
      [FUSED]: changed(base[FUSED]!, [4, product(k, l, 1), 0.5]),
      [FC]: changed(base[FC]!, [0, product(e, f, 1), 0.5]),
      [CLIP]: changed(base[CLIP]!, [0, product(e, f, 1), 0.5]),
    });
  });

  it('takes LoRAs of two tools at once', async () => {
    const both = `${ONE}, {model: base+two, parameters: {weight: -0.25}}`;
    await merged(recipe(both), folders, base, {
      [CONV]: changed(base[CONV]!, [0, product(a, b, 1 / 2), 0.5]),
      [PROJ]: changed(base[PROJ]!, [0, product(c, d, 1), 0.25]),
      [FUSED]: changed(base[FUSED]!, [4, product(k, l, 1), 0.25]),
      [FC]: changed(base[FC]!, [0, product(e, f, 1), 0.5]),
      [CLIP]: changed(base[CLIP]!, [0, product(e, f, 1), 0.5]),
    });
  });

  it('keeps the name of its file, and needs no config', async () => {
    const { plan } = await planInNode(recipe(ONE), '.', folders);
    expect(plan.shards.map(({ file }) => file)).toEqual(['sdxl.safetensors']);
    expect(plan.extras.map(({ path }) => path)).toEqual(['mergekit_config.yml', 'README.md']);
    expect(plan.problems).toEqual([]);
  });

  it('has its blocks counted as those who weigh blocks count them', async () => {
    const into = await planInNode(recipe(ONE), '.', folders);
    const alone = `merge_method: task_arithmetic\nmodels: [{model: one, parameters: {weight: 1}}]\namalgam: {output: adapter}\n`;
    const lora = await planInNode(alone, '.', folders);
    const places = ({ plan }: typeof into) =>
      new Set(plan.tensors.map(({ role: { stack, layer, module } }) => `${stack} ${layer} ${module}`));
    expect([...places(into)].sort()).toEqual([
      'input 4 in_layers.2',
      'input 4 proj_in',
      'text encoder 0 mlp.fc1',
      'text encoder 2 3 attn.in_proj_weight',
      'text encoder 2 3 mlp.c_fc',
      'undefined null decoder.conv_in',
      'undefined null out.0.bias',
      'undefined null text_model.embeddings.token_embedding',
    ]);
    expect([...places(lora)].filter((place) => place.endsWith('_A')).sort()).toEqual([
      'input 4 in_layers.2.lora_A',
      'input 4 proj_in.lora_A',
      'text encoder 0 mlp.fc1.lora_A',
      'text encoder 2 3 mlp.fc1.lora_A',
      'text encoder 2 3 self_attn.k_proj.lora_A',
    ]);
  });

  it('is known as what its LoRAs are for, whoever names their modules', async () => {
    const [whole, ...loras] = await Promise.all(
      ['base', 'one', 'two'].map(async (name) =>
        describeModel(await openModel(folders[name as keyof typeof folders], name)),
      ),
    );
    expect([whole, ...loras].every((model) => model?.isImage)).toBe(true);
    for (const { weights } of loras)
      for (const [unit, shapes] of Object.entries(weights!)) expect(whole!.weights![unit]).toEqual(shapes);
    expect(Object.keys(loras[1]!.weights!)).toEqual(['unet.down_blocks.#.attentions.#.proj_in']);
  });

  it('is merged with another of its kind', async () => {
    const other = Object.fromEntries(
      Object.entries(base).map(([name, { shape }], i) => [name, tensor(50 + i, ...shape)]),
    );
    const text =
      'merge_method: linear\nmodels: [{model: base, parameters: {weight: 0.25}}, {model: other, parameters: {weight: 0.75}}]\n';
    const mean = Object.entries(base).map(([name, { values }]) => [
      name,
      Float64Array.from(values, (v, i) => 0.25 * v + 0.75 * other[name]!.values[i]!),
    ]);
    const wanted = Object.fromEntries(mean);
    await merged(text, { ...folders, other: loraFile('other', other) }, base, wanted);
  });

  it('without a text encoder says that the LoRA’s is left out', async () => {
    const drawing = Object.fromEntries(Object.entries(base).filter(([name]) => name.startsWith('model.')));
    const { plan } = await planInNode(recipe(ONE), '.', { ...folders, base: loraFile('base', drawing) });
    expect(plan.problems.map(({ severity, code }) => [severity, code])).toEqual([
      ['warning', 'AdapterPartAbsent'],
    ]);
    expect(plan.problems[0]!.message).toMatch(/3 modules of it are not merged \(text_encoder\.text_model/);
  });

  it.each([
    ['a module that is not there', 'lora_unet_input_blocks_7_1_proj_in', 'do not exist in|does not exist in'],
    ['a LoRA of another model', 'transformer.double_blocks.0.img_attn.qkv', 'does not exist in'],
  ])('refuses %s by name', async (_, module, message) => {
    const one = loraFile('one', { [`${module}.lora_down.weight`]: c, [`${module}.lora_up.weight`]: d });
    await expect(planInNode(recipe(ONE), '.', { ...folders, one })).rejects.toThrow(new RegExp(message));
  });

  it('has no GGUF form', async () => {
    const text = recipe(ONE, 'amalgam: {gguf: F16}\n');
    await expect(planInNode(text, '.', folders)).rejects.toThrow('no model of images is written so');
  });

  it('refuses slices', async () => {
    const text = 'merge_method: passthrough\nslices: [{sources: [{model: base, layer_range: [0, 1]}]}]\n';
    await expect(planInNode(text, '.', folders)).rejects.toThrow(/stack/);
  });
});

describe('matrices that are one in a checkpoint and several in a LoRA, or the other way round', () => {
  const D = 4;
  const QKV = 'double_blocks.0.img_attn.qkv';
  const LINEAR = 'single_blocks.2.linear1';
  const FINAL = 'final_layer.adaLN_modulation.1';
  const ldm: Values = {
    [`${QKV}.weight`]: tensor(21, 3 * D, D),
    [`${LINEAR}.weight`]: tensor(22, 7 * D, D),
    [`${FINAL}.weight`]: tensor(23, 2 * D, D),
    'double_blocks.0.img_attn.norm.query_norm.scale': tensor(24, D),
  };
  const rows = (weight: Values[string], begin: number, count: number) => ({
    shape: [count, D],
    values: weight.values.slice(begin * D, (begin + count) * D),
  });
  const [qkv, linear, final] = [`${QKV}.weight`, `${LINEAR}.weight`, `${FINAL}.weight`].map(
    (n) => ldm[n]!,
  ) as [Values[string], Values[string], Values[string]];
  const block = 'transformer_blocks.0.attn';
  const single = 'single_transformer_blocks.2';
  /** The same weights as diffusers has them. */
  const split: Values = {
    [`${block}.to_q.weight`]: rows(qkv, 0, D),
    [`${block}.to_k.weight`]: rows(qkv, D, D),
    [`${block}.to_v.weight`]: rows(qkv, 2 * D, D),
    [`${single}.attn.to_q.weight`]: rows(linear, 0, D),
    [`${single}.attn.to_k.weight`]: rows(linear, D, D),
    [`${single}.attn.to_v.weight`]: rows(linear, 2 * D, D),
    [`${single}.proj_mlp.weight`]: rows(linear, 3 * D, 4 * D),
    'norm_out.linear.weight': {
      shape: [2 * D, D],
      values: Float32Array.of(...rows(final, D, D).values, ...rows(final, 0, D).values),
    },
  };
  const factors = (module: string, seed: number, outputs: number, rank: number): Values => ({
    [`${module}.lora_A.weight`]: tensor(seed, rank, D),
    [`${module}.lora_B.weight`]: tensor(seed + 1, outputs, rank),
  });
  const change = (values: Values, module: string) =>
    product(values[`${module}.lora_A.weight`]!, values[`${module}.lora_B.weight`]!, 1);
  const apart = {
    ...factors(`transformer.${block}.to_q`, 31, D, 2),
    ...factors(`transformer.${block}.to_v`, 33, D, 3),
    ...factors(`transformer.${single}.proj_mlp`, 35, 4 * D, 2),
    ...factors('transformer.norm_out.linear', 37, 2 * D, 1),
  };
  const fused = {
    ...factors(`diffusion_model.${QKV}`, 41, 3 * D, 2),
    ...factors(`diffusion_model.${LINEAR}`, 43, 7 * D, 3),
    ...factors(`diffusion_model.${FINAL}`, 45, 2 * D, 2),
  };

  it('several into one', async () => {
    const ending = change(apart, 'transformer.norm_out.linear');
    const swapped = Float64Array.of(...ending.subarray(D * D), ...ending.subarray(0, D * D));
    await merged(recipe(ONE), { base: loraFile('base', ldm), one: loraFile('one', apart) }, ldm, {
      [`${QKV}.weight`]: changed(
        qkv,
        [0, change(apart, `transformer.${block}.to_q`), 0.5],
        [2 * D, change(apart, `transformer.${block}.to_v`), 0.5],
      ),
      [`${LINEAR}.weight`]: changed(linear, [3 * D, change(apart, `transformer.${single}.proj_mlp`), 0.5]),
      [`${FINAL}.weight`]: changed(final, [0, swapped, 0.5]),
    });
  });

  it('one into several', async () => {
    const parts = (module: string, begin: number, count: number) =>
      change(fused, `diffusion_model.${module}`).subarray(begin * D, (begin + count) * D);
    const wanted = Object.fromEntries(
      [
        [`${block}.to_q`, QKV, 0, D],
        [`${block}.to_k`, QKV, D, D],
        [`${block}.to_v`, QKV, 2 * D, D],
        [`${single}.attn.to_q`, LINEAR, 0, D],
        [`${single}.attn.to_k`, LINEAR, D, D],
        [`${single}.attn.to_v`, LINEAR, 2 * D, D],
        [`${single}.proj_mlp`, LINEAR, 3 * D, 4 * D],
      ].map(([name, module, begin, count]) => [
        `${name}.weight`,
        changed(split[`${name}.weight`]!, [
          0,
          parts(module as string, begin as number, count as number),
          0.5,
        ]),
      ]),
    );
    wanted['norm_out.linear.weight'] = changed(
      split['norm_out.linear.weight']!,
      [0, parts(FINAL, D, D), 0.5],
      [D, parts(FINAL, 0, D), 0.5],
    );
    await merged(recipe(ONE), { base: loraFile('base', split), one: loraFile('one', fused) }, split, wanted);
  });

  it('as they are', async () => {
    await merged(recipe(ONE), { base: loraFile('base', ldm), one: loraFile('one', fused) }, ldm, {
      [`${QKV}.weight`]: changed(qkv, [0, change(fused, `diffusion_model.${QKV}`), 0.5]),
      [`${LINEAR}.weight`]: changed(linear, [0, change(fused, `diffusion_model.${LINEAR}`), 0.5]),
      [`${FINAL}.weight`]: changed(final, [0, change(fused, `diffusion_model.${FINAL}`), 0.5]),
    });
  });
});

describe('a folder of diffusers', () => {
  const transformer = {
    one: { 'transformer_blocks.0.attn.to_q.weight': tensor(61, 4, 4) },
    two: { 'transformer_blocks.1.attn.to_q.weight': tensor(62, 4, 4), 'norm_q.weight': tensor(63, 4) },
  };
  const encoder = { 'text_model.encoder.layers.0.mlp.fc1.weight': tensor(64, 8, 4) };
  const vae = { 'decoder.conv_in.weight': tensor(65, 4, 4, 3, 3) };
  const names = {
    one: 'diffusion_pytorch_model-00001-of-00002',
    two: 'diffusion_pytorch_model-00002-of-00002',
  };
  const text = (value: object) => new TextEncoder().encode(JSON.stringify(value));
  const index = {
    metadata: { total_size: 144 },
    weight_map: {
      'norm_q.weight': `${names.two}.safetensors`,
      'transformer_blocks.0.attn.to_q.weight': `${names.one}.safetensors`,
      'transformer_blocks.1.attn.to_q.weight': `${names.two}.safetensors`,
    },
  };
  const files = {
    'model_index.json': text({ _class_name: 'FluxPipeline' }),
    'transformer/config.json': text({ _class_name: 'FluxTransformer2DModel' }),
    [`transformer/${names.one}.safetensors`]: fileBytes(transformer.one),
    [`transformer/${names.two}.safetensors`]: fileBytes(transformer.two),
    'transformer/diffusion_pytorch_model.safetensors.index.json': text(index),
    'text_encoder/config.json': text({ model_type: 'clip_text_model' }),
    'text_encoder/model.safetensors': fileBytes(encoder),
    'text_encoder/model.fp16.safetensors': fileBytes(encoder, 'F16'),
    'vae/config.json': text({ _class_name: 'AutoencoderKL' }),
    'vae/diffusion_pytorch_model.safetensors': fileBytes(vae),
    'tokenizer/vocab.json': text({}),
  };
  const lora: Values = {
    'transformer.transformer_blocks.1.attn.to_q.lora_A.weight': tensor(66, 2, 4),
    'transformer.transformer_blocks.1.attn.to_q.lora_B.weight': tensor(67, 4, 2),
    'text_encoder.text_model.encoder.layers.0.mlp.fc1.lora_A.weight': tensor(68, 2, 4),
    'text_encoder.text_model.encoder.layers.0.mlp.fc1.lora_B.weight': tensor(69, 8, 2),
  };
  const folders = { base: memoryFolder('base', files), one: loraFile('one', lora) };

  it('keeps its folders, files and names; what is not merged is copied', async () => {
    const { plan } = await planInNode(recipe(ONE), '.', folders);
    expect(plan.problems).toEqual([]);
    expect(plan.shards.map(({ file }) => file).sort()).toEqual([
      'text_encoder/model.safetensors',
      `transformer/${names.one}.safetensors`,
      `transformer/${names.two}.safetensors`,
      'vae/diffusion_pytorch_model.safetensors',
    ]);
    expect(plan.extras.map(({ path }) => path).sort()).toEqual(
      [
        ...['README.md', 'mergekit_config.yml', 'model_index.json', 'tokenizer/vocab.json'],
        ...['text_encoder', 'transformer', 'vae'].map((part) => `${part}/config.json`),
        'transformer/diffusion_pytorch_model.safetensors.index.json',
      ].sort(),
    );
    const made = plan.extras.find(({ path }) => path.endsWith('.index.json'))!.content as { text: string };
    expect(JSON.parse(made.text)).toEqual(index);
    const [q, fc] = Object.keys(lora)
      .filter((key) => key.includes('_A'))
      .map((key) => product(lora[key]!, lora[key.replace('_A', '_B')]!, 1));
    const all = { ...transformer.one, ...transformer.two, ...encoder, ...vae };
    await merged(recipe(ONE), folders, all, {
      'transformer_blocks.1.attn.to_q.weight': changed(
        transformer.two['transformer_blocks.1.attn.to_q.weight'],
        [0, q!, 0.5],
      ),
      'text_model.encoder.layers.0.mlp.fc1.weight': changed(
        encoder['text_model.encoder.layers.0.mlp.fc1.weight'],
        [0, fc!, 0.5],
      ),
    });
  });

  it('one part of it is a model too', async () => {
    const part = Object.entries(files).filter(([path]) => path.startsWith('transformer/'));
    const base = memoryFolder(
      'base',
      Object.fromEntries(part.map(([path, bytes]) => [path.slice(12), bytes])),
    );
    const only = Object.fromEntries(Object.entries(lora).filter(([key]) => key.startsWith('transformer.')));
    const { plan } = await planInNode(recipe(ONE), '.', { base, one: loraFile('one', only) });
    expect(plan.shards.map(({ file }) => file).sort()).toEqual([
      `${names.one}.safetensors`,
      `${names.two}.safetensors`,
    ]);
    expect(plan.extras.map(({ path }) => path)).toContain('config.json');
  });
});
