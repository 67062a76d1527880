/** Task vectors of a linear layer, whole on the device, transposed where needed so that rows are outputs. */
import type { Backend, BackendBuffer } from '../backend/backend';
import { exactFloats } from '../backend/exact';
import { moveValues } from '../backend/kernels/sums';
import { AmalgamError } from '../errors';
import { type ReadTensor, readF32 } from '../inputs/stored-tensor';
import { readProducts, runProducts } from '../merge/tensor/delta-measure';
import { ProductSums } from '../merge/tensor/tensor-outcome';
import { openTask } from '../merge/tensor/tensor-task';
import { requireFinite } from '../merge/tensor/tile-encoding';
import type { Workspace } from '../merge/tensor/workspace';
import type { LinearTensor } from './linear-tensors';
import { transpose } from './row-chunks';

export interface TaskVectors {
  /** τ of each contributor, f32 [outputs, inputs]. */
  taus: BackendBuffer[];
  /** W₀, f32 [outputs, inputs], where it was asked for. */
  base?: BackendBuffer;
  norms: number[];
  /** Pairwise cosines; 0 where a vector is zero. */
  cosine: number[][];
  close(): void;
}

/**
 * Loads τᵢ = Wᵢ − W₀ of the plan's contributors, and W₀ where it is wanted.
 * @throws AmalgamError `NonFinite`, `LimitExceeded` for a layer that does not fit into one buffer of the device
 */
export async function loadTaskVectors(
  { plan, inputs, outputs, storage }: LinearTensor,
  work: Workspace,
  read: ReadTensor,
  wantsBase = false,
): Promise<TaskVectors> {
  const { engine, stride } = work;
  if (plan.elements * 4 > engine.maxBufferBytes) {
    throw new AmalgamError(
      'LimitExceeded',
      `${plan.name} takes ${plan.elements * 4} bytes as float32; one buffer of ${engine.adapter} holds ${engine.maxBufferBytes}.`,
      'Use a device with larger buffers, or a method that does not run the models.',
    );
  }
  const stored: BackendBuffer[] = [];
  const slot = wantsBase ? 0 : 1;
  const task = openTask(plan, 'delta', work, read);
  const sums = new ProductSums(plan.models.length + 1);
  try {
    if (wantsBase) stored.push(engine.allocate(plan.elements * 4, 'base'));
    for (const { id } of plan.models) stored.push(engine.allocate(plan.elements * 4, `change of ${id}`));
    await task.pass(async ({ begin }, elements) => {
      for (const [i, y] of stored.entries()) {
        engine.run(moveValues, {
          params: { elements, from_word: (i + slot) * stride, to_word: begin },
          buffers: { x: work.values, y },
        });
      }
      runProducts(task, elements);
      const { products, nonFinite } = await readProducts(task, elements);
      requireFinite(task, nonFinite, 'stop');
      sums.add(products);
    });
  } catch (error) {
    for (const buffer of stored) engine.free(buffer);
    throw error;
  } finally {
    task.close();
  }
  const oriented = storage === 'out_in' ? stored : stored.map((t) => transpose(engine, t, inputs, outputs));
  const [base, taus] = wantsBase ? [oriented[0]!, oriented.slice(1)] : [undefined, oriented];
  if (storage === 'in_out') for (const buffer of stored) engine.free(buffer);
  return {
    taus,
    ...(base && { base }),
    norms: plan.models.map((_, i) => sums.norm(i + 1)),
    cosine: sums.cosines(1),
    close() {
      for (const buffer of oriented) engine.free(buffer);
    },
  };
}

/** The plan with some of its contributors only. */
export function withContributors(tensor: LinearTensor, which: readonly number[]): LinearTensor {
  const { plan } = tensor;
  return { ...tensor, plan: { ...plan, models: which.map((i) => plan.models[i]!) } };
}

/**
 * The changes of LoRAs by their factors: sᵢAᵢ in rows of its own, zeros in those of the others, f32 [Σ ranks, inputs]. Whatever
 * multiplies τᵢ = sᵢBᵢAᵢ from the right then multiplies these, and with [B₁ B₂ …] before them they are Σ τᵢ.
 */
export async function loadFactors(
  { plan, inputs }: LinearTensor,
  engine: Backend,
  read: ReadTensor,
): Promise<{ taus: BackendBuffer[]; rows: number }> {
  const updates = plan.models.map(({ view }) => view.lowRank);
  const rows = updates.reduce((sum, update) => sum + (update?.rank ?? 0), 0);
  const taus = plan.models.map(({ id }) => engine.allocate(rows * inputs * 4, `factors of ${id}`));
  let first = 0;
  for (const [i, update] of updates.entries()) {
    if (!update) continue;
    const values = exactFloats((await readF32(update.a, read)).map((value) => value * update.scale));
    engine.write(taus[i]!, first * inputs * 4, new Uint8Array(values.buffer));
    first += update.rank;
  }
  return { taus, rows };
}
