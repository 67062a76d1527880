/** Effects of a run's weights on what was written last in Try: measured when the metric is chosen. */
import { type ReactNode, useEffect, useMemo } from 'react';
import type { Recipe } from '../../formats/recipe';
import type { RunningProgress, RunTarget } from '../../reports/evaluate';
import { type EffectReport, effectOf } from '../charts/measured';
import { absenceOf, subjectsOf } from '../charts/metric-choice';
import { type Metric, metricById } from '../charts/metrics';
import { LinkButton } from '../parts/Button';
import { REST_MS, useDebounced } from '../parts/hooks';
import { goesUnasked } from '../state/delta-statistics';
import type { GenerationSlice } from '../state/generation-state';
import { runTool, whyNoTool } from '../state/job';
import { runningProgress } from '../state/job-state';
import { recipeKey } from '../state/recipe-identity';
import { type Studio, showTab } from '../state/studio';
import { type EffectsSlice, noEffects } from '../state/studio-state';
import { useParts, useStudio, useStudioState } from '../studio-context';
import type { LayersRun } from './runs';

/** The text that is looked at: the last one of the first run, else of another merge. */
interface WrittenText {
  key: string;
  prompt: string;
  chat: boolean;
  ids: number[];
  /** As it is quoted. */
  words: string;
}

interface TextEffects {
  /** With their effects, where the metric is that. */
  runs: readonly LayersRun[];
  /** Why there is nothing to see, or null. */
  why: ReactNode;
  /** The text, quoted. */
  note: string | null;
}

export function useTextEffects(metric: Metric, shown: readonly LayersRun[]): TextEffects {
  const studio = useStudio();
  const isChosen = metric.measure === effectOf;
  const { effects, generation } = useParts('effects', 'generation');
  const busy = useStudioState(whyNoTool);
  const unasked = useStudioState((s) => s.plan.report !== null && goesUnasked(s.plan.report));
  const { recipe } = shown[0]!;
  const isListed = metric.per === 'tensor' || shown.every((run) => run.recipe.models);
  const absent = shown.flatMap((run) => absenceOf(metric, run.traits) ?? [])[0];
  const isWanted = isChosen && isListed && absent === undefined;
  const text = useMemo(() => (isWanted ? textOf(generation, recipe) : null), [isWanted, generation, recipe]);
  const known = effects.key === text?.key ? effects : noEffects;
  const lackOf = (run: LayersRun) =>
    subjectsOf(metric, run.contributors).some(({ key }) => !known.ofRecipes.has(effectsKey(run.recipe, key)));
  const missing = text ? shown.find(lackOf) : undefined;
  const wanted = missing && text ? `${text.key} ${metric.id} ${recipeKey(missing.recipe)}` : null;
  // once a slider rests
  const rested = useDebounced(wanted, REST_MS);
  const failed = known.failed?.of === wanted ? known.failed?.error : undefined;
  const isReady = wanted !== null && rested === wanted && busy === null && known.status === 'none' && !failed;
  const begins = isReady && unasked;
  useEffect(() => {
    if (begins && missing && text) void measureEffects(studio, missing, metric, text, wanted!);
  }, [studio, begins, missing, metric, text, wanted]);
  const runs = useMemo(
    () => (isChosen ? shown.map((run) => withEffects(run, known)) : shown),
    [isChosen, shown, known],
  );
  const because = (why: ReactNode): TextEffects => ({ runs, why, note: null });
  if (!isChosen) return because(null);
  if (absent !== undefined) return because(absent);
  if (!isListed) return because('Only a recipe that lists its models can be merged without one of them.');
  if (text && !missing) {
    const strongest = metric.per === 'tensor' ? '' : ` ${strongestWords(shown[0]!, known)}`;
    return { runs, why: null, note: `On “${text.words}”.${strongest}` };
  }
  if (!missing || !text) {
    const go = <LinkButton onClick={() => showTab(studio, 'try')}>Write one in Try</LinkButton>;
    return because(<>Effects are those on a text that a merge has written. {go}</>);
  }
  if (failed) {
    const of = metric.per === 'tensor' ? '' : 'The merge without a model cannot be run. ';
    return because(`${of}${failed.message} ${failed.hint}`);
  }
  if (known.status === 'measuring' || begins) return because('Running the text without each change…');
  if (busy !== null) return because(`${busy} The effects are measured after it.`);
  return because(
    <LinkButton onClick={() => void measureEffects(studio, missing, metric, text, wanted!)}>
      Run the text without each change
    </LinkButton>,
  );
}

/** Key of the effects of a recipe's weights against those of the base, or of the merge without a contributor. */
function effectsKey(recipe: Recipe, contributor: string): string {
  return `${contributor} ${recipeKey(recipe)}`;
}

/** Tensors of contributors with the largest effects that are named. */
const NAMED = 3;

/** Where the models of a run move the text most: `Most: kitchen +2.1 nats in layer 3, mlp.down_proj; …`. */
function strongestWords({ recipe, contributors, tensors }: LayersRun, { ofRecipes }: EffectsSlice): string {
  const all = contributors.flatMap(({ id, label }) =>
    [...(ofRecipes.get(effectsKey(recipe, id)) ?? [])].map(([name, effect]) => ({ label, name, effect })),
  );
  const most = all.sort((a, b) => Math.abs(b.effect) - Math.abs(a.effect)).slice(0, NAMED);
  const words = most.map(({ label, name, effect }) => {
    const { layer, module } = tensors.find((own) => own.name === name)!;
    return `${label} ${metricById('modelEffect').format(effect)} in layer ${layer}, ${module}`;
  });
  return `Most of all models: ${words.join('; ')}.`;
}

function textOf({ columns, written }: GenerationSlice, recipe: Recipe): WrittenText | null {
  const merges = columns.filter(({ target, report }) => 'recipe' in target && report);
  const own = merges.find(
    ({ target }) => 'recipe' in target && recipeKey(target.recipe) === recipeKey(recipe),
  );
  const report = (own ?? merges[0])?.report;
  if (!written || !report || report.ids.length === 0) return null;
  const { prompt, chat } = written;
  const { ids, text } = report;
  const words = `${prompt}${text}`.replace(/\s+/g, ' ').slice(0, QUOTED);
  return { key: JSON.stringify([prompt, chat, ids]), prompt, chat, ids, words: `${words}…` };
}

/** Characters of a text that are quoted. */
const QUOTED = 60;

/** The run with nothing known of its tensors but their effects. */
function withEffects(run: LayersRun, { ofRecipes }: EffectsSlice): LayersRun {
  const known = ['', ...run.contributors.map(({ id }) => id)].flatMap((id) => {
    const own = ofRecipes.get(effectsKey(run.recipe, id));
    return own ? [{ id, own }] : [];
  });
  const reports = run.tensors.map((tensor): [string, EffectReport] => {
    const { name, layer, module, shape, dtype, elements, copied } = tensor;
    const effects = known.flatMap(({ id, own }) => (own.has(name) ? [[id, own.get(name)!] as const] : []));
    const report: EffectReport = {
      ...{ name, layer, module, shape, dtype, elements, copied, effects: new Map(effects) },
      ...{ contributors: [], signConflict: 0, cosine: [], baseNorm: 0, outputChange: 0, nonFinite: 0 },
      counts: { atBase: null, shared: [], lost: [] },
    };
    return [name, report];
  });
  return { ...run, state: 'exact', reports: new Map(reports) };
}

/** The recipe with one contributor left out; the base where no other is left, and in the place of all. */
function withoutModel(recipe: Recipe, base: string, contributor: string): RunTarget {
  const models = (recipe.models ?? []).filter(({ model }) => contributor !== '' && model !== contributor);
  return models.some(({ model }) => model !== base) ? { recipe: { ...recipe, models } } : { model: base };
}

/** Measures the effects of a run's weights on a text, unless another job is at work. Never rejects. */
async function measureEffects(
  studio: Studio,
  { recipe, contributors }: LayersRun,
  metric: Metric,
  text: WrittenText,
  of: string,
): Promise<void> {
  const { engine, recipe: state } = studio.store.getState();
  const { base } = state;
  if (whyNoTool(studio.store.getState()) !== null || base === null) return;
  const set = (change: Partial<EffectsSlice>) =>
    studio.store.setState(({ effects }) => ({
      effects: { ...(effects.key === text.key ? effects : noEffects), key: text.key, ...change },
    }));
  set({ status: 'measuring', failed: null });
  const { prompt, chat, ids } = text;
  const subjects = subjectsOf(metric, contributors).map(({ key }) => key);
  const without = subjects.map((id) => withoutModel(recipe, base, id));
  const request = { recipe, without, prompt, chat, ids, engine: engine.choice };
  const outcome = await runTool(
    studio,
    'effects',
    (onProgress: (progress: RunningProgress) => void) => studio.worker.effects(request, onProgress),
    (progress) => ({ ...runningProgress(progress), counted: null, rate: null }),
  );
  if ('error' in outcome) set({ status: 'none', failed: { of, error: outcome.error } });
  else if ('canceled' in outcome) set({ status: 'stopped' });
  else {
    const own = outcome.value.map((effects, i) => {
      const ofWeights = effects.map(({ name, effect }) => [name, effect] as const);
      return [effectsKey(recipe, subjects[i]!), new Map(ofWeights)] as const;
    });
    const { ofRecipes } = studio.store.getState().effects;
    set({ status: 'none', ofRecipes: new Map([...ofRecipes, ...own]) });
  }
}
