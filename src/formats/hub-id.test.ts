import { describe, expect, test } from 'vitest';
import { addressedId, isRepoId, isRevision, parseHubId } from './hub-id';

test.each([
  'gpt2',
  'owner/name',
  'HuggingFaceTB/SmolLM2-135M',
  '01-ai/Yi-6B',
  'a/b',
  'a_b/c.d-e',
  'datasets/x',
])('%s is a model id', (id) => expect(isRepoId(id)).toBe(true));

test.each([
  '',
  '/',
  'a/',
  '/a',
  'a/b/c',
  '.a/b',
  'a/-b',
  'a/b.',
  'a--b/c',
  'a/b..c',
  'a/b.git',
  'a b/c',
  'a/b?x',
  'a/文件',
  '../etc',
  'a/..',
  '"><img onerror=1>',
  'javascript:alert(1)',
  `a/${'x'.repeat(97)}`,
])('%j is no model id', (id) => expect(isRepoId(id)).toBe(false));

test('revisions are git names', () => {
  for (const name of ['main', 'v1.0', 'refs/pr/7', 'feature/x', 'a'.repeat(40)])
    expect(isRevision(name)).toBe(true);
  for (const name of ['', '..', 'a..b', '/a', 'a/', 'a//b', '-a', 'a b', 'a?b', 'a#b', '.a', 'a.lock', 'é']) {
    expect(isRevision(name)).toBe(false);
  }
});

describe('parseHubId', () => {
  test.each([
    ['  owner/name ', { id: 'owner/name' }],
    ['gpt2', { id: 'gpt2' }],
    ['owner/name@v1', { id: 'owner/name', revision: 'v1' }],
    ['https://huggingface.co/owner/name', { id: 'owner/name' }],
    ['http://huggingface.co/owner/name/', { id: 'owner/name' }],
    ['huggingface.co/owner/name', { id: 'owner/name' }],
    ['hf.co/owner/name', { id: 'owner/name' }],
    ['https://huggingface.co/owner/name?library=transformers#usage', { id: 'owner/name' }],
    ['https://huggingface.co/owner/name/tree/main', { id: 'owner/name', revision: 'main' }],
    ['https://huggingface.co/owner/name/tree/refs%2Fpr%2F3', { id: 'owner/name', revision: 'refs/pr/3' }],
    ['https://huggingface.co/owner/name/tree/refs/pr/3/', { id: 'owner/name', revision: 'refs/pr/3' }],
    [
      'https://huggingface.co/owner/name/blob/refs/pr/3/config.json',
      { id: 'owner/name', revision: 'refs/pr/3' },
    ],
    ['https://huggingface.co/owner/name/blob/v2/config.json', { id: 'owner/name', revision: 'v2' }],
    ['https://huggingface.co/owner/name/resolve/v2/model.safetensors', { id: 'owner/name', revision: 'v2' }],
    ['https://huggingface.co/owner/name/commit/0123abc', { id: 'owner/name', revision: '0123abc' }],
    ['https://huggingface.co/owner/name/discussions/4', { id: 'owner/name' }],
    ['owner/name/m-Q4_K_M.gguf@v1', { id: 'owner/name/m-Q4_K_M.gguf', revision: 'v1' }],
    ['https://huggingface.co/owner/name/blob/main/m.gguf', { id: 'owner/name/m.gguf', revision: 'main' }],
    ['https://huggingface.co/gpt2', { id: 'gpt2' }],
    ['https://huggingface.co/gpt2/tree/main', { id: 'gpt2', revision: 'main' }],
  ])('%s', (text, want) => {
    expect(parseHubId(text)).toEqual(want);
  });

  test('addresses of another hub are taken when that hub is in use', () => {
    expect(parseHubId('http://127.0.0.1:8080/a/b/tree/x', 'http://127.0.0.1:8080')).toEqual({
      id: 'a/b',
      revision: 'x',
    });
    expect(() => parseHubId('http://127.0.0.1:8080/a/b')).toThrow(/127\.0\.0\.1:8080 is not the hub in use/);
  });

  test.each([
    'tree/main/onnx',
    'tree/refs/pr/3/sub',
    'blob/v2/a/b/config.json',
    'resolve/main/sub/model.safetensors',
  ])('a folder inside of a repository is refused in words: %s', (path) => {
    for (const host of ['https://huggingface.co', 'hf.co']) {
      expect(() => parseHubId(`${host}/owner/name/${path}`)).toThrow(
        /leads to the folder .* inside of owner\/name/,
      );
    }
  });

  test('an address stands for an id wherever a model is named', () => {
    expect(addressedId('https://huggingface.co/owner/name/tree/main')).toBe('owner/name@main');
    expect(addressedId('hf.co/owner/name')).toBe('owner/name');
    expect(addressedId('hf.co/owner/name@refs/pr/1')).toBe('owner/name@refs/pr/1');
    expect(addressedId('https://hub.test/a/b/blob/v1/config.json', 'https://hub.test')).toBe('a/b@v1');
    for (const name of ['owner/name', 'owner/name@main', './hf.co', 'gpt2', '/a/b']) {
      expect(addressedId(name)).toBeUndefined();
    }
    expect(() => addressedId('https://example.org/a/b')).toThrow(/example\.org is not the hub in use/);
  });

  test.each([
    '',
    'owner/name/more',
    'https://huggingface.co/',
    'https://huggingface.co/datasets/owner/name',
    'https://huggingface.co/spaces/owner/name',
    'https://example.org/owner/name',
    'https://huggingface.co.evil.org/owner/name',
    'https://evil.org/huggingface.co/owner/name',
    'https://huggingface.co/owner/..%2f..%2fname',
    'https://huggingface.co/owner/name/tree/..%2fx',
    'https://huggingface.co/owner/name/tree/%',
    'javascript:alert(1)',
    'owner/name@',
    'owner/name@a b',
    'file:///etc/passwd',
  ])('%j is refused', (text) => {
    expect(() => parseHubId(text)).toThrow(expect.objectContaining({ code: 'UnsafeName' }));
  });
});
