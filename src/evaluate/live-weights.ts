/**
 * Weights of a merge whose recipe changes while they are in use. Where the merge is linear in changes, LoRA updates stay factors
 * over the base's weights and other contributors differences to them, as long as these fit, and another weight or λ is another
 * scale; all else is merged again when it is next read.
 */
import type { Backend } from '../backend/backend';
import type { ChangedWeights } from '../forward/weight-source';
import { loadFactorValues, type ReadTensor } from '../inputs/stored-tensor';
import type { LowRank } from '../inputs/tensor-view';
import { methodById } from '../merge/methods';
import type { Plan, TensorPlan } from '../merge/plan/plan';
import { measuredTensors } from '../merge/run/whole-model';
import type { Prepared } from '../merge/tensor/prepared';
import {
  computedTensors,
  type KeptApart,
  livePlannedTensors,
  type MergedTensors,
  openMerged,
  type PlannedTensor,
  type PlannedWeights,
  plannedSummands,
  readTensorOf,
  storedTensors,
} from './planned-weights';
import { type FactoredChange, nameOf } from './weight-change';

export interface LiveWeights extends PlannedWeights {
  /**
   * Takes another recipe of the same inputs and outputs, between two passes; what was read before is out of date where it says so.
   * @throws what merging throws; the weights are of no use then
   */
  become(plan: Plan, prepared?: Prepared): Promise<ChangedWeights>;
}

interface LiveTensor extends PlannedTensor {
  /** Equal where the values are. */
  key: string;
}

/**
 * Opens the weights of a clean plan.
 * @param exact as of `openPlannedWeights`
 */
export async function openLiveWeights(
  plan: Plan,
  engines: readonly Backend[],
  read: ReadTensor,
  apart: KeptApart,
  exact: boolean,
  prepared?: Prepared,
): Promise<LiveWeights> {
  const values = new Map<string, ReturnType<typeof loadFactorValues>>();
  /** Factors stay in memory: they are needed whenever a scale changes. */
  const load = (lowRank: LowRank) => {
    const name = nameOf(lowRank.a, lowRank.b);
    const loading = values.get(name) ?? loadFactorValues(lowRank, read);
    values.set(name, loading);
    return loading;
  };
  let live = new Map<string, LiveTensor>();
  let summands = new Map<string, PlannedTensor>();
  const stored = storedTensors(live, load);
  let merged: MergedTensors | undefined;

  const take = async (next: Plan, ahead: Prepared | undefined): Promise<void> => {
    const planned = livePlannedTensors(next, exact, apart, live);
    summands = plannedSummands(planned);
    live = new Map(
      [...planned].map(([name, tensor]) => [name, { ...tensor, key: keyOf(tensor.plan, next) }]),
    );
    const computed = computedTensors(planned);
    merged?.rest();
    merged = computed.length > 0 ? await openMerged(next, computed, engines, read, ahead) : undefined;
    storedTensors(planned, load, stored);
  };
  await take(plan, prepared);

  return {
    ...stored,
    exclusive: true,
    atOnce: engines.length,
    read: readTensorOf(
      (name) => live.get(name) ?? summands.get(name)!,
      read,
      () => merged!,
    ),
    async become(next, ahead) {
      const before = live;
      await take(next, ahead);
      // thresholds of the whole model, or what text made of it, may change all
      const isMeasured = ahead !== undefined || measuredTensors(next, methodById).length > 0;
      const changed = { updates: new Set<string>(), weights: new Set<string>() };
      for (const [name, { change, key, plan: tensor }] of live) {
        const was = before.get(name)!;
        const isComputed = !change && !tensor.copy;
        if (was.key === key && !(isMeasured && isComputed)) continue;
        if (change && was.change && isOver(change, was.change)) changed.updates.add(name);
        else changed.weights.add(name);
      }
      return changed;
    },
    rest: () => merged?.rest(),
    close() {
      merged?.rest();
      values.clear();
    },
  };
}

/** Whether a change is over the same weight and differences as another. */
function isOver({ origin, differences }: FactoredChange, was: FactoredChange): boolean {
  const names = (all: FactoredChange['differences']) => all.map(({ plan }) => plan.name).join();
  return nameOf(origin) === nameOf(was.origin) && names(differences) === names(was.differences);
}

function keyOf({ copy, method, parameters, models, dtype }: TensorPlan, { recipe }: Plan): string {
  if (copy) return nameOf(copy);
  const { seed, nonFinite } = recipe.amalgam;
  const own = models.map((model) => [model.id, model.parameters]);
  return JSON.stringify([method, parameters, own, dtype, seed, nonFinite]);
}
