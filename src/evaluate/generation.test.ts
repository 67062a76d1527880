import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { parseStrictJson } from '../formats/strict-json';
import { loadGolden } from '../forward/golden.test.fixture';
import { openRunner, type Runner } from '../forward/runner';
import { sourceOf, TIGHT } from '../forward/runner.test.cases';
import { argmax } from '../linalg/numbers';
import { resolveArchitecture } from '../models/resolution';
import { endTokens, type GeneratedToken, GREEDY, generate } from './generation';
import { openSample, readText, sampleTokenizer } from './sample.test.fixture';

const openGolden = async (name: string, options = {}) => {
  const golden = await loadGolden(name, async (path) => new Uint8Array(readFileSync(path)));
  const runner = openRunner(
    createCpuBackend(),
    resolveArchitecture(golden.config),
    sourceOf(golden.weights),
    options,
  );
  return { runner, ids: golden.ids };
};

/** Greedy generation that runs the whole text again for every token. */
async function withoutCache(runner: Runner, prompt: readonly number[], tokens: number): Promise<number[]> {
  const ids = [...prompt];
  for (let i = 0; i < tokens; i++) {
    const { logits } = await runner.pass({ sequences: [{ ids, from: ids.length - 1 }], output: 'logits' });
    ids.push(argmax(logits[0]!));
  }
  return ids.slice(prompt.length);
}

describe('greedy generation', () => {
  const { greedy } = JSON.parse(readText('expected.json')) as {
    greedy: Record<string, { prompt: string; prompt_ids: number[]; ids: number[] }[]>;
  };

  it.each(Object.entries(greedy))(
    'of %s writes the published continuations, all prompts at once',
    async (model, cases) => {
      const runner = openSample(model);
      const maxTokens = Math.max(...cases.map((c) => c.ids.length));
      const got = await generate(
        runner,
        cases.map((c) => c.prompt_ids),
        { maxTokens, sampling: GREEDY },
      );
      expect(got.map((g, i) => g.ids.slice(0, cases[i]!.ids.length))).toEqual(cases.map((c) => c.ids));
    },
  );

  it.each([
    'llama',
    'gemma2',
    'gemma3',
    'gpt2',
    'gpt_neox',
    'bloom',
    'opt_postnorm_proj',
    'phi3',
    'olmo2',
    'smollm3',
  ])('of the golden %s is the same without a cache, token for token', async (name) => {
    const { runner, ids } = await openGolden(name, TIGHT);
    const prompts = [ids.slice(0, 5), ids.slice(3, 20), ids.slice(8, 9)];
    const got = await generate(runner, prompts, { maxTokens: 20, sampling: GREEDY });
    for (const [i, prompt] of prompts.entries()) {
      expect(got[i]).toEqual({ ids: await withoutCache(runner, prompt, 20), ended: 'length' });
    }
  });
});

describe('generation', () => {
  const prompt = [...sampleTokenizer.prefix, ...sampleTokenizer.encode('Story: The')];

  it('draws for each sequence of a batch what the seed says, whatever else is in it', async () => {
    const runner = openSample('base');
    const sampling = { temperature: 0.8, topP: 0.95, seed: 11 };
    const options = { maxTokens: 12, sampling };
    const three = await generate(runner, [prompt, prompt, prompt], options);
    expect(new Set(three.map((g) => g.ids.join())).size).toBe(3);
    expect(await generate(runner, [prompt, prompt, prompt], options)).toEqual(three);
    expect(await generate(runner, [prompt], options)).toEqual([three[0]]);
    const other = await generate(runner, [prompt], { maxTokens: 12, sampling: { ...sampling, seed: 12 } });
    expect(other).not.toEqual([three[0]]);
  });

  it('runs equal prompts once', async () => {
    const { runner, ids } = await openGolden('gemma3', TIGHT);
    const [one, other] = [ids.slice(0, 30), ids.slice(4, 25)];
    const tokens: number[] = [];
    const counted: Runner = {
      ...runner,
      pass(request, onStep) {
        tokens.push(request.sequences.reduce((sum, s) => sum + s.ids.length, 0));
        return runner.pass(request, onStep);
      },
    };
    const sampling = { temperature: 1.2, topP: 1, seed: 3 };
    const got = await generate(counted, [one, other, one, one, other], { maxTokens: 10, sampling });
    expect(tokens[0]).toBe(one.length + other.length);
    expect(tokens[1]).toBe(5);
    expect(new Set(got.map((g) => g.ids.join())).size).toBe(5);
    // each as it would be at its place in a batch of prompts that differ
    for (const [i, prompt] of [one, other, one, one, other].entries()) {
      const others = Array.from({ length: 5 }, (_, j) => (j === i ? prompt : [j]));
      expect((await generate(runner, others, { maxTokens: 10, sampling }))[i]).toEqual(got[i]);
    }
  });

  it('tells every token as it comes, and ends at a stop token without it', async () => {
    const runner = openSample('base');
    const told: GeneratedToken[] = [];
    const [free] = await generate(runner, [prompt], {
      maxTokens: 8,
      sampling: GREEDY,
      onToken: (t) => told.push(t),
    });
    expect(told).toMatchObject(free!.ids.map((id, index) => ({ sequence: 0, index, id })));
    const stop = free!.ids[5]!;
    const ended = await generate(runner, [prompt, prompt], { maxTokens: 8, sampling: GREEDY, stop: [stop] });
    expect(ended).toEqual(
      [1, 2].map(() => ({ ids: free!.ids.slice(0, free!.ids.indexOf(stop)), ended: 'stop' })),
    );
  });

  it('ends where the positions of the model do', async () => {
    const { runner, ids } = await openGolden('gpt2');
    // 72 positions: 60 of the prompt, 12 tokens run, one more chosen after the last
    const [got] = await generate(runner, [ids], { maxTokens: 100, sampling: GREEDY });
    expect([got!.ids.length, got!.ended]).toEqual([13, 'length']);
    const long = Array(73).fill(1) as number[];
    await expect(generate(runner, [long], { maxTokens: 1, sampling: GREEDY })).rejects.toMatchObject({
      code: 'ContextTooLong',
    });
  });

  it('refuses empty prompts, unknown tokens, senseless settings, and stops when asked', async () => {
    const { runner, ids } = await openGolden('llama');
    const run = (prompts: number[][], change = {}) =>
      generate(runner, prompts, { maxTokens: 3, sampling: { ...GREEDY, ...change } });
    await expect(run([[]])).rejects.toMatchObject({ code: 'TextEmpty' });
    await expect(run([[1], [128]])).rejects.toMatchObject({ code: 'TokenOutOfRange' });
    await expect(run([ids], { temperature: -1 })).rejects.toMatchObject({ code: 'Usage' });
    await expect(run([ids], { temperature: Number.NaN })).rejects.toMatchObject({ code: 'Usage' });
    await expect(run([ids], { topP: 0 })).rejects.toMatchObject({ code: 'Usage' });
    expect(await run([])).toEqual([]);
    const stop = new AbortController();
    const stopped = generate(runner, [ids], {
      maxTokens: 30,
      sampling: GREEDY,
      signal: stop.signal,
      onToken: ({ index }) => index === 3 && stop.abort(),
    });
    await expect(stopped).rejects.toMatchObject({ code: 'Canceled' });
  });

  it('finds the end tokens of a model in its configs', () => {
    const json = (text: string) =>
      parseStrictJson(text, 'c', { code: 'JsonInvalid', maxLength: 99, maxString: 99 });
    const config = (text: string) => json(text) as Parameters<typeof endTokens>[0];
    expect(endTokens(undefined, config('{"eos_token_id": 2}'))).toEqual([2]);
    expect(endTokens(config('{"eos_token_id": [5, 6]}'), config('{"eos_token_id": 2}'))).toEqual([5, 6]);
    expect(endTokens(config('{"eos_token_id": null}'), config('{"eos_token_id": "x"}'))).toEqual([]);
    expect(endTokens()).toEqual([]);
  });
});
