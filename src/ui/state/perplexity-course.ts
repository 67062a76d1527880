/**
 * Perplexity of the recipe's merge while its sliders move: text by text on the part that settings are tuned on, so that what
 * Measure reports stays unseen. The engine does it when it has nothing else to do.
 */
import { errorReport } from '../../errors';
import { evaluationRows, modelsKey, targetKey } from './evaluation-rows';
import { standsStill } from './generation';
import type { CourseSlice } from './generation-state';
import { whyNotRun } from './measure';
import { partStretches } from './measure-texts';
import { editSlice, type Studio, type StudioState } from './studio';

/** Points of a line at most. */
const MOST = 60;

/** The recipe's merge, and the text to be measured next: the one whose number is out of date for longest; null where there is none. */
export function nextOfCourse(state: StudioState) {
  const { recipe, models, measure, generation, deltaStatistics } = state;
  const { course } = generation;
  // the statistics have the engine
  const isBusy = course.busy || deltaStatistics.status === 'measuring';
  if (isBusy || generation.written === null || whyNotRun(state) !== null) return null;
  const target = evaluationRows(recipe, models).find(({ current }) => current)?.target;
  if (!target || !('recipe' in target)) return null;
  const [of, key] = [modelsKey(recipe, models), targetKey(target)];
  // where nothing follows the sliders, it is that of the text
  const isText = generation.columns.some((own) => own.status === 'done' && targetKey(own.target) === key);
  if (course.failed?.key === key || (standsStill(state) && !isText)) return null;
  const points = course.of === of ? course.points : new Map();
  const order = [...points.keys()];
  const [text] = measure.texts
    .filter(({ chosen, id }) => chosen && points.get(id)?.at(-1)?.key !== key)
    .sort((a, b) => order.indexOf(a.id) - order.indexOf(b.id));
  return text ? { of, key, points, text, recipe: target.recipe } : null;
}

/** Measures the next text. Never rejects. */
export async function measureCourse(studio: Studio): Promise<void> {
  const next = nextOfCourse(studio.store.getState());
  if (!next) return;
  const edit = (change: Partial<CourseSlice>) =>
    editSlice(studio, 'generation', ({ course }) => ({ course: { ...course, ...change } }));
  const { of, key, points, text, recipe } = next;
  edit({ of, points, busy: true });
  const { engine, generation } = studio.store.getState();
  const { weights } = generation.written!;
  try {
    const stretches = partStretches(text, 'quick', 'tuning');
    const blocks = await studio.worker.livePerplexity({ recipe, stretches, weights, engine: engine.choice });
    const rest = new Map(points);
    rest.delete(text.id);
    const line = [...(points.get(text.id) ?? []), { key, blocks }].slice(-MOST);
    edit({ points: rest.set(text.id, line), failed: null });
  } catch (thrown) {
    const error = errorReport(thrown);
    // something else needed the engine: it is measured after that
    if (error.code !== 'Canceled' && error.code !== 'Busy') edit({ failed: { key, error } });
  } finally {
    edit({ busy: false });
  }
}
