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

// Perplexity of a merge on a text while its settings change, from the first measurement on. Pure.

interface Course {
  /** The last perplexity, and the same with its own error. */
  value: string;
  title: string;
  /** Changes of the mean loss since the first measurement, in nats; half the 95 % interval of the last; that of its perplexity in words, before there is a change its own error. */
  places: readonly number[];
  half: number;
  change: string;
  /** Ends of what is drawn. */
  least: number;
  most: number;
}

const EMPTY: Course = {
  ...{ value: '–', title: 'not measured yet', places: [], half: 0, change: '', least: 0, most: 0 },
};

/** @param measured losses on the same tokens, in blocks, the oldest first */
export function courseOf(measured: readonly (readonly LossBlock[])[]): Course {
  const [first, last] = [measured[0], measured.at(-1)];
  if (!first || !last) return EMPTY;
  const apart = measured.map((blocks) => pairedDifference([blocks], [first]));
  const places = apart.map((own) => own?.mean ?? 0);
  const loss = meanLoss([last]);
  const [value, own] = [Math.exp(loss.mean), margin(loss)];
  const whole = value.toFixed(4);
  const title = own === null ? whole : `${whole} ± ${(own * value).toFixed(4)} by itself (95 %)`;
  const latest = apart.at(-1);
  const half = (latest && margin(latest)) ?? 0;
  const alone = own === null ? '' : `±\u00a0${(own * value).toFixed(2)}`;
  const change = latest && measured.length > 1 ? signedChange(latest) : alone;
  const [least, most] = [Math.min(...places) - half, Math.max(...places) + half];
  return { value: value.toFixed(2), title, places, half, change, least, most };
}
