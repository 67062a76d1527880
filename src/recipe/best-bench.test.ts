import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test, vi } from 'vitest';
import { SAMPLES, smallSample } from '../../e2e/disk-folder';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { runEvaluations } from '../evaluate/job';
import { copyOf } from '../formats/recipe';
import * as backends from '../host/backends';
import { openModels } from '../host/models';
import { methodById } from '../merge/methods';
import { requireClean } from '../merge/plan/plan';
import { makePlan } from '../merge/plan/recipe-plan';
import type { RunTarget } from '../reports/evaluate';
import { meanLoss } from '../reports/paired-error';
import { partsOf, scoredText } from '../reports/text-parts';
import { fakeStorage } from '../store/opfs.test.fake';
import { runFindBest } from './best-bench';

vi.spyOn(backends, 'openEvaluationBackends').mockImplementation(async () => [createCpuBackend()]);

beforeEach(() => {
  vi.stubGlobal('navigator', fakeStorage().navigator);
});

test('a model has one number: reported of a search without time, and measured alone', async () => {
  const models = openModels(() => ({ url: 'https://hub.invalid' }));
  for (const name of ['base', 'kitchen']) {
    await models.add(await smallSample(`samples/${name}`, join(SAMPLES, name), { layers: 3, narrower: 4 }));
  }
  const plan = async (target: RunTarget) => {
    const recipe = 'recipe' in target ? target.recipe : copyOf(target.model);
    const made = await makePlan(recipe, (ref) => models.open(ref), methodById);
    requireClean(made);
    return { plan: made, exact: 'model' in target };
  };
  const texts = ['common', 'kitchen'].map((name) => ({
    name,
    text: scoredText(readFileSync(join(SAMPLES, `texts/${name}.eval.txt`), 'utf8'), 'quick', 4500),
  }));
  const { signal } = new AbortController();
  const onProgress = () => undefined;
  const { rows } = await runFindBest(
    {
      recipe: {
        mergeMethod: 'linear',
        baseModel: 'samples/base',
        models: [{ model: 'samples/base+samples/kitchen', parameters: { weight: 1 } }],
        parameters: {},
        amalgam: {},
      },
      texts: texts.map(({ name, text }) => ({ name, input: { text } })),
      ...{ steps: ['methods'], budget: 0, seed: 1, engine: 'cpu' },
    },
    { plan, models, signal, onProgress, rows: () => Promise.reject(new Error('no data set is read')) },
  );
  const done = rows.filter(({ error }) => !error);
  const parts = texts.map(({ name, text }) => partsOf(text, name).reporting[0]!);
  const alone = await runEvaluations(
    { targets: done.map(({ target }) => target), inputs: parts.flat(), engine: 'cpu' },
    { plan, models, signal, onProgress },
  );
  expect(done.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['base', 'contributor', 'given']));
  for (const [i, { outcomes }] of alone.models.entries()) {
    const blocks = outcomes.map((outcome) => ('report' in outcome ? (outcome.report.blocks ?? []) : []));
    const each = [blocks.slice(0, parts[0]!.length), blocks.slice(parts[0]!.length)].map((of) => of.flat());
    const { reporting } = done[i]!.blocks;
    const tokens = (of: typeof each) => of.map((text) => text.reduce((sum, block) => sum + block.tokens, 0));
    expect(tokens(reporting!)).toEqual(tokens(each));
    expect(meanLoss(reporting!).mean).toBeCloseTo(meanLoss(each).mean, 5);
  }
});
