import { expect, test } from 'vitest';
import { parseHubReference } from './hub-reference';

const HUB = 'https://hub.example:8443';

test.each([
  ['meta-llama/Llama-3.2-1B', { repo: 'meta-llama/Llama-3.2-1B' }],
  ['  gpt2 ', { repo: 'gpt2' }],
  ['a/b@v1.0', { repo: 'a/b', revision: 'v1.0' }],
  ['a/b@refs/pr/7', { repo: 'a/b', revision: 'refs/pr/7' }],
  ['https://huggingface.co/a/b', { repo: 'a/b' }],
  ['https://huggingface.co/gpt2', { repo: 'gpt2' }],
  ['https://huggingface.co/a/b/?library=transformers#use', { repo: 'a/b' }],
  ['https://huggingface.co/a/b/tree/dev', { repo: 'a/b', revision: 'dev' }],
  ['https://huggingface.co/a/b/tree/refs%2Fpr%2F7', { repo: 'a/b', revision: 'refs/pr/7' }],
  ['https://huggingface.co/a/b/tree/refs/pr/7/sub', { repo: 'a/b', revision: 'refs/pr/7' }],
  ['https://hf.co/a/b/blob/main/config.json', { repo: 'a/b', revision: 'main' }],
  ['https://huggingface.co/a/b/resolve/main/x.safetensors', { repo: 'a/b', revision: 'main' }],
  ['https://huggingface.co/a/b/discussions/3', { repo: 'a/b' }],
  [`${HUB}/a/b/tree/dev`, { repo: 'a/b', revision: 'dev' }],
])('%s', (text, expected) => {
  expect(parseHubReference(text, HUB)).toEqual(expected);
});

test.each([
  '',
  '@main',
  'a/b/c',
  'a/b@',
  '../b',
  'a/..',
  'a/b@../x',
  'a b/c',
  'a/b?x=1',
  'a/<img onerror=1>',
  'javascript:alert(1)',
  'https://elsewhere.example/a/b',
  'https://huggingface.co/',
  'https://huggingface.co/datasets/a/b',
  'https://huggingface.co/spaces/a/b',
  'https://huggingface.co/a/b/tree/%2e%2e%2fx',
  'https://huggingface.co/a/b/tree/%zz',
  'https://huggingface.co/a/b/tree',
  'https://',
  `${'x'.repeat(97)}/b`,
])('%j names no model', (text) => {
  expect(() => parseHubReference(text, HUB)).toThrow(expect.objectContaining({ code: 'UnsafeName' }));
});
