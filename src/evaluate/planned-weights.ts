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
} from '../forward/weight-source';
import { threadPool } from '../host/threads';
import { castTensor } from '../inputs/dequantization';
import { loadFactorValues, type ReadTensor } from '../inputs/stored-tensor';
import type { LowRank, TensorRef, TensorView } from '../inputs/tensor-view';
import type { MergeMethod } from '../merge/method';
import { methodById } from '../merge/methods';
import type { Plan, TensorPlan } from '../merge/plan/plan';
import { measuredTensors, measureWholeModel } from '../merge/run/whole-model';
import { changeCoefficients } from '../merge/tensor/change-coefficients';
import {
  type ComputeSettings,
  computeTensor,
  openComputed,
  openWorkspaceFor,
} from '../merge/tensor/computation';
import type { Prepared } from '../merge/tensor/prepared';
import type { Workspace } from '../merge/tensor/workspace';
import { giveBack, spareCopy } from '../sources/spare-arrays';

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

/** How a weight is read: as it is stored, as a stored one and factors over it, or computed. */
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
  return [...planned.values()].flatMap(({ plan, change }) => (plan.copy || change ? [] : [plan]));
}

/** Weights as the forward pass knows them. @param into in place of what these hold */
export function storedTensors(
  planned: ReadonlyMap<string, PlannedTensor>,
  load: LoadFactors,
  into = { tensors: new Map<string, StoredWeight>(), updates: new Map<string, LowRankUpdate>() },
) {
  const { tensors, updates } = into;
  tensors.clear();
  updates.clear();
  for (const [name, { plan, change }] of planned) {
    tensors.set(name, storedAs(plan, change));
    if (change) updates.set(name, joinedUpdate(updatesOf(change, load))!);
  }
  return into;
}

/** Reads weights from where each lies. */
export function readTensorOf(
  planned: (name: string) => PlannedTensor,
  read: ReadTensor,
  merged: () => MergedTensors,
): WeightSource['read'] {
  return (name, begin, end) => {
    const { plan, change } = planned(name);
    const stored = change?.origin ?? plan.copy;
    return stored ? read(stored, begin, end) : merged().read(plan, begin, end);
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

/** W₀ + Σ cᵢ·ΔWᵢ, each ΔWᵢ as its factors. */
export interface FactoredChange {
  origin: TensorRef;
  factors: readonly { coefficient: number; lowRank: LowRank }[];
}

/**
 * A linear map of a block whose merge is one stored weight plus plain LoRA updates with known coefficients; undefined for all
 * else.
 */
export function factoredChange(tensor: TensorPlan): FactoredChange | undefined {
  const { role, models, base, copy, method } = tensor;
  const views = models.map(({ view }) => view);
  const origin = base?.origin ?? views[0]?.origin;
  if (copy || role.layer === null || role.kind !== 'linear' || !origin || origin.rows || origin.derived)
    return undefined;
  const isPlain = ({ origin: own, lowRank, addend }: TensorView) =>
    own.folder === origin.folder &&
    own.file === origin.file &&
    own.begin === origin.begin &&
    !lowRank?.magnitude &&
    !addend;
  if (!views.every(isPlain) || (base && (base.lowRank || base.addend))) return undefined;
  const coefficients = changeCoefficients(tensor, methodById.get(method)!);
  const factors = views.flatMap(({ lowRank }, i) =>
    lowRank ? [{ coefficient: coefficients?.[i] ?? 0, lowRank }] : [],
  );
  return coefficients && factors.length > 0 ? { origin, factors } : undefined;
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
  /** Bytes of a tensor as the plan would write them; it stays in memory until its last byte is read, since a pass reads each front to back, or another one is. */
  read(tensor: TensorPlan, begin: number, end: number): Promise<Uint8Array<ArrayBuffer>>;
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
  const wholeModel = await measureWholeModel({
    plan,
    methods: methodById,
    work: workOn(engines[0]!),
    engine: engines[0]!,
    read,
    seed,
    nonFinite,
  });
  const settings = {
    seed,
    nonFinite,
    ...(wholeModel ? { wholeModel } : {}),
    ...(prepared ? { prepared } : {}),
  };
  const { run } = threadPool(engines);
  const whole = new Map<string, Promise<Uint8Array<ArrayBuffer>>>();
  return {
    async read(tensor, begin, end) {
      const { name } = tensor;
      const merged = whole.get(name) ?? run((engine) => mergeWhole(tensor, workOn(engine), read, settings));
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
