import { describe, expect, test } from 'vitest';
import { foldersFromFiles } from './local-folder';

const local = (path: string, content = path) => ({
  path,
  file: new File([content], path.split('/').at(-1) ?? ''),
});
const outline = (paths: string[]) =>
  foldersFromFiles(paths.map((p) => local(p))).map((f) => [f.path, f.files.map((file) => file.path)]);

describe('grouping files into models', () => {
  test('one folder, with its nested files that are no models', () => {
    expect(
      outline([
        'llama/config.json',
        'llama/model.safetensors',
        'llama/original/params.txt',
        'llama/README.md',
      ]),
    ).toEqual([['llama', ['config.json', 'model.safetensors', 'original/params.txt', 'README.md']]]);
  });

  test('a family in one folder: each subfolder is a model, the folder itself is not', () => {
    expect(
      outline([
        'family/notes.txt',
        'family/base/config.json',
        'family/base/model.safetensors',
        'family/kitchen/adapter_config.json',
        'family/loose/weights.safetensors',
      ]),
    ).toEqual([
      ['family/base', ['config.json', 'model.safetensors']],
      ['family/kitchen', ['adapter_config.json']],
      ['family/loose', ['weights.safetensors']],
    ]);
  });

  test('a model inside a model takes its own files', () => {
    expect(
      outline(['m/config.json', 'm/adapter/adapter_config.json', 'm/adapter/deep/x.bin', 'm/deep/y.bin']),
    ).toEqual([
      ['m', ['config.json', 'deep/y.bin']],
      ['m/adapter', ['adapter_config.json', 'deep/x.bin']],
    ]);
  });

  test('folders of diffusers are one model, and what lies beside them is another', () => {
    const parts = ['model_index.json', 'unet/config.json', 'unet/diffusion_pytorch_model.safetensors'];
    const whole = [...parts, 'vae/odd.safetensors', 'sdxl.safetensors'];
    expect(outline([...whole.map((path) => `sdxl/${path}`), 'ink.safetensors'])).toEqual([
      ['sdxl', whole],
      ['ink', ['ink.safetensors']],
    ]);
  });

  test('files picked one by one are one model', () => {
    expect(outline(['config.json', 'model.safetensors'])).toEqual([
      ['files', ['config.json', 'model.safetensors']],
    ]);
  });

  test('GGUF: one in a folder is that folder, of several each is a model, and so is one alone; parts stay together', () => {
    const blob = `sha256-${'0a'.repeat(32)}`;
    expect(
      outline([
        'one/m.gguf',
        'one/tokenizer.json',
        'one/mmproj-m.gguf',
        'many/a-Q8_0.gguf',
        'many/b-00001-of-00002.gguf',
        'many/b-00002-of-00002.gguf',
        'many/config.json',
        'full/model.safetensors',
        'full/m.gguf',
        `ollama/${blob}`,
        'c.gguf',
        'lora/adapter_config.json',
      ]),
    ).toEqual([
      ['full', ['model.safetensors', 'm.gguf']],
      ['lora', ['adapter_config.json']],
      ['one', ['m.gguf', 'tokenizer.json', 'mmproj-m.gguf']],
      ['many/a-Q8_0', ['a-Q8_0.gguf']],
      ['many/b', ['b-00001-of-00002.gguf', 'b-00002-of-00002.gguf']],
      ['ollama', [blob]],
      ['c', ['c.gguf']],
    ]);
  });

  test('safetensors: several that nothing joins are a model each, and so is one that is picked alone', () => {
    expect(
      outline([
        'loras/a.safetensors',
        'loras/b.safetensors',
        'loras/a.preview.png',
        'one/only.safetensors',
        'sharded/model-00001-of-00002.safetensors',
        'sharded/model-00002-of-00002.safetensors',
        'indexed/x.safetensors',
        'indexed/y.safetensors',
        'indexed/model.safetensors.index.json',
        'picked.safetensors',
        'other.safetensors',
      ]),
    ).toEqual([
      ['one', ['only.safetensors']],
      ['sharded', ['model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors']],
      ['indexed', ['x.safetensors', 'y.safetensors', 'model.safetensors.index.json']],
      ['loras/a', ['a.safetensors']],
      ['loras/b', ['b.safetensors']],
      ['picked', ['picked.safetensors']],
      ['other', ['other.safetensors']],
    ]);
  });

  test('nothing that is a model gives nothing', () => {
    expect(outline(['photos/a.jpg', 'photos/config.json.bak', 'photos/safetensors'])).toEqual([]);
  });

  test('names of object properties are ordinary names', () => {
    expect(outline(['__proto__/config.json', 'constructor/model.safetensors'])).toEqual([
      ['__proto__', ['config.json']],
      ['constructor', ['model.safetensors']],
    ]);
  });

  test('two files with one path are refused', () => {
    expect(() => foldersFromFiles([local('m/config.json'), local('m/config.json')])).toThrow(
      expect.objectContaining({ code: 'Usage', message: expect.stringContaining('m/config.json') }),
    );
  });

  test('files are read in place', async () => {
    const [folder] = foldersFromFiles([local('m/config.json', '{"a":1}')]);
    const file = folder?.files[0];
    expect(folder?.origin).toEqual({ kind: 'local' });
    expect(file?.byteLength).toBe(7);
    expect(new TextDecoder().decode(await file?.open().read(1, 4))).toBe('"a"');
  });
});
