/**
 * Items a second with and without sharing what the choices of an item begin with, on the processor, for docs/benchmarks.md:
 *
 *   AMALGAM_GOLDEN=FOLDER npx vitest run --config e2e/bench/vitest.bench.config.ts
 *
 * FOLDER holds `data/stories15m`; without it the sample alone is measured.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { expect, test } from 'vitest';
import { createCpuBackend } from '../../src/backend/cpu/cpu-backend';
import { encodePairs, type PairIds } from '../../src/evaluate/encoded-pairs';
import { startScoring } from '../../src/evaluate/log-likelihood';
import { createTokenizer } from '../../src/foreign/tokenizer';
import { parseModelConfig } from '../../src/formats/model-config';
import { readTensors } from '../../src/forward/golden.test.fixture';
import { openRunner } from '../../src/forward/runner';
import { sourceOf } from '../../src/forward/runner.test.cases';
import { resolveArchitecture } from '../../src/models/resolution';
import { openTask } from '../../src/tasks/shipped';

interface Question {
  context: string;
  choices: string[];
}

const sampleQuestions = (): Question[] =>
  (openTask({ name: 'sample_trades' }).data as { lines: string }).lines
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Question);

/** Beginnings of stories, each with its own next sentence and three of others. */
function storyQuestions(text: string): Question[] {
  const stories = text
    .split(/\n\s*\n|<\|endoftext\|>/)
    .map((story) => story.trim().split(/(?<=[.!?])\s+/))
    .filter((sentences) => sentences.length > 9)
    .slice(0, 48);
  const endings = stories.map((sentences) => sentences[8]!);
  return stories.map((sentences, i) => ({
    context: sentences.slice(0, 8).join(' '),
    choices: [0, 1, 2, 3].map((k) => endings[(i + k) % endings.length]!),
  }));
}

async function measure(name: string, folder: string, questions: readonly Question[]): Promise<void> {
  const read = (file: string) => readFileSync(join(folder, file));
  const config = parseModelConfig(read('config.json').toString(), 'config.json');
  const made = createTokenizer(
    {
      tokenizer: read('tokenizer.json').toString(),
      config: read('tokenizer_config.json').toString(),
      hasSentencePiece: false,
    },
    name,
  );
  const tokenizer = {
    ...made,
    encodeAll: async (texts: readonly string[]) => texts.map((t) => made.encode(t)),
  };
  const pairs = await encodePairs(
    tokenizer,
    questions.flatMap(({ context, choices }) => choices.map((c) => ({ context, continuation: ` ${c}` }))),
    256,
  );
  const items = questions.map(({ choices }) => pairs.splice(0, choices.length) as PairIds[]);
  const tensors = readTensors(new Uint8Array(read('model.safetensors')));
  const runner = openRunner(createCpuBackend(), resolveArchitecture(config), sourceOf(tensors));
  const run = async (share: boolean) => {
    const sums: number[] = [];
    const scoring = startScoring(runner, items, {
      maxLength: 256,
      share,
      onItem: (_, scored) => sums.push(...scored.map(({ loglikelihood }) => loglikelihood)),
    });
    const begun = performance.now();
    while (await scoring.step());
    const seconds = (performance.now() - begun) / 1000;
    const { tokens } = scoring.progress;
    scoring.close();
    return { sums, seconds, tokens };
  };
  await run(true);
  const [whole, shared] = [await run(false), await run(true)];
  runner.close();
  const rate = ({ seconds, tokens }: typeof whole) =>
    `${(items.length / seconds).toFixed(1)} items/s (${tokens} tokens in ${seconds.toFixed(2)} s)`;
  console.log(
    `${name}: ${items.length} items; whole ${rate(whole)}; shared ${rate(shared)}; ${(whole.seconds / shared.seconds).toFixed(2)} times`,
  );
  const far = Math.max(...whole.sums.map((sum, i) => Math.abs(sum - shared.sums[i]!)));
  expect(far).toBeLessThan(1e-3);
}

test('the sample', () => measure('samples/base', 'public/samples/base', sampleQuestions()));

const { AMALGAM_GOLDEN: reference } = process.env;
const stories = reference && join(reference, 'data/stories15m/base');
// a benchmark: its model is no part of the project, and is measured where the reference folder is given
test.runIf(stories && existsSync(stories))('stories15M', () => {
  const text = readFileSync(join(reference!, 'data/corpora/tinystories_sample.txt'), 'utf8');
  return measure('stories15M', stories!, storyQuestions(text));
});
