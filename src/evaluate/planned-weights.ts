/**
 * The weights of a plan as the forward pass reads them, without a merged checkpoint anywhere: stored tensors are read
 * where they lie, plain LoRA updates are handed over as their factors, everything else is computed when it is read.
 */
import type { Backend } from '../backend/backend';
import { isWeightDtype } from '../formats/dtype';
import type { LowRankUpdate, StoredWeight, WeightSource } from '../forward/weight-source';
import { threadPool } from '../host/threads';
import { castTensor } from '../inputs/dequantization';
import { loadFactorValues, type ReadTensor } from '../inputs/stored-tensor';
import type { MergeMethod } from '../merge/method';
import { methodById } from '../merge/methods';
import type { Plan, TensorPlan } from '../merge/plan/plan';
import { measuredTensors, measureWholeModel } from '../merge/run/whole-model';
import {
  type ComputeSettings,
  computeTensor,
  openComputed,
  openWorkspaceFor,
} from '../merge/tensor/computation';
import type { Prepared } from '../merge/tensor/prepared';
import type { Workspace } from '../merge/tensor/workspace';
import { bytesOf } from '../platform';

interface PlannedWeights extends WeightSource {
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
  const tensors = new Map(
    castPlans(plan.tensors)
      .filter((t) => isWeightDtype(t.dtype))
      .map((t) => [t.name, exact && !t.copy && !plainUpdate(t) ? { ...t, dtype: 'F32' as const } : t]),
  );
  const computed = [...tensors.values()].filter((t) => !t.copy && !(exact && plainUpdate(t)));
  const merged = computed.length > 0 ? await openMerged(plan, computed, engines, read, prepared) : undefined;
  const updates = new Map<string, LowRankUpdate>();
  if (exact) {
    for (const t of tensors.values()) if (plainUpdate(t)) updates.set(t.name, updateOf(t, read));
  }
  return {
    tensors: new Map([...tensors].map(([name, t]) => [name, storedAs(t, exact)])),
    updates,
    exclusive: merged !== undefined,
    atOnce: merged ? engines.length : 1,
    read(name, begin, end) {
      const tensor = tensors.get(name)!;
      if (tensor.copy) return read(tensor.copy, begin, end);
      if (updates.has(name)) return read(tensor.models[0]!.view.origin, begin, end);
      return merged!.read(tensor, begin, end);
    },
    rest() {
      merged?.rest();
    },
    close() {
      merged?.rest();
    },
  };
}

/** The tensors, those that are copied in a dtype that is not computed with as the f32 values that they stand for, where they do. */
function castPlans(tensors: readonly TensorPlan[]): TensorPlan[] {
  const names = new Set(tensors.map(({ name }) => name));
  return tensors.map((tensor) => {
    const { copy, base: _, ...own } = tensor;
    const origin = copy && castTensor(copy, names);
    if (!origin) return tensor;
    const models = [{ id: copy.folder, view: { origin, onBase: false }, parameters: { scale: 1 } }];
    return { ...own, dtype: 'F32', method: 'passthrough', parameters: {}, models };
  });
}

function storedAs(tensor: TensorPlan, exact: boolean): StoredWeight {
  const { dtype } = exact && plainUpdate(tensor) ? tensor.models[0]!.view.origin : tensor;
  if (!isWeightDtype(dtype)) throw new Error(`${tensor.name}: ${dtype} is no weight`);
  return { dtype, shape: tensor.shape };
}

/** A linear layer of a block that is one model's stored weight plus a plain LoRA update, and nothing else. */
function plainUpdate(tensor: TensorPlan): boolean {
  const view = tensor.models[0]?.view;
  return (
    tensor.models.length === 1 &&
    tensor.method === 'passthrough' &&
    tensor.role.layer !== null &&
    tensor.role.kind === 'linear' &&
    view?.lowRank !== undefined &&
    view.lowRank.magnitude === undefined &&
    view.addend === undefined
  );
}

function updateOf(tensor: TensorPlan, read: ReadTensor): LowRankUpdate {
  const { lowRank } = tensor.models[0]!.view;
  return {
    rank: lowRank!.rank,
    scale: lowRank!.scale,
    load: () => loadFactorValues(lowRank!, read),
  };
}

interface MergedTensors {
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
async function openMerged(
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
        return bytes.slice(begin, end);
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
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  const task = openComputed(tensor, method, work, read, settings.prepared);
  try {
    await computeTensor(task, method, settings, async (bytes) => {
      pieces.push(bytes);
    });
  } finally {
    task.close();
  }
  if (pieces.length === 1) return pieces[0]!;
  return bytesOf(new Blob(pieces));
}
