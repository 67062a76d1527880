/**
 * The best merge found on the four sets of models from text that the models wrote themselves, and every row of it measured on
 * text of people; for docs/importance.md. A set at a time (`-t stories15M`), or all:
 *
 *   AMALGAM_GOLDEN=FOLDER npx vitest run --config e2e/bench/vitest.bench.config.ts
 *
 * With AMALGAM_BUDGET, in seconds of one core, the search is a person's: models read as much as it says, and its answer alone is
 * measured; 240 are the default 120 on two cores. FOLDER holds `golden/real` and `data/stories15m`; without it the sample alone is measured.
 */
import { existsSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import '../../src/foreign/foreign-text.test.support';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { calibrate } from '../../src/calibration/job';
import { runEvaluations } from '../../src/evaluate/job';
import { copyOf, type Recipe } from '../../src/formats/recipe';
import { openModels } from '../../src/host/models';
import { requireClean } from '../../src/merge/plan/plan';
import { runFindBest } from '../../src/recipe/best-bench';
import { planToRun } from '../../src/recipe/recipe-jobs';
import type { RunTarget } from '../../src/reports/evaluate';
import { BEST_STEPS, type BestRow } from '../../src/reports/find-best';
import { type LossBlock, meanLoss, pairedDifference, verdict } from '../../src/reports/paired-error';
import { fakeStorage } from '../../src/store/opfs.test.fake';
import { namedFolder } from '../merge-in-node';
import { type ModelSet, modelSets } from '../model-sets';

const {
  AMALGAM_GOLDEN: reference,
  AMALGAM_STEPS = BEST_STEPS.join(),
  AMALGAM_BUDGET: budget,
  AMALGAM_OUT,
} = process.env;
const sets = modelSets(reference ?? '.').filter(({ models }) => existsSync(models.root));
const table = new Map<string, string[]>();

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

afterAll(() => {
  for (const [title, cells] of table) say(`| ${title} | ${cells.join(' | ')} |`);
});

describe.each(sets)('$name', (set) => {
  const at = sets.indexOf(set);
  const put = (title: string, cell: string) => {
    const cells = table.get(title) ?? sets.map(() => '–');
    cells[at] = cell;
    table.set(title, cells);
    say(`${set.name}, ${title}: ${cell}`);
  };

  // engines of their own thread take what the tests' transform does not give
  beforeAll(() => {
    vi.stubGlobal('navigator', { ...fakeStorage().navigator, hardwareConcurrency: 1 });
    // the budget is one core's own time, whatever else the machine does meanwhile
    const spent = () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1000;
    };
    vi.spyOn(performance, 'now').mockImplementation(spent);
    vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => {
      const end = spent() + ms;
      const late = new AbortController();
      const timer = setInterval(() => {
        if (spent() < end) return;
        clearInterval(timer);
        late.abort();
      }, 100);
      timer.unref();
      return late.signal;
    });
  });

  it('every row', async () => {
    const { models, plan, measure } = await opened(set);
    const { windows, length } = set.calibration;
    const recipe: Recipe = {
      mergeMethod: 'ties',
      baseModel: 'base',
      models: set.contributors.map((model) => ({ model, parameters: { weight: 1, density: 0.2 } })),
      parameters: budget ? {} : { calibration_windows: windows, calibration_window: length },
      outDtype: 'float32',
      amalgam: {},
    };
    const { signal } = new AbortController();
    const begun = performance.now();
    const report = await runFindBest(
      {
        ...{ recipe, texts: [], seed: 0, engine: 'cpu', budget: Number(budget ?? 1e9) },
        steps: BEST_STEPS.filter((step) => AMALGAM_STEPS.includes(step)),
      },
      {
        ...{ plan, models, signal },
        rows: () => Promise.reject(new Error('there are no tasks')),
        onProgress: ({ rows, step, seconds }) => {
          for (const { label, lambda, blocks, error } of rows) {
            const loss = blocks.choosing ? meanLoss(blocks.choosing).mean.toFixed(4) : '';
            say(`${seconds.toFixed(0)} s, ${step}: ${label} ${lambda} ${loss}${error?.message ?? ''}`);
          }
        },
      },
    );
    const seconds = (performance.now() - begun) / 1000;
    const texts = set.texts();
    const held = async (targets: RunTarget[], which: 'validation' | 'test') => {
      const inputs = texts.map((text) => ({ ids: text[which] }));
      const solved = async (target: RunTarget) => {
        const made = await plan(target);
        const done = await calibrate(made.plan, {
          models,
          engine: 'cpu',
          signal,
          onProgress: () => undefined,
        });
        return done?.prepared ? { ...made, prepared: done.prepared } : made;
      };
      const { models: measured } = await measure({ targets, inputs, engine: 'cpu', ...set.protocol }, solved);
      return measured.map(({ outcomes }) =>
        outcomes.map((outcome) => ('report' in outcome ? outcome.report.blocks! : [])),
      );
    };
    if (AMALGAM_OUT) writeFileSync(`${AMALGAM_OUT}/${set.name}.json`, JSON.stringify(report));
    // of a search with a budget the answer is asked for, not the table
    const asked = (row: BestRow) => !budget || row.kind === 'base' || row.id === report.best;
    const rows = report.rows.filter((row) => !row.error && asked(row));
    const blocks = await held(
      rows.map(({ target }) => target),
      'test',
    );
    const figure = (of: LossBlock[][]) => Math.exp(meanLoss(of).mean);
    const base = blocks[rows.findIndex(({ kind }) => kind === 'base')]!;
    const words = { lower: '', higher: ', worse than base', alike: ', as base' };
    for (const [i, { label, lambda }] of rows.entries()) {
      const against = i === 0 ? '' : words[verdict(pairedDifference(blocks[i]!, base))];
      put(label, `${figure(blocks[i]!).toPrecision(4)}${lambda === null ? '' : ` (${lambda})`}${against}`);
    }
    const least = Math.min(...blocks.map(figure));
    const chosen = figure(blocks[rows.findIndex(({ id }) => id === report.best)]!);
    put('**best**', `${chosen.toPrecision(4)} (${rows.find(({ id }) => id === report.best)!.label})`);
    if (!budget) put('above the best row', `${(100 * (chosen / least - 1)).toFixed(1)} %`);
    put('seconds', seconds.toFixed(0));
    expect(chosen).toBeLessThan(figure(base));
  }, 7_200_000);
});

/** The models of a set, and what measures them in this thread. */
async function opened({ models: of }: ModelSet) {
  const models = openModels(() => ({ url: 'https://hub.invalid' }));
  for (const name of Object.keys(of.folders)) await models.add(await namedFolder(name, of.root, of.folders));
  const plan = async (target: RunTarget) => {
    const made = await planToRun('recipe' in target ? target.recipe : copyOf(target.model), models);
    requireClean(made);
    return { plan: made, exact: 'model' in target };
  };
  const { signal } = new AbortController();
  const measure = (
    request: Parameters<typeof runEvaluations>[0],
    ready: Parameters<typeof runEvaluations>[1]['plan'],
  ) => runEvaluations(request, { plan: ready, models, signal, onProgress: () => undefined });
  return { models, plan, measure };
}
