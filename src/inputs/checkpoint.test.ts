import { describe, expect, it } from 'vitest';
import { bufferSource } from '../sources/byte-source';
import type { ModelFolder } from '../sources/model-folder';
import { openAdapter } from './adapter';
import { openCheckpoint } from './checkpoint';
import { factors, memoryFolder, safetensors, tinyAdapter, tinyModel } from './memory-models.test.support';
import { describeModel, openModel } from './opened-model';

const weights = safetensors({ 'a.weight': ['F32', [2]] });
const index = (map: Record<string, string>) => ({ metadata: { total_size: 1 }, weight_map: map });

describe('R15 R16: openCheckpoint', () => {
  it('reads config and header of a single file', async () => {
    const checkpoint = await openCheckpoint(tinyModel('m'), 'owner/m@1');
    expect(checkpoint.family?.id).toBe('llama');
    expect(checkpoint.config?.layers).toBe(2);
    expect(checkpoint.tensors.size).toBe(8);
    const ref = checkpoint.tensors.get('model.layers.1.mlp.up_proj.weight')!;
    expect(ref).toMatchObject({
      folder: 'owner/m@1',
      file: 'model.safetensors',
      dtype: 'F32',
      shape: [8, 4],
    });
    expect(ref.end - ref.begin).toBe(8 * 4 * 4);
  });

  it('reads a header longer than the first read, and nothing of the data', async () => {
    const names = Array.from(
      { length: 900 },
      (_, i) => [`layers.${i}.${'x'.repeat(40)}.weight`, ['U8', [3]]] as const,
    );
    const file = safetensors(Object.fromEntries(names) as never);
    const reads: [number, number][] = [];
    const source = bufferSource(file);
    const folder: ModelFolder = {
      path: 'm',
      origin: { kind: 'local' },
      files: [
        {
          path: 'model.safetensors',
          byteLength: file.length,
          open: () => ({
            byteLength: file.length,
            read(begin, end, signal) {
              reads.push([begin, end]);
              return source.read(begin, end, signal);
            },
          }),
        },
      ],
    };
    const { tensors } = await openCheckpoint(folder);
    expect(tensors.size).toBe(900);
    expect(reads).toEqual([
      [0, 32768],
      [32768, file.length - 2700],
    ]);
  });

  it('reads shards by their index', async () => {
    const folder = memoryFolder('m', {
      'model.safetensors.index.json': index({ 'a.weight': '1.safetensors', 'b.weight': '2.safetensors' }),
      '1.safetensors': weights,
      '2.safetensors': safetensors({ 'b.weight': ['F32', [2]] }),
      'consolidated.safetensors': weights,
    });
    const checkpoint = await openCheckpoint(folder);
    expect([...checkpoint.tensors].map(([name, ref]) => [name, ref.file])).toEqual([
      ['a.weight', '1.safetensors'],
      ['b.weight', '2.safetensors'],
    ]);
    expect(describeModel(checkpoint).bytes).toBe(weights.length * 2);
  });

  it('takes the one safetensors file there is, whatever its name', async () => {
    expect((await openCheckpoint(memoryFolder('m', { 'x.safetensors': weights }))).tensors.size).toBe(1);
  });

  const refused: [string, Record<string, Uint8Array<ArrayBuffer> | string | object>, string, RegExp][] = [
    ['only pickles', { 'pytorch_model.bin': 'x' }, 'NotSafetensors', /pytorch_model\.bin/],
    ['nothing', { 'config.json': {} }, 'NotFound', /no safetensors file/],
    ['weights in a sub-folder', { 'sub/model.safetensors': weights }, 'NotFound', /no safetensors file/],
    [
      'several files, no index',
      { 'a.safetensors': weights, 'b.safetensors': weights },
      'NotFound',
      /no index/,
    ],
    [
      'shards that are not there',
      {
        'model.safetensors.index.json': index({ a: '1.safetensors', b: '2.safetensors' }),
        '1.safetensors': weights,
      },
      'NotFound',
      /1 of the 2 weight files that its index names: 2\.safetensors/,
    ],
    [
      'an index that lists what is not stored, and not what is',
      { 'model.safetensors.index.json': index({ 'b.weight': '1.safetensors' }), '1.safetensors': weights },
      'IndexInvalid',
      /b\.weight \(1\.safetensors\); stored but not listed: a\.weight \(1\.safetensors\)/,
    ],
    [
      'a tensor in two shards',
      {
        'model.safetensors.index.json': index({ 'a.weight': '1.safetensors', 'b.weight': '2.safetensors' }),
        '1.safetensors': weights,
        '2.safetensors': weights,
      },
      'IndexInvalid',
      /a\.weight is stored twice/,
    ],
    [
      'an index that leaves its folder',
      { 'model.safetensors.index.json': index({ a: '../1.safetensors' }), '1.safetensors': weights },
      'UnsafePath',
      /\.\.\/1\.safetensors/,
    ],
    [
      'a git-lfs pointer',
      { 'model.safetensors': 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4\n' },
      'LfsPointer',
      /m\/model\.safetensors/,
    ],
    [
      'a config that is a git-lfs pointer',
      { 'config.json': 'version https://git-lfs.github.com/spec/v1\n', 'model.safetensors': weights },
      'LfsPointer',
      /m\/config\.json/,
    ],
    [
      'a broken config',
      { 'config.json': '{"a":', 'model.safetensors': weights },
      'JsonInvalid',
      /m\/config\.json/,
    ],
    [
      'LoRA factors of an image tool',
      { 'lora.safetensors': safetensors({ 'text_encoder:0:down': ['F16', [1, 768]] }) },
      'AdapterUnsupported',
      /text_encoder:0:down/,
    ],
    [
      'PEFT factors under the name of a model',
      { 'model.safetensors': safetensors(factors('layers.0.q', 4, 4)) },
      'AdapterUnsupported',
      /lora_A/,
    ],
  ];
  it.each(refused)('refuses %s', async (_, files, code, message) => {
    const opening = openModel(memoryFolder('m', files));
    await expect(opening).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
    await expect(opening).rejects.toMatchObject({ hint: expect.stringMatching(/\w/) });
  });
});

describe('openAdapter', () => {
  it('reads config and factors', async () => {
    const adapter = await openAdapter(
      tinyAdapter('kitchen', factors('model.layers.0.self_attn.q_proj', 4, 6), { use_rslora: true }),
    );
    const update = adapter.updates.get('model.layers.0.self_attn.q_proj')!;
    expect(update).toMatchObject({ kind: 'linear', rank: 2, a: { shape: [2, 4] }, b: { shape: [6, 2] } });
    expect(update.scale).toBeCloseTo(4 / Math.sqrt(2), 15);
    expect(describeModel(adapter)).toMatchObject({
      ref: 'kitchen',
      kind: 'adapter',
      parameters: 2 * 4 + 6 * 2,
      adapter: { rank: 2 },
    });
  });

  const refused: [string, Record<string, Uint8Array<ArrayBuffer> | string | object>, string, RegExp][] = [
    [
      'weights without config',
      { 'adapter_model.safetensors': weights },
      'AdapterInvalid',
      /no adapter_config\.json/,
    ],
    [
      'a pickle',
      { 'adapter_config.json': { peft_type: 'LORA', r: 8, lora_alpha: 8 }, 'adapter_model.bin': 'x' },
      'NotSafetensors',
      /adapter_model\.bin/,
    ],
    [
      'another method, before it looks for weights',
      { 'adapter_config.json': { peft_type: 'PREFIX_TUNING' }, 'adapter_model.bin': 'x' },
      'AdapterUnsupported',
      /PREFIX_TUNING adapter, which adds to the input/,
    ],
    [
      'a kind nobody knows',
      { 'adapter_config.json': { peft_type: 'NEWLORA' }, 'adapter_model.bin': 'x' },
      'AdapterUnsupported',
      /NEWLORA adapter, a kind that is not known/,
    ],
    [
      'factors of mlx_lm without their config',
      {
        'config.json': {},
        'adapters.safetensors': safetensors({ 'model.layers.0.q.lora_a': ['F32', [4, 2]] }),
      },
      'AdapterUnsupported',
      /lora_a/,
    ],
    [
      'a config alone',
      { 'adapter_config.json': { peft_type: 'LORA', r: 8, lora_alpha: 8 } },
      'NotFound',
      /no adapter_model/,
    ],
  ];
  it.each(refused)('refuses %s', async (_, files, code, message) => {
    await expect(openModel(memoryFolder('a', files))).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
  });
});

describe('adapters that are not whole get their own next step', () => {
  const config = (more: object = {}) => ({
    peft_type: 'LORA',
    r: 2,
    lora_alpha: 4,
    target_modules: [],
    ...more,
  });
  const lora = factors('model.layers.0.self_attn.q_proj', 4, 4);
  const embedding = 'base_model.model.model.embed_tokens.weight';
  const empty = Object.fromEntries(
    Object.keys(lora).map((name) => [name, ['F32', [0]] as ['F32', number[]]]),
  );
  const peft = (shapes: typeof lora, more: object = {}) => ({
    'adapter_config.json': config(more),
    'adapter_model.safetensors': safetensors(shapes),
  });
  const mlx = { 'adapter_config.json': { lora_layers: 1, lora_parameters: { rank: 2, scale: 20 } } };
  it.each<[string, Record<string, Uint8Array<ArrayBuffer> | string | object>, RegExp, RegExp]>([
    ['all factors empty', peft(empty), /no values in 2 of its 2 tensors.*ZeRO-3/, /zero_to_fp32/],
    [
      'one saved module empty',
      peft({ ...lora, [embedding]: ['F32', [0]] }, { modules_to_save: ['embed_tokens'] }),
      /no values in 1 of its 3 tensors, such as “base_model\.model\.model\.embed_tokens\.weight”/,
      /stage3_gather_16bit_weights_on_model_save/,
    ],
    [
      'arrays of NumPy',
      { ...mlx, 'adapters.npz': 'PK' },
      /early mlx_lm only: adapters\.npz/,
      /mx\.save_safetensors/,
    ],
    [
      'a kind of mlx_lm that is no LoRA',
      {
        'adapter_config.json': { ...mlx['adapter_config.json'], fine_tune_type: 'dora' },
        'adapters.npz': 'PK',
      },
      /of the type dora/,
      /mlx_lm\.fuse/,
    ],
  ])('%s', async (_, files, message, hint) => {
    await expect(openModel(memoryFolder('a', files))).rejects.toMatchObject({
      message: expect.stringMatching(message),
      hint: expect.stringMatching(hint),
    });
  });
});

describe('describeModel', () => {
  it('counts parameters, dtypes and layers, and pins a Hub model', async () => {
    const folder = tinyModel('owner/m', { dtype: 'BF16', tensors: { 'h.0.attn.bias': ['U8', [2, 2]] } });
    const commit = '0123456789abcdef0123456789abcdef01234567';
    const hub = { ...folder, origin: { kind: 'hub', repo: 'owner/m', revision: 'main', commit } as const };
    const info = describeModel(await openModel(hub, `owner/m@${commit}`), { license: 'mit' });
    expect(info).toMatchObject({
      ref: `owner/m@${commit}`,
      title: 'owner/m',
      origin: 'hub',
      family: 'llama',
      dtypes: { BF16: 8, U8: 1 },
      parameters: 8 * 4 + 2 * (16 + 32 + 4) + 4 + 4,
      layers: 2,
      commit,
      license: 'mit',
    });
  });
});

it.each([
  ['pytorch_model.bin', /pickle/],
  ['model.onnx', /ONNX .* cannot be made into one again/],
  ['weights.npz', /mx.save_safetensors/],
])('a folder with %s alone gets the advice that fits', async (file, hint) => {
  const folder = memoryFolder('m', { 'config.json': '{}', [file]: 'x' });
  await expect(openCheckpoint(folder, 'm')).rejects.toMatchObject({
    code: 'NotSafetensors',
    hint: expect.stringMatching(hint),
  });
});

it.each([
  ['model.safetensors.incomplete', 'x', 'NotFound', /Finish the download/],
  ['model.safetensors', '# xet version 0\nfilesize = 1\n', 'NotSafetensors', /git-xet/],
  ['model.safetensors', `<!DOCTYPE html>${' '.repeat(40)}`, 'NotSafetensors', /sign in/],
  ['model.safetensors', 'version https://git-lfs.github.com/spec/v1\n', 'LfsPointer', /git lfs pull/],
])('%s that is no weights yet gets its own next step', async (file, content, code, hint) => {
  const folder = memoryFolder('m', { 'config.json': '{}', [file]: content });
  await expect(openCheckpoint(folder, 'm')).rejects.toMatchObject({
    code,
    hint: expect.stringMatching(hint),
  });
});
