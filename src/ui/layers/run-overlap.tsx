/** Mask overlap of two runs: a number about both, so they stand in one column; it is counted when it is chosen. */
import { type ReactNode, useEffect, useMemo } from 'react';
import type { Recipe } from '../../formats/recipe';
import type { MaskOverlap, OverlapRequest } from '../../reports/delta-statistics';
import type { RunsReport } from '../charts/measured';
import { absenceOf } from '../charts/metric-choice';
import type { Metric, Subject } from '../charts/metrics';
import { REST_MS, useDebounced } from '../parts/use-settled';
import { goesUnasked } from '../state/delta-statistics';
import { runTool, whyNoTool } from '../state/job';
import { tensorProgress } from '../state/job-state';
import { recipeKey } from '../state/recipe-identity';
import type { Studio } from '../state/studio';
import { noOverlap, type OverlapSlice } from '../state/studio-state';
import { useStudio, useStudioState } from '../studio-context';
import { type LayersRun, PAIR } from './runs';

/** The runs to show: two as one where the metric is about both; and why there is nothing to see, or null. */
export function useRunOverlap(
  metric: Metric,
  shown: readonly LayersRun[],
  subject: Subject | null,
): { runs: readonly LayersRun[]; why: ReactNode } {
  const studio = useStudio();
  const overlap = useStudioState((s) => s.overlap);
  const busy = useStudioState(whyNoTool);
  const unasked = useStudioState((s) => s.plan.report !== null && goesUnasked(s.plan.report));
  const [a, b] = shown;
  const model = subject?.[0];
  const isChosen = metric.id === 'runOverlap' && a !== undefined && model !== undefined;
  const absent = isChosen ? absenceOfPair(metric, shown, model) : null;
  const asked = useMemo(() => {
    if (!isChosen || absent !== null || !b) return null;
    const recipes = [a.recipe, b.recipe] as const;
    return { recipes, model, key: overlapKey(recipes, model) };
  }, [isChosen, absent, a, b, model]);
  // once a slider rests
  const rested = useDebounced(asked, REST_MS);
  const isKnown = asked !== null && overlap.key === asked.key;
  const begins = rested !== null && rested === asked && !isKnown && busy === null && unasked;
  useEffect(() => {
    if (begins) void countOverlap(studio, rested.recipes, rested.model);
  }, [studio, begins, rested]);
  const tensors = isKnown && overlap.status === 'ready' ? overlap.tensors : NONE;
  const runs = useMemo(
    () => (asked && a && b ? [pairOf(a, b, asked.model, tensors)] : shown),
    [asked, a, b, shown, tensors],
  );
  if (!asked) return { runs, why: absent };
  if (isKnown && overlap.status === 'ready') {
    return { runs, why: tensors.length > 0 ? null : 'No tensor is trimmed by both runs.' };
  }
  if (isKnown && overlap.status === 'failed') {
    return { runs, why: `${overlap.error?.message} ${overlap.error?.hint}` };
  }
  if ((isKnown && overlap.status === 'counting') || begins) {
    return { runs, why: 'Counting what both runs keep…' };
  }
  if (busy !== null) return { runs, why: `${busy} The masks are counted after it.` };
  const offer = (
    <button
      type="button"
      className="link"
      onClick={() => void countOverlap(studio, asked.recipes, asked.model)}
    >
      Count what both runs keep
    </button>
  );
  return { runs, why: isKnown || !unasked ? offer : 'Counting what both runs keep…' };
}

/** The shown runs as one and the model whose masks were counted, where they were; null otherwise. */
export function countedOverlap(
  shown: readonly LayersRun[],
  overlap: OverlapSlice,
): { model: string; pair: LayersRun; tensors: readonly MaskOverlap[] } | null {
  const [a, b] = shown;
  if (!a || !b || shown.length !== 2 || overlap.status !== 'ready') return null;
  const model = a.contributors.find(({ id }) => overlapKey([a.recipe, b.recipe], id) === overlap.key)?.id;
  if (model === undefined) return null;
  return { model, pair: pairOf(a, b, model, overlap.tensors), tensors: overlap.tensors };
}

const NONE: readonly MaskOverlap[] = [];

function absenceOfPair(metric: Metric, shown: readonly LayersRun[], model: string): string | null {
  if (shown.length !== 2) return `${metric.label} needs two runs: show two, no more and no less.`;
  for (const { traits, contributors, name } of shown) {
    const absent = absenceOf(metric, traits);
    if (absent !== null) return absent;
    if (!contributors.some(({ id }) => id === model)) return `${name} has no ${model}.`;
  }
  return null;
}

function pairOf(a: LayersRun, b: LayersRun, model: string, tensors: readonly MaskOverlap[]): LayersRun {
  const counted = new Map(tensors.map((overlap) => [overlap.name, overlap]));
  const reports = a.tensors.flatMap((tensor): [string, RunsReport][] => {
    const overlap = counted.get(tensor.name);
    if (!overlap) return [];
    const { name, layer, module, shape, dtype, elements } = tensor;
    const report: RunsReport = {
      ...{ name, layer, module, shape, dtype, elements, copied: false, runs: { model, overlap } },
      ...{ contributors: [], signConflict: 0, cosine: [], baseNorm: 0, outputChange: 0, nonFinite: 0 },
      counts: { atBase: null, shared: [], lost: [] },
    };
    return [[name, report]];
  });
  return {
    ...a,
    id: PAIR,
    name: `${a.name} and ${b.name}`,
    state: 'exact',
    reports: new Map(reports),
    predicted: new Map(),
    kept: null,
    settings: null,
  };
}

/** Which two recipes, and which model. */
function overlapKey(recipes: readonly [Recipe, Recipe], model: string): string {
  return JSON.stringify([...recipes.map(recipeKey), model]);
}

/** Counts the overlap, unless another job is at work. Never rejects. */
async function countOverlap(studio: Studio, recipes: readonly [Recipe, Recipe], model: string) {
  const state = studio.store.getState();
  if (whyNoTool(state) !== null) return;
  const key = overlapKey(recipes, model);
  const set = (overlap: Partial<OverlapSlice>) =>
    studio.store.setState({ overlap: { ...noOverlap, key, ...overlap } });
  set({ status: 'counting' });
  const request: OverlapRequest = { recipes, model, engine: state.engine.choice };
  const outcome = await runTool(
    studio,
    'overlap',
    (onProgress) => studio.worker.overlap(request, onProgress),
    tensorProgress,
  );
  if ('value' in outcome) set({ status: 'ready', tensors: outcome.value });
  else if ('error' in outcome) set({ status: 'failed', error: outcome.error });
  else set({ status: 'stopped' });
}
