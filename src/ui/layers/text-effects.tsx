/** Effects of a run's weights on what was written last in Try: measured when the metric is chosen. */
import { type ReactNode, useEffect, useMemo } from 'react';
import type { Recipe } from '../../formats/recipe';
import type { RunningProgress } from '../../reports/evaluate';
import type { EffectReport } from '../charts/measured';
import type { Metric } from '../charts/metrics';
import { LinkButton } from '../parts/Button';
import { REST_MS, useDebounced } from '../parts/use-settled';
import { goesUnasked } from '../state/delta-statistics';
import type { GenerationSlice } from '../state/generation-state';
import { runTool, whyNoTool } from '../state/job';
import { runningProgress } from '../state/job-state';
import { recipeKey } from '../state/recipe-identity';
import { type Studio, showTab } from '../state/studio';
import { type EffectsSlice, noEffects } from '../state/studio-state';
import { useStudio, useStudioState } from '../studio-context';
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
  const isChosen = metric.id === 'effect';
  const effects = useStudioState((s) => s.effects);
  const generation = useStudioState((s) => s.generation);
  const busy = useStudioState(whyNoTool);
  const unasked = useStudioState((s) => s.plan.report !== null && goesUnasked(s.plan.report));
  const recipe = shown[0]!.recipe;
  const text = useMemo(() => (isChosen ? textOf(generation, recipe) : null), [isChosen, generation, recipe]);
  const known = effects.key === text?.key ? effects : noEffects;
  const missing = text ? shown.find((run) => !known.ofRecipes.has(recipeKey(run.recipe))) : undefined;
  const wanted = missing && text ? `${text.key} ${recipeKey(missing.recipe)}` : null;
  // once a slider rests
  const rested = useDebounced(wanted, REST_MS);
  const isReady = wanted !== null && rested === wanted && busy === null && known.status === 'none';
  const begins = isReady && unasked;
  useEffect(() => {
    if (begins && missing && text) void measureEffects(studio, missing.recipe, text);
  }, [studio, begins, missing, text]);
  const runs = useMemo(
    () => (isChosen ? shown.map((run) => withEffects(run, known)) : shown),
    [isChosen, shown, known],
  );
  const note = text && `On “${text.words}”.`;
  const because = (why: ReactNode): TextEffects => ({ runs, why, note: null });
  if (!isChosen || (text && !missing)) return { runs, why: null, note };
  if (!missing || !text) {
    const go = <LinkButton onClick={() => showTab(studio, 'try')}>Write one in Try</LinkButton>;
    return because(<>Effects are those on a text that a merge has written. {go}</>);
  }
  if (known.status === 'failed') return because(`${known.error?.message} ${known.error?.hint}`);
  if (known.status === 'measuring' || begins) return because('Running the text without each change…');
  if (busy !== null) return because(`${busy} The effects are measured after it.`);
  return because(
    <LinkButton onClick={() => void measureEffects(studio, missing.recipe, text)}>
      Run the text without each change
    </LinkButton>,
  );
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
  const effects = ofRecipes.get(recipeKey(run.recipe));
  const reports = run.tensors.map((tensor): [string, EffectReport] => {
    const { name, layer, module, shape, dtype, elements, copied } = tensor;
    const report: EffectReport = {
      ...{ name, layer, module, shape, dtype, elements, copied, effect: effects?.get(name) ?? null },
      ...{ contributors: [], signConflict: 0, cosine: [], baseNorm: 0, outputChange: 0, nonFinite: 0 },
      counts: { atBase: null, shared: [], lost: [] },
    };
    return [name, report];
  });
  return { ...run, state: 'exact', reports: new Map(reports) };
}

/** Measures the effects of a run's weights on a text, unless another job is at work. Never rejects. */
async function measureEffects(studio: Studio, recipe: Recipe, text: WrittenText): Promise<void> {
  const { engine, recipe: state } = studio.store.getState();
  if (whyNoTool(studio.store.getState()) !== null || state.base === null) return;
  const set = (change: Partial<EffectsSlice>) =>
    studio.store.setState(({ effects }) => ({
      effects: { ...(effects.key === text.key ? effects : noEffects), key: text.key, ...change },
    }));
  set({ status: 'measuring', error: null });
  const { prompt, chat, ids } = text;
  const request = { recipe, base: state.base, prompt, chat, ids, engine: engine.choice };
  const outcome = await runTool(
    studio,
    'effects',
    (onProgress: (progress: RunningProgress) => void) => studio.worker.effects(request, onProgress),
    (progress) => ({ ...runningProgress(progress), counted: null, rate: null }),
  );
  if ('error' in outcome) set({ status: 'failed', error: outcome.error });
  else if ('canceled' in outcome) set({ status: 'stopped' });
  else {
    const own = new Map(outcome.value.map(({ name, effect }) => [name, effect]));
    const { ofRecipes } = studio.store.getState().effects;
    set({ status: 'none', ofRecipes: new Map([...ofRecipes, [recipeKey(recipe), own]]) });
  }
}
