import { describe, expect, test } from 'vitest';
import { isRepoId, isRevision, parseHubId } from './hub-id';

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
    ['https://huggingface.co/owner/name/tree/refs/pr/3/sub', { id: 'owner/name', revision: 'refs/pr/3' }],
    ['https://huggingface.co/owner/name/blob/v2/config.json', { id: 'owner/name', revision: 'v2' }],
    ['https://huggingface.co/owner/name/resolve/v2/model.safetensors', { id: 'owner/name', revision: 'v2' }],
    ['https://huggingface.co/owner/name/commit/0123abc', { id: 'owner/name', revision: '0123abc' }],
    ['https://huggingface.co/owner/name/discussions/4', { id: 'owner/name' }],
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
