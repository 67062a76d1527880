/**
 * Whether what is sampled before a merge says how much the merge gains: over all pairs of the contributors of each set of models,
 * against the best task arithmetic of each on text of people; for docs/predictions.md.
 *
 *   AMALGAM_GOLDEN=FOLDER npx vitest run --config e2e/bench/vitest.bench.config.ts sampled-changes
 */
import { existsSync } from 'node:fs';
import process from 'node:process';
import '../../src/foreign/foreign-text.test.support';
import { expect, it, vi } from 'vitest';
import { runEvaluations } from '../../src/evaluate/job';
import { copyOf, type Recipe } from '../../src/formats/recipe';
import { openModels } from '../../src/host/models';
import { requireClean } from '../../src/merge/plan/plan';
import { sampleChanges } from '../../src/merge/prediction/sampled-changes';
import { planToRun } from '../../src/recipe/recipe-jobs';
import type { RunTarget } from '../../src/reports/evaluate';
import { fakeStorage } from '../../src/store/opfs.test.fake';
import { namedFolder } from '../merge-in-node';
import { type ModelSet, modelSets } from '../model-sets';

const { AMALGAM_GOLDEN: reference } = process.env;
const LAMBDAS = [0.3, 0.5, 0.7, 1];
/** Tokens of each text. */
const MOST = 1024;
const FEATURES = ['conflict', 'overlap', 'cosine', 'ratio', 'distance'] as const;

interface Pair {
  set: string;
  name: string;
  features: Record<(typeof FEATURES)[number], number>;
  /** Share of what both gained over the base on their own texts that the best merge keeps. */
  kept: number;
}

it('every pair of contributors', { timeout: 3_600_000 }, async () => {
  vi.stubGlobal('navigator', { ...fakeStorage().navigator, hardwareConcurrency: 1 });
  const pairs: Pair[] = [];
  const sets = modelSets(reference ?? '.').filter(({ models }) => existsSync(models.root));
  // the two pairs are of one base and the same texts
  const mixed = sets.filter(({ name }) => name.startsWith('pair'));
  const [first] = mixed;
  const all: (ModelSet & { domains?: number[] })[] = [
    ...sets.filter((set) => !mixed.includes(set)),
    ...(first
      ? [{ ...first, contributors: mixed.flatMap(({ contributors }) => contributors), domains: [0, 1, 0, 1] }]
      : []),
  ];
  for (const set of all)
    pairs.push(...(await pairsOf(set, set.domains ?? set.contributors.map((_, i) => i))));
  for (const { name, features, kept } of pairs) {
    process.stdout.write(`${name} kept ${kept.toFixed(3)} ${JSON.stringify(features)}\n`);
  }
  const mean = (of: readonly number[]) => of.reduce((a, b) => a + b, 0) / of.length;
  const chance = Math.sqrt(
    mean(pairs.map(({ kept }, i) => (kept - mean(others(pairs, i).map((of) => of.kept))) ** 2)),
  );
  process.stdout.write(`without features: off by ${chance.toFixed(3)}\n`);
  for (const feature of FEATURES) {
    const errors = pairs.map(({ features, kept }, i) => {
      const known = others(pairs, i);
      const [x, y] = [known.map((of) => of.features[feature]), known.map((of) => of.kept)];
      const [mx, my] = [mean(x), mean(y)];
      const slope =
        mean(x.map((v, k) => (v - mx) * (y[k]! - my))) / Math.max(1e-12, mean(x.map((v) => (v - mx) ** 2)));
      return (kept - my - slope * (features[feature] - mx)) ** 2;
    });
    process.stdout.write(`${feature}: off by ${Math.sqrt(mean(errors)).toFixed(3)}\n`);
  }
  expect(pairs.length).toBeGreaterThan(2);
});

/** Pairs of the other sets: what is predicted is of models never seen. */
const others = (pairs: readonly Pair[], i: number) => pairs.filter(({ set }) => set !== pairs[i]!.set);

async function pairsOf(set: ModelSet, domains: readonly number[]): Promise<Pair[]> {
  const models = openModels(() => ({ url: 'https://hub.invalid' }));
  const { root, folders } = set.models;
  for (const name of Object.keys(folders)) await models.add(await namedFolder(name, root, folders));
  const { signal } = new AbortController();
  const plan = async (target: RunTarget) => {
    const made = await planToRun('recipe' in target ? target.recipe : copyOf(target.model), models);
    requireClean(made);
    return { plan: made, exact: 'model' in target };
  };
  const texts = set.texts().map(({ test }) => ({ ids: test.slice(0, MOST) }));
  const losses = async (targets: RunTarget[]) => {
    const options = { plan, models, signal, onProgress: () => undefined };
    const report = await runEvaluations({ targets, inputs: texts, ...set.protocol, engine: 'cpu' }, options);
    return report.models.map(({ outcomes }) =>
      outcomes.map((outcome) => ('report' in outcome ? Math.log(outcome.report.perplexity) : Number.NaN)),
    );
  };
  const [base, ...alone] = await losses(['base', ...set.contributors].map((model) => ({ model })));
  const found: Pair[] = [];
  for (const [a, one] of set.contributors.entries()) {
    for (const [b, other] of set.contributors.entries()) {
      if (b <= a) continue;
      const recipeOf = (weight: number): Recipe => ({
        ...{ mergeMethod: 'task_arithmetic', baseModel: 'base', parameters: {}, amalgam: {} },
        models: [one, other].map((model) => ({ model, parameters: { weight } })),
      });
      const sampled = (await sampleChanges(await planToRun(recipeOf(1), models), models, signal))!;
      const merged = await losses(LAMBDAS.map((weight) => ({ recipe: recipeOf(weight) })));
      const own = [domains[a]!, domains[b]!];
      const on = (of: readonly number[]) => own.reduce((sum, d) => sum + of[d]!, 0);
      const best = Math.min(...merged.map(on));
      const [pair] = sampled.pairs;
      const [x, y] = sampled.contributors.map(({ distance }) => distance) as [number, number];
      const { conflict, overlap, cosine } = pair!;
      found.push({
        set: set.name,
        name: `${set.name}: ${one} and ${other}`,
        features: { conflict, overlap, cosine, ratio: Math.max(x / y, y / x), distance: (x + y) / 2 },
        kept: (on(base!) - best) / (on(base!) - alone[a]![own[0]!]! - alone[b]![own[1]!]!),
      });
    }
  }
  return found;
}
