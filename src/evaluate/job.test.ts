import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { SAMPLES, smallSample } from '../../e2e/disk-folder';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { localThread } from '../backend/cpu/local-thread.test.support';
import { openSharedWeights } from '../backend/cpu/shared-weights';
import { createThreadBackend } from '../backend/cpu/thread-backend';
import { conversationLine } from '../formats/conversations';
import { copyOf, type Recipe } from '../formats/recipe';
import * as backends from '../host/backends';
import { openModels } from '../host/models';
import { methodById } from '../merge/methods';
import { requireClean } from '../merge/plan/plan';
import { makePlan } from '../merge/plan/recipe-plan';
import type {
  EvaluatedModel,
  EvaluateManyRequest,
  EvaluateReport,
  KeptWeights,
  RunTarget,
} from '../reports/evaluate';
import { defaultsOf } from '../reports/option';
import { jobs } from '../tools/collapse/job';
import { collapseOptions } from '../tools/collapse/options';
import { allKernels } from '../worker/all-kernels';
import { runEvaluations } from './job';

const text = readFileSync(join(SAMPLES, 'texts/common.eval.txt'), 'utf8').slice(0, 240);
const other = readFileSync(join(SAMPLES, 'texts/kitchen.eval.txt'), 'utf8').slice(0, 120);

// small: what is compared are numbers of one model on two ways, and bytes
const folders = await Promise.all(
  ['base', 'kitchen', 'harbour', 'workshop'].map((name) =>
    smallSample(`samples/${name}`, join(SAMPLES, name), { layers: 3, narrower: 4 }),
  ),
);

const checkpoint = folders[0]!.files.find(({ path }) => path === 'model.safetensors')!.byteLength;

async function sampleModels() {
  const models = openModels(() => ({ url: 'https://hub.invalid' }));
  for (const folder of folders) await models.add(folder);
  return models;
}

const merge = (mergeMethod: string, parameters = {}): RunTarget => ({
  recipe: {
    mergeMethod,
    baseModel: 'samples/base',
    models: ['samples/base+samples/kitchen', 'samples/base+samples/harbour', 'samples/workshop'].map(
      (model) => ({
        model,
        parameters: { weight: 0.5 },
      }),
    ),
    parameters,
    amalgam: {},
  } as Recipe,
});
const TIES = merge('ties', { density: 0.3 });
const ARITHMETIC = merge('task_arithmetic');
const DARE = merge('dare_ties', { density: 0.5 });

async function many(
  targets: RunTarget[],
  change: Partial<EvaluateManyRequest> = {},
  signal = new AbortController().signal,
  onProgress = vi.fn(),
) {
  const models = await sampleModels();
  const plan = async (target: RunTarget) => {
    const recipe = 'recipe' in target ? target.recipe : copyOf(target.model);
    const made = await makePlan(recipe, (ref) => models.open(ref), methodById);
    requireClean(made);
    return { plan: made, exact: 'model' in target };
  };
  const request = {
    targets,
    inputs: [{ text }, { text: other }],
    window: 64,
    stride: 32,
    engine: 'cpu' as const,
    ...change,
  };
  const report = await runEvaluations(request, { plan, models, signal, onProgress });
  const alone = async (target: RunTarget, input: { text: string }) =>
    reportOf(
      (
        await runEvaluations(
          { targets: [target], inputs: [input], window: 64, stride: 32, engine: 'cpu' },
          { plan, models, signal, onProgress },
        )
      ).models[0]!,
      0,
    );
  return { report, alone, onProgress };
}

const values = ({ outcomes }: { outcomes: ({ report: EvaluateReport } | { error: unknown })[] }) =>
  outcomes.map((o) => ('report' in o ? o.report.meanNll : o.error));

const reportOf = ({ outcomes }: EvaluatedModel, i: number): EvaluateReport => {
  const outcome = outcomes[i]!;
  if ('report' in outcome) return outcome.report;
  throw new Error(outcome.error.message);
};

/** Threads of the processor that the next evaluation has beside this one. */
const threads = { count: 0 };
vi.spyOn(backends, 'openEvaluationBackends').mockImplementation(async () => {
  const open = () =>
    createThreadBackend(localThread(allKernels), 'a thread', { tileBytes: 2 ** 24, keptBytes: 2 ** 24 });
  return threads.count === 0
    ? [createCpuBackend()]
    : [await open(), ...(await Promise.all(Array.from({ length: threads.count - 1 }, open)))];
});

describe('several models side by side', () => {
  test('give the numbers that each gives alone, text by text', async () => {
    const targets: RunTarget[] = [{ model: 'samples/base+samples/kitchen' }, TIES, ARITHMETIC];
    const { report, alone } = await many(targets);
    for (const [i, target] of targets.entries()) {
      const expected = [await alone(target, { text }), await alone(target, { text: other })];
      expect(values(report.models[i]!)).toEqual(expected.map((e) => e.meanNll));
    }
    expect(report.batches).toBe(1);
    expect(report.models.map((m) => m.bytes)).toEqual([
      expect.any(Number),
      expect.any(Number),
      expect.any(Number),
    ]);
    expect(report.models[1]!.bytes).toBeGreaterThan(checkpoint);
  });

  test('read conversations by the chat template of each, and one without a template the other texts', async () => {
    const line = conversationLine([
      { role: 'user', content: 'Where is the lamp?' },
      { role: 'assistant', content: 'By the hinge.' },
    ]);
    const templated = (chatTemplate: string) =>
      'recipe' in ARITHMETIC ? { recipe: { ...ARITHMETIC.recipe, chatTemplate } } : ARITHMETIC;
    const [plain, chatml] = ['{% for m in messages %}{{ m.content }}\n{% endfor %}', 'chatml'].map(templated);
    const inputs = [{ text: `${line}\n${line}` }, { text: other }];
    const { report, alone } = await many([plain!, chatml!, { model: 'samples/base' }], { inputs });
    // the tokenizer puts a token in front of a plain text, a template does so itself
    const read = 'Where is the lamp?\nBy the hinge.\n'.repeat(2);
    const written = await many([ARITHMETIC], { inputs: [{ text: read }] });
    const tokens = (model: EvaluatedModel, i: number) => reportOf(model, i).tokens;
    expect(tokens(report.models[0]!, 0)).toBe(tokens(written.report.models[0]!, 0) - 1);
    expect(tokens(report.models[1]!, 0)).toBeGreaterThan(tokens(report.models[0]!, 0) + 10);
    expect(reportOf(report.models[1]!, 0).protocol.bos).toBeNull();
    expect(report.models[2]!.outcomes[0]).toMatchObject({ error: { code: 'TokenizerUnsupported' } });
    expect(reportOf(report.models[2]!, 1).meanNll).toBe(
      (await alone({ model: 'samples/base' }, inputs[1]!)).meanNll,
    );
  });

  test('a conversation that the template of a model refuses is left out there, and counted', async () => {
    const say = (role: 'system' | 'user', content: string) => conversationLine([{ role, content }]);
    const lines = [
      say('user', 'Where is the lamp?'),
      say('system', 'Be brief.'),
      say('user', 'By the hinge.'),
    ];
    const turns = '{{ m.content }}\n{% endfor %}';
    const refusing = `{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}${turns}`;
    const [strict, lax] = [refusing, `{% for m in messages %}${turns}`].map((chatTemplate) =>
      'recipe' in ARITHMETIC ? { recipe: { ...ARITHMETIC.recipe, chatTemplate } } : ARITHMETIC,
    );
    const inputs = [{ text: lines.join('\n') }, { text: [lines[0], lines[2]].join('\n') }];
    const { models } = (await many([strict!, lax!], { inputs })).report;
    expect(models.map((model) => reportOf(model, 0).leftOut)).toEqual([1, undefined]);
    expect(reportOf(models[0]!, 1).leftOut).toBeUndefined();
    expect(reportOf(models[0]!, 0).meanNll).toBe(reportOf(models[0]!, 1).meanNll);
    expect(reportOf(models[1]!, 0).tokens).toBeGreaterThan(reportOf(models[0]!, 0).tokens);
  });

  test('give the same in threads of their own, and read no more', async () => {
    const base: RunTarget = { model: 'samples/base' };
    // more models than threads, and fewer: then several threads have one model
    for (const targets of [
      [TIES, ARITHMETIC, DARE, base],
      [base, TIES],
    ]) {
      const one = (await many(targets)).report;
      threads.count = 3;
      try {
        const { report: three, alone } = await many(targets);
        expect(three.models.map(values)).toEqual(one.models.map(values));
        expect(three.bytesRead).toBe(one.bytesRead);
        expect(three.models[0]!.outcomes[0]).toMatchObject({ report: { seconds: expect.any(Number) } });
        expect((await alone(targets[0]!, { text })).meanNll).toBe(values(one.models[0]!)[0]);
      } finally {
        threads.count = 0;
      }
    }
  });

  test('read every byte as often as one does: once a layer, whatever their number', async () => {
    const one = (await many([TIES])).report;
    const three = (await many([TIES, ARITHMETIC, DARE])).report;
    const more = (
      await many([TIES, ARITHMETIC, DARE, { model: 'samples/base' }, { model: 'samples/workshop' }])
    ).report;
    // base and workshop, and two adapters
    expect(one.bytesRead).toBeGreaterThan(2 * checkpoint);
    expect(three.bytesRead).toBe(one.bytesRead);
    // a plain model needs but some rows of the embedding, which the merges have read
    expect(more.bytesRead).toBe(one.bytesRead);
    // one layer on the device at a time, whichever model runs; only the streams add up
    expect(three.peakBytes).toBeLessThan(one.peakBytes * 2);
  });

  test('a model that cannot be run, and a text that cannot be scored, are errors in their place', async () => {
    // an adapter without its base
    const { report } = await many([TIES, { model: 'samples/kitchen' }, ARITHMETIC], {
      inputs: [{ text }, { text: '' }, { ids: [1, 99_999] }],
    });
    const codes = report.models.map(({ outcomes }) =>
      outcomes.map((o) => ('error' in o ? o.error.code : 'measured')),
    );
    expect(codes[0]![0]).toBe('measured');
    expect(codes[0]!.slice(1)).toEqual([expect.stringMatching(/^Text/), 'TokenOutOfRange']);
    expect(codes[2]).toEqual(codes[0]);
    expect(codes[1]).toHaveLength(3);
    expect(codes[1]).not.toContain('measured');
    expect(report.models[1]!.bytes).toBeNull();
  });

  test('tell progress with rate and time left, and stop when asked', async () => {
    const { onProgress } = await many([TIES, ARITHMETIC]);
    const running = onProgress.mock.calls.map(([p]) => p).filter((p) => p.phase === 'running');
    expect(running.at(-1)).toMatchObject({ done: running[0].total, secondsLeft: 0 });
    expect(running.every((p, i) => i === 0 || p.done >= running[i - 1].done)).toBe(true);
    // a batch that is done is handed over at once: stopping the next one does not lose it
    const finished = running.flatMap((p) => p.finished ?? []);
    expect(finished.map(({ index, model }) => [index, model.outcomes.length])).toEqual([
      [0, 2],
      [1, 2],
    ]);
    const stop = new AbortController();
    const stopped = many(
      [TIES, ARITHMETIC],
      {},
      stop.signal,
      vi.fn(({ phase }) => phase === 'running' && stop.abort()),
    );
    await expect(stopped).rejects.toMatchObject({ code: 'Canceled' });
    await expect(many([])).rejects.toMatchObject({ code: 'Usage' });
  });
});

const { similarity, block, interval, lowest } = defaultsOf(collapseOptions);
const SETTINGS = { similarity, block, interval, lowest };

test('Collapse measures texts as Evaluate does: each by itself, every one counting the same', async () => {
  const models = await sampleModels();
  const copyPlan = (model: string) => makePlan(copyOf(model), (ref) => models.open(ref), methodById);
  const texts = [text, other];
  const { perplexity } = await jobs.collapse(
    {
      model: 'samples/base',
      engine: 'cpu',
      destination: { kind: 'nowhere' },
      calibration: { input: { texts }, window: 32 },
      settings: { ...SETTINGS, planner: 'influence', remove: 1 },
    },
    models,
    new AbortController().signal,
    () => {},
    copyPlan,
  );
  const { report } = await many([{ model: 'samples/base' }], { window: 256, stride: 128 });
  const each = texts.map((_, i) => reportOf(report.models[0]!, i));
  expect(perplexity!.before).toMatchObject({
    tokens: each[0]!.tokens + each[1]!.tokens,
    protocol: each[0]!.protocol,
  });
  const [one, two] = each.map(({ meanNll }) => meanNll) as [number, number];
  expect(perplexity!.before.perplexity).toBeCloseTo(Math.exp((one + two) / 2), 5);
});

test('weights of 8 bits are measured on an engine that has them, alone; elsewhere the model says so', async () => {
  const target = { model: 'samples/workshop' };
  const lossOf = async (weights: KeptWeights) => {
    const { report } = await many([target], { weights });
    const [outcome] = report.models[0]!.outcomes;
    return 'report' in outcome! ? outcome.report.meanNll : outcome!.error.code;
  };
  expect(await lossOf('8-bit')).toBe('Usage');
  const opened = vi.mocked(backends.openEvaluationBackends);
  opened.mockClear();
  opened.mockImplementationOnce(async () => [createCpuBackend(openSharedWeights(0, () => () => undefined))]);
  const [eight, stored] = [await lossOf('8-bit'), await lossOf('stored')];
  expect(opened.mock.calls[0]![1]).toBe(1);
  expect(eight).not.toBe(stored);
  expect(eight).toBeCloseTo(stored as number, 2);
});
