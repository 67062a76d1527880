/**
 * The selection of PCB-Merging: what each model keeps of a tensor, and its share where several keep it, by the balances of
 * shaders/pcb.wgsl. The largest changes and the balances that count are found by searches, not sorted.
 */
import { exactFloats } from '../../backend/exact';
import { searchKeys } from '../tensor/radix-search';
import { beginSearch, type KeySearch, keptCount, keyToMagnitude } from '../tensor/radix-select';
import type { Score } from '../tensor/score';
import type { TensorTask } from '../tensor/tensor-task';
import { kernel, TAYLOR } from './pcb.kernel';

/** One change in so many counts no more than the largest of the others (the authors clip at this quantile). */
const CLIPPED = 10_000;
/** No balance comes up to it. */
const FLOAT_MAX = (2 - 2 ** -23) * 2 ** 127;

/** The balances of a tensor's changes, and what they leave of each. */
export function openScore(task: TensorTask): Score {
  const { work, plan } = task;
  const { engine, stride } = work;
  const models = plan.models.length;
  const coefficients = new Float32Array(5 * models + TAYLOR.length);
  coefficients.set(TAYLOR, 5 * models);
  const run = (elements: number, model: number) => {
    const buffer = engine.allocate(coefficients.byteLength, 'coefficients');
    engine.write(buffer, 0, new Uint8Array(exactFloats(coefficients).buffer));
    engine.run(kernel, {
      params: { elements, stride, models, model },
      buffers: { values: work.values, coefficients: buffer, out: work.packed, kept: work.kept },
    });
    engine.free(buffer);
  };
  const among = (k: number, own: Pick<KeySearch, 'buffer' | 'offset'>): KeySearch => ({
    ...own,
    search: beginSearch(k, plan.elements),
  });
  const found = ({ threshold }: KeySearch) => {
    const magnitude = keyToMagnitude(threshold!.key);
    return Number.isFinite(magnitude) ? magnitude : 0;
  };
  return {
    async search() {
      const rank = Math.floor(plan.elements / CLIPPED) + 1;
      const largest = plan.models.map((_, i) =>
        among(rank, { buffer: work.values, offset: (i + 1) * stride }),
      );
      await searchKeys(task, largest, () => undefined);
      for (const [i, search] of largest.entries()) {
        const most = found(search);
        coefficients.set([most, most > 0 ? 1 / most : 0], 5 * i);
      }
      // a model's balances lie where the others' did: one after another
      for (const [i, { parameters }] of plan.models.entries()) {
        const kept = keptCount(Number(parameters.density), plan.elements);
        const scores = { buffer: work.packed, offset: 0 };
        const most = among(1, scores);
        const least = among(Math.min(kept + 1, plan.elements), scores);
        await searchKeys(task, [most, least], (_, elements) => run(elements, i));
        const above = kept === plan.elements ? 0 : found(least);
        const range = found(most) - above;
        coefficients.set([above, kept > 0 ? found(most) : FLOAT_MAX, range > 0 ? 1 / range : 0], 5 * i + 2);
      }
    },
    trim: (_, elements) => run(elements, models),
  };
}
