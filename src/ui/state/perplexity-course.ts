/**
 * Perplexity of the recipe's merge while its sliders move: text by text on the part that settings are tuned on, so that what
 * Measure reports stays unseen. The engine does it when it has nothing else to do.
 */
import { errorReport } from '../../errors';
import { signedChange } from '../../reports/conclusion';
import { type LossBlock, margin, meanLoss, pairedDifference } from '../../reports/paired-error';
import { evaluationRows, modelsKey, targetKey } from './evaluation-rows';
import { standsStill } from './generation';
import type { CourseSlice } from './generation-state';
import { whyNotRun } from './measure';
import { partStretches } from './measure-texts';
import { editSlice, type Studio, type StudioState } from './studio';

/** The recipe's merge, and the text to be measured next: the one whose number is the oldest; null where there is none. */
export function nextOfCourse(state: StudioState) {
  const { recipe, models, measure, generation, deltaStatistics } = state;
  const { course, columns, written } = generation;
  // the statistics have the engine
  const isBusy = course.busy || deltaStatistics.status === 'measuring';
  if (isBusy || written === null || whyNotRun(state) !== null) return null;
  const target = evaluationRows(recipe, models).find(({ current }) => current)?.target;
  if (!target || !('recipe' in target)) return null;
  const [of, key] = [modelsKey(recipe, models), targetKey(target)];
  // where nothing follows the sliders, it is that of the text
  const isText = columns.some((own) => own.status === 'done' && targetKey(own.target) === key);
  if (course.failed?.key === key || (standsStill(state) && !isText)) return null;
  const points = course.of === of ? course.points : [];
  const last = (id: string) => points.findLastIndex(({ text }) => text === id);
  const [text] = measure.texts
    .filter(({ chosen, id }) => chosen && points[last(id)]?.key !== key)
    .sort((a, b) => last(a.id) - last(b.id));
  return text ? { of, key, points, text, recipe: target.recipe, weights: written.weights } : null;
}

/** Measures the next text. Never rejects. */
export async function measureCourse(studio: Studio): Promise<void> {
  const { engine, ...state } = studio.store.getState();
  const next = nextOfCourse({ engine, ...state });
  if (!next) return;
  const edit = (change: Partial<CourseSlice>) =>
    editSlice(studio, 'generation', ({ course }) => ({ course: { ...course, ...change } }));
  const { of, key, points, text, recipe, weights } = next;
  edit({ of, points, busy: true });
  try {
    const stretches = partStretches(text, 'quick', 'tuning');
    const blocks = await studio.worker.livePerplexity({ recipe, stretches, weights, engine: engine.choice });
    edit({ points: [...points, { text: text.id, key, blocks }], failed: null });
  } catch (thrown) {
    const error = errorReport(thrown);
    // something else needed the engine: it is measured after that
    if (error.code !== 'Canceled' && error.code !== 'Busy') edit({ failed: { key, error } });
  } finally {
    edit({ busy: false });
  }
}

/**
 * Perplexity of a merge on a text while its settings change: the last one, the change of the mean loss at every point since
 * the first in nats, half the 95 % interval of the last, and that change in words, before there is one its own error. Pure.
 * @param measured losses on the same tokens, in blocks, the oldest first
 */
export function courseOf(measured: readonly (readonly LossBlock[])[]) {
  const [first, last] = [measured[0], measured.at(-1)];
  if (!first || !last) return { value: '–', places: [], half: 0, change: '' };
  const apart = measured.map((blocks) => pairedDifference([blocks], [first]));
  const latest = apart.at(-1)!;
  const loss = meanLoss([last]);
  const [value, own] = [Math.exp(loss.mean), margin(loss)];
  const alone = own === null ? '' : `±\u00a0${(own * value).toFixed(2)}`;
  return {
    value: value.toFixed(2),
    places: apart.map((of) => of?.mean ?? 0),
    half: (latest && margin(latest)) ?? 0,
    change: latest && measured.length > 1 ? signedChange(latest) : alone,
  };
}
