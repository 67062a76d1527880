/** The tokenizer and the configs that are written with a merge of other vocabularies. */
import { describe, expect, it } from 'vitest';
import { createTokenizer } from '../../foreign/tokenizer';
import type { Recipe } from '../../formats/recipe';
import { readTokenizerJson } from '../../formats/tokenizer-json';
import { factors, memoryFolder, safetensors } from '../../inputs/memory-models.test.support';
import { HIDDEN, mergeIn, planIn, type TokenFolder, tokenFolder } from './vocabulary.test.support';

const recipe = (tokenizerSource: string, models = ['base', 'tuned']): Recipe => ({
  mergeMethod: 'linear',
  baseModel: 'base',
  models: models.map((model) => ({ model, parameters: { weight: 0.5 } })),
  parameters: {},
  tokenizerSource,
  amalgam: {},
});
const bpe = (merges: string[], extra: string[] = []) => {
  const tokens = ['a', 'b', 'c', ...merges.map((m) => m.replace(' ', '')), ...extra];
  return { tokens, merges };
};
const united = async (base: TokenFolder, tuned: TokenFolder) => {
  const { texts, plan } = await mergeIn(recipe('union'), [
    tokenFolder('base', base),
    tokenFolder('tuned', tuned),
  ]);
  return { plan, texts, tokens: readTokenizerJson(texts.get('tokenizer.json')!, 'tokenizer.json') };
};
const refusal = async (base: TokenFolder, tuned: TokenFolder) => {
  const plan = await planIn(recipe('union'), tokenFolder('base', base), tokenFolder('tuned', tuned));
  return plan.problems.find(({ code }) => code === 'TokenizersNotUnited')?.message;
};

describe('the union of tokenizers', () => {
  it('keeps the base’s ids, appends added tokens, and still splits text', async () => {
    const base = { ...bpe(['a b']), added: { '<s>': 4 } };
    const tuned = { ...bpe(['a b']), added: { '<chat>': 4, '<s>': 5 } };
    const { texts, tokens } = await united(base, tuned);
    expect([...tokens.ids]).toEqual([
      ['a', 0],
      ['b', 1],
      ['c', 2],
      ['ab', 3],
      ['<s>', 4],
      ['<chat>', 5],
    ]);
    const tokenizer = createTokenizer(
      { tokenizer: texts.get('tokenizer.json')!, hasSentencePiece: false },
      'merged',
    );
    expect(tokenizer.encode('ab<chat>c<s>a')).toEqual([3, 5, 2, 4, 0]);
    expect(tokenizer.size).toBe(6);
  });

  it('refuses a token that no text has: half of a surrogate pair, which Rust does not read', async () => {
    for (const tuned of [bpe(['a b'], ['\ud800']), { ...bpe(['a b']), added: { 'x\udc00': 4 } }]) {
      const plan = await planIn(
        recipe('union'),
        tokenFolder('base', bpe(['a b'])),
        tokenFolder('tuned', tuned),
      );
      expect(plan.problems).toContainEqual(
        expect.objectContaining({
          severity: 'error',
          message: expect.stringMatching(/half of a surrogate pair/),
        }),
      );
    }
  });

  it('goes on with the longer list of merges, added tokens then standing in the vocabulary', async () => {
    const base = { ...bpe(['a b']), added: { '<s>': 4 } };
    const { texts, tokens } = await united(base, bpe(['a b', 'ab c']));
    expect(tokens.merges).toEqual(['a b', 'ab c']);
    expect([...tokens.own]).toEqual(['a', 'b', 'c', 'ab', '<s>', 'abc']);
    const tokenizer = createTokenizer(
      { tokenizer: texts.get('tokenizer.json')!, hasSentencePiece: false },
      'merged',
    );
    expect(tokenizer.encode('abc<s>ab')).toEqual([5, 4, 3]);
  });

  it('refuses tables of merges that part, by name', async () => {
    expect(await refusal(bpe(['a b']), bpe(['b c']))).toMatch(
      /union of base, tuned: their merge lists diverge at number 1, so 1 token such as “bc” would never be produced/,
    );
    const unigram = (scores: [string, number][]): TokenFolder => ({
      tokens: scores.map(([token]) => token),
      tokenizer: { added_tokens: [], model: { type: 'Unigram', unk_id: 0, vocab: scores } },
    });
    expect(await refusal(bpe(['a b']), unigram([['x', -1]]))).toMatch(
      /base has a BPE model and tuned a Unigram/,
    );
    expect(
      await refusal(
        unigram([
          ['x', -1],
          ['y', -2],
        ]),
        unigram([
          ['x', -1.5],
          ['z', -2],
        ]),
      ),
    ).toMatch(/scores differ, that of “x”/);
    const { texts, tokens } = await united(
      unigram([
        ['x', -1],
        ['y', -2],
      ]),
      unigram([
        ['x', -1],
        ['z', -2.5],
      ]),
    );
    expect([...tokens.ids]).toEqual([
      ['x', 0],
      ['y', 1],
      ['z', 2],
    ]);
    expect(tokens.scores.get('z')).toBe('-2.5');
    expect(texts.get('tokenizer.json')).toContain('["z", -2.5]');
  });

  it('of a model and itself is that model, its files copied', async () => {
    const { plan, texts } = await mergeIn(recipe('union'), [
      tokenFolder('base', bpe(['a b'])),
      tokenFolder('tuned', bpe(['a b'])),
    ]);
    expect(texts.has('tokenizer.json')).toBe(false);
    expect(plan.vocabulary!.words).toEqual([]);
  });

  it('keeps the other files in step, and leaves out those that cannot know the tokens', async () => {
    const files = {
      'tokenizer_config.json': {
        added_tokens_decoder: {
          4: { content: '<s>', special: true },
          9: { content: '<gone>', special: true },
        },
        eos_token: '<s>',
      },
      'added_tokens.json': { '<s>': 4, '<gone>': 9 },
      'special_tokens_map.json': { eos_token: '<s>' },
      'merges.txt': 'a b',
      'chat_template.jinja': '{{ x }}',
    };
    const base = { ...bpe(['a b']), added: { '<s>': 4, '<gone>': 9 }, rows: 5, files };
    const { plan, texts, tokens } = await united(base, { ...bpe(['a b']), added: { '<chat>': 4 } });
    expect(tokens.ids.has('<gone>')).toBe(false);
    const settings = JSON.parse(texts.get('tokenizer_config.json')!);
    expect(
      Object.entries(settings.added_tokens_decoder).map(([id, t]) => [
        id,
        (t as { content: string }).content,
      ]),
    ).toEqual([
      ['4', '<s>'],
      ['5', '<chat>'],
    ]);
    expect(JSON.parse(texts.get('added_tokens.json')!)).toEqual({ '<s>': 4, '<chat>': 5 });
    const written = plan.extras.map(({ path }) => path);
    expect(written).toContain('merges.txt');
    expect(written).toContain('chat_template.jinja');
    const longer = await united(base, bpe(['a b', 'ab c']));
    expect(longer.plan.extras.map(({ path }) => path)).not.toContain('merges.txt');
    expect(longer.plan.problems.map(({ code }) => code)).toContain('TokenizerFormsLeftOut');
  });
});

describe('ids in configs', () => {
  const base: TokenFolder = {
    tokens: ['a', 'b', '<eos>', '<pad>'],
    config: { eos_token_id: 2, bos_token_id: 77, pad_token_id: 3 },
    files: { 'generation_config.json': { eos_token_id: [2, 3], suppress_tokens: [0], temperature: 0.5 } },
  };

  it('follow their tokens into another model’s vocabulary; what is missing is said', async () => {
    const tuned: TokenFolder = { tokens: ['<eos>', 'b', 'a'] };
    const { plan, texts } = await mergeIn(recipe('tuned'), [
      tokenFolder('base', base),
      tokenFolder('tuned', tuned),
    ]);
    expect(JSON.parse(texts.get('config.json')!)).toMatchObject({
      eos_token_id: 0,
      bos_token_id: 77,
      pad_token_id: null,
      vocab_size: 3,
    });
    expect(JSON.parse(texts.get('generation_config.json')!)).toEqual({
      eos_token_id: [0],
      suppress_tokens: [2],
      temperature: 0.5,
    });
    const said = plan.problems
      .filter(({ code }) => code === 'SpecialTokenMissing')
      .map(({ message }) => message);
    expect(said.sort()).toEqual([
      'config.json of base names tokens that the output does not have: pad_token_id.',
      'generation_config.json of base names tokens that the output does not have: eos_token_id.',
    ]);
    expect(plan.problems.find(({ code }) => code === 'TokensLeftOut')!.message).toMatch(
      /^1 token of base is not in the output: <pad>/,
    );
  });

  it('stay where every token keeps its id', async () => {
    const tuned = { tokens: ['a', 'b', '<eos>', '<pad>', 'e'] };
    const { plan } = await mergeIn(recipe('tuned'), [tokenFolder('base', base), tokenFolder('tuned', tuned)]);
    expect(plan.extras.find(({ path }) => path === 'generation_config.json')!.content).toEqual({
      folder: 'base',
      file: 'generation_config.json',
    });
  });
});

describe('adapters with a vocabulary of their own', () => {
  const base = tokenFolder('base', { tokens: ['a', 'b', 'c'] });
  const own = { tokens: ['a', 'b', 'c'], added: { '<x>': 3 } };
  const config = { peft_type: 'LORA', r: 2, lora_alpha: 2, target_modules: [] };
  const embed = 'base_model.model.model.embed_tokens';

  it('a replaced embedding with more rows: its config, its tokenizer, its rows for the others', async () => {
    const adapter = memoryFolder('lora', {
      'adapter_config.json': config,
      'adapter_model.safetensors': safetensors({ [`${embed}.weight`]: ['F32', [4, HIDDEN]] }),
      'tokenizer.json': JSON.stringify((await tokenizerOf(own)) as object),
    });
    const alone: Recipe = {
      mergeMethod: 'passthrough',
      models: [{ model: 'base+lora', parameters: {} }],
      parameters: {},
      amalgam: {},
    };
    const { plan, texts } = await mergeIn(alone, [base, adapter]);
    expect(JSON.parse(texts.get('config.json')!).vocab_size).toBe(4);
    expect(plan.extras.find(({ path }) => path === 'tokenizer.json')!.content).toMatchObject({
      folder: 'lora',
    });

    const onBase = { ...recipe('union', ['base', 'base+lora']) };
    const { values } = await mergeIn(onBase, [base, adapter]);
    const merged = values.get('model.embed_tokens.weight')!;
    expect([...merged.slice(3 * HIDDEN)]).toEqual([0, 0, 0]);
    const asked = await planIn({ ...onBase, tokenizerSource: 'base' }, base, adapter);
    expect(asked.problems.map(({ code }) => code)).toContain('TokensLeftOut');
    const { tokenizerSource: _, ...silent } = onBase;
    const stopped = await planIn(silent, base, adapter);
    expect(stopped.problems.map(({ code }) => code)).toContain('VocabularyMismatch');
  });

  it('a low-rank update of the embedding moves with its tokens', async () => {
    const lora = memoryFolder('lora', {
      'adapter_config.json': config,
      'adapter_model.safetensors': updateFile(3),
    });
    const plain: Recipe = {
      ...recipe('base', ['base+lora']),
      mergeMethod: 'passthrough',
      tokenizerSource: 'base',
    };
    const reference = await mergeIn({ ...plain, models: [{ model: 'base+lora', parameters: {} }] }, [
      base,
      lora,
    ]);
    const delta: Recipe = {
      mergeMethod: 'task_arithmetic',
      baseModel: 'base',
      models: ['base+lora', 'tuned'].map((model) => ({
        model,
        parameters: { weight: model === 'tuned' ? 0 : 1 },
      })),
      parameters: {},
      tokenizerSource: 'tuned',
      amalgam: {},
    };
    const tuned = tokenFolder('tuned', { tokens: ['c', 'x', 'a', 'b'] });
    const { values } = await mergeIn(delta, [base, lora, tuned]);
    const [straight, moved] = [reference.values, values].map((v) => v.get('model.embed_tokens.weight')!);
    const row = (from: Float32Array, id: number) => [...from.slice(id * HIDDEN, (id + 1) * HIDDEN)];
    for (const [id, was] of [
      [0, 2],
      [2, 0],
      [3, 1],
    ] as const) {
      for (const [c, v] of row(moved!, id).entries()) expect(v).toBeCloseTo(row(straight!, was)[c]!, 6);
    }
    // a model that lacks a token takes the row of one that has it with the update on it
    const filled = await mergeIn(
      {
        ...delta,
        mergeMethod: 'linear',
        models: ['base+lora', 'tuned'].map((model) => ({
          model,
          parameters: { weight: model === 'tuned' ? 1 : 0 },
        })),
        tokenizerSource: 'union',
      },
      [base, lora, tokenFolder('tuned', { tokens: ['a', 'b', 'x'] })],
    );
    for (const [c, v] of row(filled.values.get('model.embed_tokens.weight')!, 2).entries())
      expect(v).toBeCloseTo(row(straight!, 2)[c]!, 6);
  });

  it('an update of the head by rows, with DoRA refused by name', async () => {
    const headed = tokenFolder('base', { tokens: ['a', 'b', 'c'], head: true });
    const tuned = tokenFolder('tuned', { tokens: ['b', 'a'], head: true });
    const shapes = factors('lm_head', HIDDEN, 3);
    const lora = (more: object) =>
      memoryFolder('lora', {
        'adapter_config.json': { ...config, ...more },
        'adapter_model.safetensors': safetensors({
          ...shapes,
          ...('use_dora' in more ? { 'base_model.model.lm_head.lora_magnitude_vector': ['F32', [3]] } : {}),
        }),
      });
    const two = { ...recipe('union', ['base+lora', 'tuned']) };
    await mergeIn({ ...two, tokenizerSource: 'tuned' }, [headed, lora({}), tuned]);
    const narrow = { ...two, tokenizerSource: 'tuned' };
    const plan = await planIn(narrow, headed, lora({ use_dora: true }), tuned);
    expect(
      plan.problems.filter(({ code }) => code === 'AdapterUnsupported').map(({ message }) => message),
    ).toEqual(['lora uses DoRA on lm_head.weight, which cannot be brought to another vocabulary.']);
  });

  async function tokenizerOf(spec: TokenFolder): Promise<unknown> {
    const file = tokenFolder('t', spec).files.find(({ path }) => path === 'tokenizer.json')!;
    return JSON.parse(new TextDecoder().decode(await file.open().read(0, file.byteLength)));
  }

  /** lora_embedding_A [2, vocabulary] and B [HIDDEN, 2] with values that differ. */
  function updateFile(vocabulary: number): Uint8Array<ArrayBuffer> {
    const file = safetensors({
      [`${embed}.lora_embedding_A`]: ['F32', [2, vocabulary]],
      [`${embed}.lora_embedding_B`]: ['F32', [HIDDEN, 2]],
    });
    const count = 2 * vocabulary + 2 * HIDDEN;
    const data = new Float32Array(Array.from({ length: count }, (_, i) => ((i * 7) % 11) / 8 - 0.5));
    file.set(new Uint8Array(data.buffer), file.length - data.byteLength);
    return file;
  }
});
