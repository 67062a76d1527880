/** Methods with a kernel of their own that looks at one element of every vector at a time. */
import type { BackendBuffer } from '../../backend/backend';
import { exactFloats } from '../../backend/exact';
import { blockCount } from '../../backend/kernel';
import type { ElementwiseCompute } from '../method';
import { TileSums } from './finished-tile';
import { type Emit, type TensorStatistics, vectorStatistics } from './tensor-outcome';
import type { TensorTask } from './tensor-task';
import { runEncode } from './tile-encoding';

/**
 * Merges one tensor in one pass, or in two where the coefficients depend on counts.
 * @throws AmalgamError `NonFinite`
 */
export async function mergeElementwise(
  task: TensorTask,
  method: ElementwiseCompute,
  nonFinite: 'stop' | 'carry',
  emit: Emit,
): Promise<TensorStatistics> {
  const { work, plan } = task;
  const { engine } = work;
  const models = plan.models.length;
  const count = method.counters?.(models) ?? 0;
  const counters = engine.allocate(count * 4, 'counters');
  const settings = plan.models.map((m) => m.parameters);
  const first = method.coefficients(plan.parameters, settings);
  const coefficients = engine.allocate(first.length * 4, 'coefficients');
  const sums = new TileSums(task, nonFinite);
  const run = (elements: number) =>
    engine.run<'elements' | 'stride' | 'models', string>(method.kernel, {
      params: { elements, stride: work.stride, models },
      buffers: {
        values: work.values,
        coefficients,
        out: work.merged,
        ...(method.counters ? { counters } : {}),
      },
      groups: blockCount(elements),
      elements,
    });
  /** Counters of a tile, so that they never overflow: a tile has fewer than 2^32 elements, a tensor may have more. */
  const take = async (totals: number[]) => {
    const [bytes] = await engine.read([{ buffer: counters, byteLength: totals.length * 4 }]);
    engine.clear(counters);
    for (const [i, n] of new Uint32Array(bytes!.buffer).entries()) totals[i]! += n;
  };
  const counted = new Array<number>(count).fill(0);
  try {
    write(engine, coefficients, first);
    if (method.recount) {
      await task.pass(async (_, elements) => {
        run(elements);
        await take(counted);
        await sums.measure(elements);
      });
      write(engine, coefficients, method.recount(plan.parameters, settings, counted));
    }
    await task.pass(async (_, elements) => {
      run(elements);
      if (method.recount) engine.clear(counters);
      else if (count > 0) await take(counted);
      runEncode(task, elements);
      await sums.finish(elements, method.recount !== undefined, emit);
    });
  } finally {
    engine.free(counters);
    engine.free(coefficients);
  }
  return vectorStatistics(plan, sums, {
    change: sums.change,
    ...(method.counters ? { kept: counted.slice(0, models) } : {}),
  });
}

function write(engine: TensorTask['work']['engine'], buffer: BackendBuffer, values: readonly number[]): void {
  engine.write(buffer, 0, new Uint8Array(exactFloats(values).buffer));
}
