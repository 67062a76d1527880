import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { Tokenizer as Rust } from 'tokenizers';
import { describe, expect, it } from 'vitest';
import { SAMPLES } from '../../e2e/disk-folder';
import { AmalgamError } from '../errors';
import { fileFault } from '../formats/file-fault';
import { tokenizerFault } from '../formats/tokenizer-fault';
import { ggufTokenizer } from '../gguf/tokenizer';
import { checkVocabulary, createTokenizer } from './tokenizer';
import { TOKENIZERS } from './tokenizers.test.fixture';

const read = (path: string) => readFileSync(`${SAMPLES}/${path}`, 'utf8');
const files = {
  tokenizer: read('base/tokenizer.json'),
  config: read('base/tokenizer_config.json'),
  hasSentencePiece: false,
};
const sample = createTokenizer(files, 'samples/base');
const codeOf = (work: () => unknown) => {
  try {
    work();
  } catch (e) {
    if (e instanceof AmalgamError) return [e.code, e.message, e.hint].join(' | ');
    throw e;
  }
  return 'none';
};

describe('the sample tokenizer', () => {
  const { texts, greedy } = JSON.parse(read('expected.json')) as {
    texts: Record<string, { file: string; tokens_with_bos: number; first_64_ids: number[] }>;
    greedy: Record<string, { prompt: string; prompt_ids: number[]; ids: number[]; text: string }[]>;
  };

  it.each(Object.entries(texts))('%s: the expected ids', (_, { file, tokens_with_bos, first_64_ids }) => {
    const ids = [...sample.prefix, ...sample.encode(read(file))];
    expect(ids.length).toBe(tokens_with_bos);
    expect(ids.slice(0, 64)).toEqual(first_64_ids);
    expect(sample.decode(ids)).toBe(read(file));
  });

  it('knows its size, its BOS and its tokens', () => {
    expect(sample.size).toBe(1024);
    expect(sample.prefix).toEqual([0]);
    expect(sample.idOf('</s>')).toBe(1);
    expect(sample.idOf('no such token')).toBeUndefined();
    expect(sample.decode([])).toBe('');
    expect(sample.decode([0, 1])).toBe('');
  });

  it('decodes the expected continuations, at once and token by token', () => {
    for (const { prompt, prompt_ids, ids, text } of Object.values(greedy).flat()) {
      expect([...sample.prefix, ...sample.encode(prompt)]).toEqual(prompt_ids);
      const stream = sample.stream();
      const told = [...prompt_ids, ...ids].map((id) => stream.push(id)).join('') + stream.end();
      expect(told).toBe(prompt + text);
    }
  });

  it('a stream tells the whole text and never half a character', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 40 }), (text) => {
        // a text may hold the replacement character itself
        fc.pre(!text.includes('\ufffd'));
        const stream = sample.stream();
        const parts = sample.encode(text).map((id) => stream.push(id));
        expect(parts.some((part) => part.includes('\ufffd'))).toBe(false);
        expect(parts.join('') + stream.end()).toBe(text);
      }),
    );
  });
});

describe('what stands in front of a text', () => {
  const json = JSON.parse(files.tokenizer) as Record<string, unknown>;
  const config = JSON.parse(files.config) as Record<string, unknown>;
  const prefix = (change: Record<string, unknown>, settings: Record<string, unknown>) =>
    createTokenizer(
      {
        tokenizer: JSON.stringify({ ...json, ...change }),
        config: JSON.stringify(settings),
        hasSentencePiece: false,
      },
      'm',
    ).prefix;

  it('follows the post-processor alone: transformers 5.18 does not read add_bos_token beside a tokenizer.json', () => {
    expect(prefix({}, {})).toEqual([0]);
    expect(prefix({ post_processor: null }, {})).toEqual([]);
    expect(prefix({ post_processor: null }, config)).toEqual([]);
    expect(prefix({ post_processor: null }, { add_bos_token: true, bos_token: '</s>' })).toEqual([]);
    expect(prefix({}, { ...config, add_bos_token: false })).toEqual([0]);
    expect(prefix({}, { ...config, bos_token: '</s>' })).toEqual([0]);
  });

  it('leaves out what the post-processor appends', () => {
    const single = [
      { SpecialToken: { id: '<s>', type_id: 0 } },
      { Sequence: { id: 'A', type_id: 0 } },
      { SpecialToken: { id: '</s>', type_id: 0 } },
    ];
    const special = (id: string, n: number) => [id, { id, ids: [n], tokens: [id] }];
    const post_processor = {
      type: 'TemplateProcessing',
      single,
      pair: single,
      special_tokens: Object.fromEntries([special('<s>', 0), special('</s>', 1)]),
    };
    expect(prefix({ post_processor }, {})).toEqual([0]);
  });

  it('works without a config', () => {
    expect(createTokenizer({ tokenizer: files.tokenizer, hasSentencePiece: false }, 'm').prefix).toEqual([0]);
  });
});

describe('refusals', () => {
  const open = (change: Partial<typeof files>) =>
    codeOf(() => createTokenizer({ ...files, ...change }, 'owner/model'));

  it('say that tokenizer.model alone is not enough, and what to do', () => {
    const said = codeOf(() => createTokenizer({ hasSentencePiece: true }, 'owner/model'));
    expect(said).toContain('TokenizerUnsupported');
    expect(said).toContain('SentencePiece');
    expect(said).toContain('tokenizer.json of another repo');
    expect(codeOf(() => createTokenizer({ hasSentencePiece: false }, 'owner/model'))).toContain(
      'no tokenizer.json',
    );
  });

  it('name the file that is damaged', () => {
    expect(open({ tokenizer: '{' })).toContain('TokenizerInvalid | owner/model/tokenizer.json');
    expect(open({ tokenizer: '[]' })).toContain('TokenizerInvalid');
    expect(open({ tokenizer: '{}' })).toContain('no vocabulary');
    expect(open({ config: 'nonsense' })).toContain('tokenizer_config.json');
    expect(open({ tokenizer: '{"model":{"type":"Runes","vocab":{}}}' })).toContain('TokenizerUnsupported');
    expect(open({ tokenizer: '['.repeat(100) })).toContain('LimitExceeded');
  });

  it('name a part that cannot do what a text asks of it, whichever text it is', () => {
    const tokenizer = JSON.stringify({
      model: { type: 'WordLevel', vocab: { a: 0, b: 1 }, unk_token: '<unk>' },
      pre_tokenizer: { type: 'WhitespaceSplit' },
    });
    const opened = createTokenizer({ tokenizer, hasSentencePiece: false }, 'owner/model');
    expect(opened.encode('b a')).toEqual([1, 0]);
    expect(codeOf(() => opened.encode('a c'))).toMatch(
      /^TokenizerUnsupported \| The tokenizer of owner.model cannot be used: .*no token for unknown words/,
    );
  });

  it('name a vocabulary of another size', () => {
    const check = (size: number, rows: number, ownSize = size) =>
      codeOf(() => checkVocabulary({ size, ownSize }, rows));
    expect(check(1024, 1024)).toBe('none');
    // filled up, as embeddings are: 50 277 tokens in 50 304 rows, 50 295 in 51 200
    expect(check(50_277, 50_304)).toBe('none');
    expect(check(50_295, 51_200)).toBe('none');
    expect(check(1024, 512)).toContain('VocabularyMismatch');
    expect(check(512, 1024)).toContain('512 tokens');
    // Gemma 3 1B: an image token beyond the rows, which only a text that has it needs
    expect(check(262_145, 262_144, 262_144)).toBe('none');
  });
});

it.each([
  ['a negative id', '"nope": -5'],
  ['an id beyond any vocabulary', '"nope": 2147483648'],
  ['half an id', '"nope": 0.5'],
])('R59: %s is refused before lists are made of it', (_, entry) => {
  const text = read('base/tokenizer.json').replace('"vocab": {', `"vocab": {${entry},`);
  expect(text).toContain(entry);
  const begin = process.cpuUsage();
  expect(codeOf(() => createTokenizer({ ...files, tokenizer: text }, 'evil'))).toMatch(
    /TokenizerInvalid.*“nope” no id below/,
  );
  expect(process.cpuUsage(begin).user).toBeLessThan(5_000_000);
});

interface Damaged {
  model: { vocab: Record<string, number>; merges: unknown };
  added_tokens: unknown;
  normalizer: unknown;
  pre_tokenizer: unknown;
}
const firstAdded = ({ added_tokens }: Damaged) => (added_tokens as Record<string, unknown>[])[0]!;

describe('a file that parses, and that Rust does not load, is refused wherever it would be used', () => {
  it.each<[string, (json: Damaged) => void]>([
    ['a token that merges name is missing', ({ model }) => delete model.vocab.he],
    ['a merge of tokens that are not there', ({ model }) => (model.merges as unknown[]).push(['zzq', 'qqz'])],
    ['a merge into a token that is not there', ({ model }) => (model.merges as unknown[]).push(['a', 'he'])],
    ['a merge of three', ({ model }) => (model.merges as unknown[]).push(['a', 'b', 'c'])],
    ['a merge that is a number', ({ model }) => (model.merges as unknown[]).push(5)],
    [
      'merges in one word',
      ({ model }) => Object.assign(model, { merges: (model.merges as string[][]).map((m) => m.join('')) }),
    ],
    ['merges as an object', ({ model }) => Object.assign(model, { merges: {} })],
    ['merges that are null', ({ model }) => Object.assign(model, { merges: null })],
    ['no merges', ({ model }) => Object.assign(model, { merges: undefined })],
    ['added tokens as an object', (json) => Object.assign(json, { added_tokens: {} })],
    ['added tokens that are null', (json) => Object.assign(json, { added_tokens: null })],
    ['an added token that is a text', (json) => Object.assign(json, { added_tokens: ['<s>'] })],
    ['an added token without an id', (json) => delete firstAdded(json).id],
    ['a flag that is a text', (json) => Object.assign(firstAdded(json), { special: 'true' })],
    ['a normalizer that is a text', (json) => Object.assign(json, { normalizer: 'NFC' })],
    ['a normalizer that is a list', (json) => Object.assign(json, { normalizer: [{ type: 'NFC' }] })],
    ['a token for unknown words that is a number', ({ model }) => Object.assign(model, { unk_token: 3 })],
    ['a version from the future', (json) => Object.assign(json, { version: '2.0' })],
    [
      'a WordPiece whose token for unknown words is null',
      (json) => Object.assign(json, { model: { type: 'WordPiece', unk_token: null, vocab: { a: 0, b: 1 } } }),
    ],
    ['a pre-tokenizer without a type', (json) => Object.assign(json, { pre_tokenizer: {} })],
  ])('%s', (_, damage) => {
    const json = JSON.parse(files.tokenizer) as Damaged;
    damage(json);
    const text = JSON.stringify(json);
    expect(() => Rust.fromString(text)).toThrow();
    expect(codeOf(() => createTokenizer({ ...files, tokenizer: text }, 'odd'))).toContain('TokenizerInvalid');
    expect(codeOf(() => ggufTokenizer({ tokenizer: text }, 1024, new Map(), 'odd'))).toMatch(
      /GgufUnsupported|TokenizerInvalid/,
    );
    expect(fileFault('tokenizer.json', new TextEncoder().encode(text))).toBeDefined();
  });

  it.each([
    [{ type: 'Frob', single: undefined }, /post-processor.*Frob/],
    [{ special_tokens: {} }, /post-processor.*<s>.*without its id/],
  ])('of %j nobody knows what it puts around a text', (change, words) => {
    const json = JSON.parse(files.tokenizer) as { post_processor: object };
    const text = JSON.stringify({ ...json, post_processor: { ...json.post_processor, ...change } });
    expect(codeOf(() => createTokenizer({ ...files, tokenizer: text }, 'odd'))).toMatch(words);
    expect(codeOf(() => ggufTokenizer({ tokenizer: text }, 1024, new Map(), 'odd'))).toMatch(words);
  });

  /** Rust ends the process over other types of these. */
  const DEADLY = ['precompiled_charsmap', 'continuing_subword_prefix'];
  const VALUES = 'null true 3 -3 900.0 9e2 0.5 "no" "x" "" [] {} [1] {"x":1}'.split(' ');
  const PLACE = '@here@';

  /** The file with one field left out, or another value at its place; every kind of field once. */
  function* damaged(text: string, seen: Set<string>): Generator<[field: string, text: string]> {
    const json = JSON.parse(text) as Record<string, unknown>;
    const nodes: [path: string, node: Record<string, unknown>][] = [['', json]];
    for (const [path, node] of nodes) {
      for (const [key, was] of Object.entries(node)) {
        const field = `${path}.${Array.isArray(node) || path === '.model.vocab' ? 'n' : key}`;
        if (typeof was === 'object' && was !== null) nodes.push([field, was as Record<string, unknown>]);
        const name = `${field} of ${String(node.type)}: ${typeof was}`;
        // types that are not known have words of their own
        if (seen.has(name) || key === 'type' || DEADLY.includes(key)) continue;
        seen.add(name);
        node[key] = undefined;
        if (!Array.isArray(node)) yield [`${name} left out`, JSON.stringify(json)];
        node[key] = PLACE;
        const open = JSON.stringify(json);
        node[key] = was;
        for (const value of VALUES) yield [`${name} as ${value}`, open.replace(JSON.stringify(PLACE), value)];
      }
    }
  }

  it('each field of the 60 tokenizers left out, or of another type, is refused where Rust refuses it', () => {
    const seen = new Set<string>();
    const apart: string[] = [];
    for (const [, text] of TOKENIZERS) {
      for (const [field, other] of damaged(text, seen)) {
        let isLoaded = true;
        try {
          Rust.fromString(other);
        } catch {
          isLoaded = false;
        }
        if (isLoaded !== (tokenizerFault(other, 'x') === undefined)) apart.push(field);
      }
    }
    expect(apart).toEqual([]);
    expect(seen.size).toBeGreaterThan(120);
  });

  it('what Rust loads is not refused', () => {
    const json = JSON.parse(files.tokenizer) as Damaged;
    const merges = json.model.merges as string[][];
    const texts: Damaged['model']['merges'][] = [merges.map((m) => m.join(' ')), [...merges, merges[0]]];
    for (const as of texts) {
      const text = JSON.stringify({ ...json, model: { ...json.model, merges: as } });
      expect(() => Rust.fromString(text)).not.toThrow();
      expect(fileFault('tokenizer.json', new TextEncoder().encode(text))).toBeUndefined();
    }
  });
});
