/**
 * The weights of a plan as the forward pass reads them, without a merged checkpoint anywhere: stored tensors are read
 * where they lie, plain LoRA updates are handed over as their factors, everything else is computed when it is read.
 */
import type { Backend } from '../backend/backend';
import { isWeightDtype } from '../formats/dtype';
import { tensorBytes } from '../formats/safetensors-header';
import {
  joinedUpdate,
  type LowRankUpdate,
  type StoredWeight,
  type WeightSource,
  type WeightSummand,
} from '../forward/weight-source';
import { threadPool } from '../host/threads';
import { castTensor } from '../inputs/dequantization';
import { loadFactorValues, type ReadTensor } from '../inputs/stored-tensor';
import type { LowRank, TensorView } from '../inputs/tensor-view';
import type { MergeMethod } from '../merge/method';
import { methodById } from '../merge/methods';
import type { Plan, TensorPlan } from '../merge/plan/plan';
import { measuredTensors, measureWholeModel } from '../merge/run/whole-model';
import {
  type ComputeSettings,
  canBeCut,
  computeTensor,
  openComputed,
  openWorkspaceFor,
} from '../merge/tensor/computation';
import type { Prepared } from '../merge/tensor/prepared';
import type { Workspace } from '../merge/tensor/workspace';
import { throwIfCanceled } from '../sources/cancellation';
import { giveBack, spareCopy } from '../sources/spare-arrays';
import {
  changeCoefficients,
  type FactoredChange,
  factoredChange,
  linearChange,
  withoutEffect,
} from './weight-change';

export interface PlannedWeights extends WeightSource {
  /** Gives back the device memory that merging takes; the next read takes it again. */
  rest(): void;
  close(): void;
}

/**
 * Opens the weights of a clean plan. A merged tensor has the dtype the plan would write, so that what is measured is
 * what would be saved; `exact` reads f32 instead (a model with its adapter, which is not going to be written).
 *
 * @param engines of one kind: as many tensors are merged at once
 * @param prepared what was worked out ahead, for methods that need it
 */
export async function openPlannedWeights(
  plan: Plan,
  engines: readonly Backend[],
  read: ReadTensor,
  exact: boolean,
  prepared?: Prepared,
): Promise<PlannedWeights> {
  const planned = plannedTensors(plan, exact, exact ? factoredChange : () => undefined);
  const computed = computedTensors(planned);
  const merged = computed.length > 0 ? await openMerged(plan, computed, engines, read, prepared) : undefined;
  return {
    ...storedTensors(planned, (lowRank) => loadFactorValues(lowRank, read)),
    exclusive: merged !== undefined,
    atOnce: merged ? engines.length : 1,
    read: readTensorOf(
      (name) => planned.get(name)!,
      read,
      () => merged!,
    ),
    rest() {
      merged?.rest();
    },
    close() {
      merged?.rest();
    },
  };
}

/** How a weight is read: as it is stored, as a stored one and what changes it, or computed. */
export interface PlannedTensor {
  plan: TensorPlan;
  change: FactoredChange | undefined;
}

/** The weights of a plan by their stored names. @param exact as of {@link openPlannedWeights} */
export function plannedTensors(
  { tensors }: Plan,
  exact: boolean,
  changeOf: (tensor: TensorPlan) => FactoredChange | undefined,
): Map<string, PlannedTensor> {
  const weights = castPlans(tensors).filter(({ dtype }) => isWeightDtype(dtype));
  return new Map(
    weights.map((tensor) => {
      const change = changeOf(tensor);
      const isExact = exact && !tensor.copy && !change;
      return [tensor.name, { plan: isExact ? { ...tensor, dtype: 'F32' as const } : tensor, change }];
    }),
  );
}

export function computedTensors(planned: ReadonlyMap<string, PlannedTensor>): TensorPlan[] {
  return [...planned.values()].flatMap(({ plan, change }) => {
    const apart = change?.differences.map((difference) => difference.plan) ?? [];
    return plan.copy || (change && apart.length === 0) ? apart : [plan, ...apart];
  });
}

/** The tensors that weights are sums of, by the names they are read by. */
export function plannedSummands(planned: ReadonlyMap<string, PlannedTensor>): Map<string, PlannedTensor> {
  const summands = new Map<string, PlannedTensor>();
  for (const [name, { plan, change }] of planned) {
    if (!change?.differences.length) continue;
    const { origin, differences } = change;
    const base = { ...plan, name: unchanged(name), dtype: origin.dtype, copy: origin };
    for (const own of [base, ...differences.map((difference) => difference.plan)])
      summands.set(own.name, { plan: own, change: undefined });
  }
  return summands;
}

/** A weight before anything changes it. */
const unchanged = (name: string) => `${name}, unchanged`;

/** Weights as the forward pass knows them. @param into in place of what these hold */
export function storedTensors(
  planned: ReadonlyMap<string, PlannedTensor>,
  load: LoadFactors,
  into = {
    tensors: new Map<string, StoredWeight>(),
    updates: new Map<string, LowRankUpdate>(),
    sums: new Map<string, readonly WeightSummand[]>(),
  },
) {
  const { tensors, updates, sums } = into;
  for (const map of [tensors, updates, sums]) map.clear();
  for (const [name, { plan, change }] of planned) {
    const isSum = change !== undefined && change.differences.length > 0;
    tensors.set(name, storedAs(plan, isSum ? undefined : change));
    const update = change && joinedUpdate(updatesOf(change, load));
    if (update) updates.set(name, update);
    if (isSum) sums.set(name, summandsOf(name, change));
  }
  return into;
}

function summandsOf(name: string, { origin, differences }: FactoredChange): WeightSummand[] {
  const all = [
    { name: unchanged(name), dtype: origin.dtype, scale: 1 },
    ...differences.map(({ plan, coefficient }) => ({ ...plan, scale: coefficient })),
  ];
  return all.map(({ name: own, dtype, scale }) => {
    if (!isWeightDtype(dtype)) throw new Error(`${own}: ${dtype} is no weight`);
    return { name: own, dtype, scale };
  });
}

/** Reads weights from where each lies. */
export function readTensorOf(
  planned: (name: string) => PlannedTensor,
  read: ReadTensor,
  merged: () => MergedTensors,
): WeightSource['read'] {
  return (name, begin, end, signal) => {
    const { plan, change } = planned(name);
    const stored = plan.copy ?? (change?.differences.length ? undefined : change?.origin);
    return stored ? read(stored, begin, end) : merged().read(plan, begin, end, signal);
  };
}

/** The tensors, those that are copied in a dtype that is not computed with as the f32 values that they stand for, where they do. */
export function castPlans(tensors: readonly TensorPlan[]): TensorPlan[] {
  const names = new Set(tensors.map(({ name }) => name));
  return tensors.map((tensor) => {
    const { copy, base: _, ...own } = tensor;
    const origin = copy && castTensor(copy, names);
    if (!origin) return tensor;
    const models = [{ id: copy.folder, view: { origin, onBase: false }, parameters: { scale: 1 } }];
    return { ...own, dtype: 'F32', method: 'passthrough', parameters: {}, models };
  });
}

/** How a tensor is stored that is read as it is, or computed in the plan's dtype. */
function storedAs(tensor: TensorPlan, change: FactoredChange | undefined): StoredWeight {
  const { dtype } = change?.origin ?? tensor;
  if (!isWeightDtype(dtype)) throw new Error(`${tensor.name}: ${dtype} is no weight`);
  return { dtype, shape: tensor.shape };
}

/** What a model keeps on the device beside stored weights, by their names. */
export interface KeptApart {
  /** Weights that can have an update in factors. */
  factored: ReadonlySet<string>;
  /** Weights that can be sums. */
  summed: ReadonlySet<string>;
  /** Room for all weights: where they do not fit with the differences, tensors are merged. */
  roomBytes: number;
}

/** The weights of a plan whose recipe may change. @param exact as of {@link openPlannedWeights}; @param before as they were */
export function livePlannedTensors(
  plan: Plan,
  exact: boolean,
  { factored, summed, roomBytes }: KeptApart,
  before?: ReadonlyMap<string, PlannedTensor>,
): Map<string, PlannedTensor> {
  const withoutSums = (tensor: TensorPlan) =>
    factored.has(tensor.name) ? factoredChange(tensor) : undefined;
  const withSums = (tensor: TensorPlan) => {
    const change = summed.has(tensor.name) ? linearChange(tensor, factored.has(tensor.name)) : undefined;
    return change?.differences.length ? change : withoutSums(tensor);
  };
  const planWith = (changeOf: typeof withSums) =>
    plannedTensors(
      plan,
      exact,
      (tensor) => changeOf(tensor) ?? withoutEffect(tensor, before?.get(tensor.name)?.change),
    );
  const whole = planWith(withSums);
  return residentBytes(whole) <= roomBytes ? whole : planWith(withoutSums);
}

/** Bytes of all weights, as they are kept. */
function residentBytes(planned: ReadonlyMap<string, PlannedTensor>): number {
  let bytes = differenceBytes(planned);
  for (const { plan, change } of planned.values()) {
    bytes += tensorBytes(change?.origin.dtype ?? plan.dtype, plan.shape) ?? 0;
    for (const { lowRank } of change?.factors ?? [])
      bytes += 4 * lowRank.rank * plan.shape.reduce((a, b) => a + b, 0);
  }
  return bytes;
}

/** Of them, differences. */
export function differenceBytes(planned: ReadonlyMap<string, PlannedTensor>): number {
  const all = [...planned.values()].flatMap(({ change }) => change?.differences ?? []);
  return all.reduce((sum, { plan }) => sum + (tensorBytes(plan.dtype, plan.shape) ?? 0), 0);
}

type LoadFactors = (lowRank: LowRank) => ReturnType<typeof loadFactorValues>;

/** The factors as updates of the forward pass. */
function updatesOf({ factors }: FactoredChange, load: LoadFactors): LowRankUpdate[] {
  return factors.map(({ coefficient, lowRank }) => ({
    rank: lowRank.rank,
    scale: coefficient * lowRank.scale,
    load: () => load(lowRank),
  }));
}

export interface MergedTensors {
  /**
   * Bytes of a tensor as the plan would write them; it stays in memory until its last byte is read, since a pass reads each front to
   * back, or another one is.
   * @throws AmalgamError `Canceled` in the middle of a tensor too
   */
  read(
    tensor: TensorPlan,
    begin: number,
    end: number,
    signal?: AbortSignal,
  ): Promise<Uint8Array<ArrayBuffer>>;
  /** Gives back the device memory that merging takes. */
  rest(): void;
}

/**
 * Computes tensors of a plan whole, each engine one at a time.
 * @param computed all that will be asked for
 * @throws AmalgamError `NonFinite`, and what reading throws
 */
export async function openMerged(
  plan: Plan,
  computed: readonly TensorPlan[],
  engines: readonly Backend[],
  read: ReadTensor,
  prepared: Prepared | undefined,
): Promise<MergedTensors> {
  const tensors = [...computed, ...measuredTensors(plan, methodById)];
  const open = (engine: Backend) => openWorkspaceFor(tensors, methodById, engine);
  const works = new Map<Backend, Workspace>();
  const workOn = (engine: Backend) => {
    const work = works.get(engine) ?? open(engine);
    works.set(engine, work);
    return work;
  };
  const { seed = 0, nonFinite = 'stop' } = plan.recipe.amalgam;
  const measured = { plan, methods: methodById, engine: engines[0]!, read, seed, nonFinite };
  const wholeModel =
    measuredTensors(plan, methodById).length > 0
      ? await measureWholeModel({ ...measured, work: workOn(engines[0]!) })
      : undefined;
  const settings = {
    seed,
    nonFinite,
    ...(wholeModel ? { wholeModel } : {}),
    ...(prepared ? { prepared } : {}),
  };
  const { run } = threadPool(engines);
  const whole = new Map<string, Promise<Uint8Array<ArrayBuffer>>>();
  return {
    async read(tensor, begin, end, signal) {
      const { name } = tensor;
      const heeding: ReadTensor = (...asked) => {
        throwIfCanceled(signal);
        return read(...asked);
      };
      const merge = (own: TensorPlan) => run((engine) => mergeWhole(own, workOn(engine), heeding, settings));
      const part = whole.has(name) ? undefined : rangeOf(tensor, begin, end);
      if (part) return merge(part);
      const merged = whole.get(name) ?? merge(tensor);
      whole.set(name, merged);
      if (whole.size > engines.length) whole.delete(whole.keys().next().value!);
      try {
        const bytes = await merged;
        if (end === bytes.length) whole.delete(name);
        return spareCopy(bytes.subarray(begin, end));
      } catch (thrown) {
        whole.delete(name);
        throw thrown;
      }
    },
    rest() {
      for (const work of works.values()) work.close();
      works.clear();
    },
  };
}

/** Most of a tensor that is merged by itself. */
const FEW = 1 / 16;

/** A few elements of a tensor that is merged one element at a time, as a tensor; undefined for all else. */
function rangeOf(tensor: TensorPlan, begin: number, end: number): TensorPlan | undefined {
  const bytes = tensorBytes(tensor.dtype, tensor.shape)!;
  const method = methodById.get(tensor.method)!;
  const isLinear = method.compute.kind === 'weights' || changeCoefficients(tensor, method) !== undefined;
  if (end - begin > FEW * bytes || !isLinear || !canBeCut(tensor, method)) return undefined;
  const width = bytes / tensor.elements;
  const shape = [(end - begin) / width];
  const cut = (view: TensorView): TensorView => {
    const stored = (view.origin.end - view.origin.begin) / tensor.elements;
    const place = {
      begin: view.origin.begin + (begin / width) * stored,
      end: view.origin.begin + (end / width) * stored,
    };
    return { ...view, origin: { ...view.origin, ...place, shape } };
  };
  return {
    ...tensor,
    ...{ shape, elements: shape[0]! },
    ...(tensor.base && { base: cut(tensor.base) }),
    models: tensor.models.map((model) => ({ ...model, view: cut(model.view) })),
  };
}

async function mergeWhole(
  tensor: TensorPlan,
  work: Workspace,
  read: ReadTensor,
  settings: ComputeSettings,
): Promise<Uint8Array<ArrayBuffer>> {
  const method: MergeMethod = methodById.get(tensor.method)!;
  const whole = new Uint8Array(tensorBytes(tensor.dtype, tensor.shape)!);
  let at = 0;
  const task = openComputed(tensor, method, work, read, settings.prepared);
  try {
    await computeTensor(task, method, settings, async (bytes) => {
      whole.set(bytes, at);
      at += bytes.length;
      giveBack(bytes.buffer);
    });
  } finally {
    task.close();
  }
  return whole;
}
