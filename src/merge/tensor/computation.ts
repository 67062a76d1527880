/** From a tensor of the plan to the code that computes it, by the kind of its method. */
import type { Backend, BackendBuffer } from '../../backend/backend';
import { exactFloats } from '../../backend/exact';
import { blockCount } from '../../backend/kernel';
import { PANEL_CHUNK, pairCount } from '../../backend/kernels/products';
import { MOST_STORED, storedSums, storedSumWords } from '../../backend/kernels/sums';
import type { ReadTensor } from '../../inputs/stored-tensor';
import type { MergeCounts } from '../../reports/job';
import type { ElementwiseCompute, MergeMethod } from '../method';
import type { TensorPlan } from '../plan/plan';
import { isAsStored } from './as-stored';
import { TileSums } from './delta-measure';
import { mergeDelta, type WholeModel } from './delta-pipeline';
import { type Prepared, requirePrepared } from './prepared';
import {
  layOut,
  mergeByProducts,
  productsForm,
  productsGroups,
  runWeightedSum,
  type WeightedSum,
  WHOLE,
} from './products-merge';
import {
  isMatrix,
  isShared,
  mergeInSharedSpace,
  mergeSolved,
  mergeSpectral,
  solvedPlan,
  sumOf,
} from './solved-merge';
import { changesStored, mergesStored } from './stored-changes';
import { type Emit, ProductSums, type TensorStatistics, vectorStatistics } from './tensor-outcome';
import { doraUnit, openTask, type SlotForm, type TensorTask } from './tensor-task';
import { packing, readTile, requireFinite, runEncode } from './tile-encoding';
import { cutTiles, groupElements, leastTile, rowLength } from './tiles';
import { openWorkspace, tileElementsFor, type Workspace } from './workspace';

export interface ComputeSettings {
  seed: number;
  nonFinite: 'stop' | 'carry';
  wholeModel?: WholeModel;
  /** Results of calibration, for methods that merge by them. */
  prepared?: Prepared;
}

/** What a workspace has room for: contributors, elements of the largest tensor, and of whole rows where a method works on them. */
export interface WorkspaceRoom {
  models: number;
  largest: number;
  least: number;
}

/** The room that a set of tensors needs. */
export function roomFor(
  tensors: Iterable<TensorPlan>,
  methods: ReadonlyMap<string, MergeMethod>,
): WorkspaceRoom {
  const room = { models: 1, largest: 1, least: 1 };
  for (const tensor of tensors) {
    const method = methods.get(tensor.method)!;
    const least = leastTile(tensor.elements, tileUnit(tensor, method), doraUnit(tensor));
    room.models = Math.max(room.models, tensor.models.length + Number(sumOf(tensor, method) !== 0));
    room.largest = Math.max(room.largest, tensor.elements);
    room.least = Math.max(room.least, least);
  }
  return room;
}

/** A workspace with such room. @param wanted elements of a tile, where the engine is not to say */
export function openRoom(
  { models, largest, least }: WorkspaceRoom,
  engine: Backend,
  wanted?: number,
): Workspace {
  return openWorkspace(engine, models, tileElementsFor(engine, models, largest, wanted, least));
}

/** The workspace for a set of tensors. */
export function openWorkspaceFor(
  tensors: readonly TensorPlan[],
  methods: ReadonlyMap<string, MergeMethod>,
  engine: Backend,
  wanted?: number,
): Workspace {
  return openRoom(roomFor(tensors, methods), engine, wanted);
}

/** One of so many parts of a tensor, of as many tiles as the others. */
export interface TensorPart {
  index: number;
  of: number;
}

/**
 * Whether parts of a tensor can be merged apart: their one pass takes values as they are stored, and nothing of the others is
 * needed.
 */
export function canBeCut(plan: TensorPlan, method: MergeMethod): boolean {
  const { kind } = method.compute;
  return (
    plan.copy === undefined &&
    (kind === 'weights' || kind === 'delta' || kind === 'elementwise') &&
    !readsAgain(plan, method) &&
    isAsStored(plan)
  );
}

/**
 * Opens a tensor for its method: what its slots hold and where its tiles may be cut.
 * @param inSlots all vectors are to lie in slots, though a merge could take them as they are stored
 * @param part default: all of it
 */
export function openComputed(
  plan: TensorPlan,
  method: MergeMethod,
  work: Workspace,
  read: ReadTensor,
  prepared?: Prepared,
  inSlots = false,
  part?: TensorPart,
): TensorTask {
  if (method.compute.kind === 'solved' && prepared?.solution(plan.name)) {
    return openTask(solvedPlan(plan, sumOf(plan, method) !== 0), 'delta', work, read);
  }
  const unit = tileUnit(plan, method);
  const form = inSlots ? plainForm(plan, method) : slotForm(plan, method, work.engine);
  const tiles = part && cutTiles(plan.elements, work.stride, doraUnit(plan), unit);
  const place = (index: number) => Math.floor((index * tiles!.length) / part!.of);
  const own = tiles?.slice(place(part!.index), place(part!.index + 1));
  return openTask(plan, form, work, read, unit, own, readsAgain(plan, method));
}

/** Whether a tensor takes more than one pass. */
export function readsAgain(plan: TensorPlan, { compute }: MergeMethod): boolean {
  switch (compute.kind) {
    case 'delta': {
      const preset = compute.preset(plan.parameters);
      const { select, scope, rescale, weights } = preset;
      const searches = select !== 'all' && select !== 'random' && select !== 'rank' && scope !== 'model';
      return searches || rescale === 'l1' || weights === 'energy' || isShared(plan, preset);
    }
    case 'products':
      return productsGroups(compute, plan) !== 'rows';
    case 'elementwise':
      return compute.recount !== undefined;
    case 'spectral':
      return true;
    case 'weights':
    case 'solved':
      return false;
  }
}

/** What the slots hold; nothing where the merge takes what it needs as it is stored. */
function slotForm(plan: TensorPlan, method: MergeMethod, engine: Backend): SlotForm {
  const { compute } = method;
  if (compute.kind === 'weights' && sumsStored(plan)) return 'stored';
  const preset = compute.kind === 'delta' ? compute.preset(plan.parameters) : undefined;
  const isStored =
    preset && mergesStored(preset, plan.shape) && !isShared(plan, preset) && changesStored(plan, engine);
  return isStored ? 'stored changes' : plainForm(plan, method);
}

function plainForm(plan: TensorPlan, { compute }: MergeMethod): SlotForm {
  switch (compute.kind) {
    case 'delta':
      return 'delta';
    case 'weights':
      return 'weights';
    case 'products':
      return productsForm(compute, plan.base !== undefined);
    case 'elementwise':
      return compute.form;
    case 'solved':
    case 'spectral':
      return 'delta';
  }
}

/** Elements that must not be cut apart: rows for what looks at rows. */
function tileUnit(plan: Pick<TensorPlan, 'shape' | 'parameters' | 'role'>, { compute }: MergeMethod): number {
  // the rows of an embedding may have weights of their own
  if (compute.kind === 'solved' && plan.role.kind === 'embedding') return groupElements('rows', plan.shape);
  if (compute.kind === 'products') return groupElements(productsGroups(compute, plan), plan.shape);
  if (compute.kind === 'spectral') return isMatrix(plan) ? PANEL_CHUNK * rowLength(plan.shape) : 1;
  if (compute.kind !== 'delta') return 1;
  const preset = compute.preset(plan.parameters);
  if (isShared(plan, preset)) return PANEL_CHUNK * rowLength(plan.shape);
  const { select } = preset;
  return select === 'rank' || select === 'fusion' ? groupElements('rows', plan.shape) : 1;
}

/**
 * Computes one tensor and hands its bytes to `emit`.
 * @throws AmalgamError `NonFinite`, `MergeUndefined`
 */
export function computeTensor(
  task: TensorTask,
  { compute }: MergeMethod,
  settings: ComputeSettings,
  emit: Emit,
): Promise<TensorStatistics> {
  const { plan } = task;
  switch (compute.kind) {
    case 'delta': {
      const preset = compute.preset(plan.parameters);
      const merge = isShared(plan, preset) ? mergeInSharedSpace : mergeDelta;
      return merge(task, { ...settings, preset }, emit);
    }
    case 'weights': {
      const models = plan.models.map((m) => m.parameters);
      return mergeWeights(task, compute.coefficients(models, plan.parameters), settings.nonFinite, emit);
    }
    case 'products':
      return mergeByProducts(task, compute, settings.nonFinite, emit);
    case 'elementwise':
      return mergeElementwise(task, compute, settings.nonFinite, emit);
    case 'solved': {
      const prepared = requirePrepared(settings.prepared, plan.name);
      return mergeSolved(task, compute, { ...settings, prepared }, emit);
    }
    case 'spectral':
      return mergeSpectral(task, compute, settings, emit);
  }
}

// Methods of the form out = Σ cᵢ·Wᵢ over whole weights, with coefficients known before any data is read.

/**
 * Merges one tensor in a single pass. Reported norms and cosines are those of the whole weights; the output's change
 * is measured against the base where the recipe names one.
 * @throws AmalgamError `NonFinite`
 */
async function mergeWeights(
  task: TensorTask,
  coefficients: readonly number[],
  nonFinite: 'stop' | 'carry',
  emit: Emit,
): Promise<TensorStatistics> {
  const { work, plan } = task;
  const sum = layOut([coefficients], 'weights', { slot: 1, per: WHOLE });
  const table = work.engine.allocate(sum.table.byteLength, 'coefficients');
  work.engine.write(table, 0, new Uint8Array(sum.table.buffer));
  const sums = task.form === 'stored' ? new StoredSums(task, nonFinite) : new TileSums(task, nonFinite);
  try {
    await task.pass(async (_, elements) => {
      if (sums instanceof StoredSums) return sums.finish(sum, table, elements, emit);
      runWeightedSum(task, sum, table, elements);
      await sums.finish(elements, false, emit);
    });
  } finally {
    work.engine.free(table);
  }
  return vectorStatistics(task, sums, {
    change: plan.base ? sums.change : 0,
  });
}

// Methods with a kernel of their own that looks at one element of every vector at a time.

/**
 * Merges one tensor in one pass, or in two where the coefficients depend on counts.
 * @throws AmalgamError `NonFinite`
 */
async function mergeElementwise(
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
  const kernel = await method.kernel();
  const run = (elements: number) =>
    engine.run<'elements' | 'stride' | 'models', string>(kernel, {
      params: { elements, stride: work.stride, models },
      buffers: {
        values: work.values,
        coefficients,
        out: work.merged,
        ...(method.counters ? { counters } : {}),
      },
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
  return vectorStatistics(task, sums, {
    change: sums.change,
    ...(method.counters ? { kept: counted.slice(0, models) } : {}),
  });
}

function write(engine: TensorTask['work']['engine'], buffer: BackendBuffer, values: readonly number[]): void {
  engine.write(buffer, 0, new Uint8Array(exactFloats(values).buffer));
}

// Weighted sums of whole weights straight from their stored words, in one kernel a tile.

/** Whether a tensor’s weights can be summed as they are stored: no adapters, and few enough. */
function sumsStored({ base, models }: TensorPlan): boolean {
  const views = [...(base ? [base] : []), ...models.map(({ view }) => view)];
  return views.length <= MOST_STORED && views.every(({ lowRank, addend }) => !lowRank && !addend);
}

/** Sums over the tiles of a tensor that is measured as it is stored. */
class StoredSums {
  readonly products: ProductSums;
  /** Σ (out − W₀)², against zero where there is no base. */
  change = 0;
  nonFinite = 0;
  #atBase = 0;

  constructor(
    private readonly task: TensorTask,
    private readonly policy: 'stop' | 'carry',
  ) {
    this.products = new ProductSums(task.plan.models.length + 1);
  }

  /**
   * Sums the tile whose stored words lie in `work.raw` and emits it; the sum's one table is in `coefficients`.
   * @throws AmalgamError `NonFinite`
   */
  async finish(
    { anchor }: WeightedSum,
    coefficients: BackendBuffer,
    elements: number,
    emit: Emit,
  ): Promise<void> {
    const { work, plan } = this.task;
    const { raw, inputs, packed, sums, status } = work;
    const models = plan.models.length;
    work.engine.run(storedSums[plan.base ? 'base' : 'alone'][models - 1]!, {
      params: { elements, anchor, ...packing(this.task) },
      buffers: { raw, inputs, coefficients, packed, sums, status },
    });
    const words = storedSumWords(models);
    const [encoded, found, sumBytes] = await readTile(this.task, elements, [
      { buffer: sums, byteLength: blockCount(elements) * words * 4 },
    ]);
    this.nonFinite += requireFinite(this.task, found, this.policy);
    const floats = new Float32Array(sumBytes!.buffer);
    const counts = new Uint32Array(sumBytes!.buffer);
    this.products.add(floats, words);
    for (let at = pairCount(models + 1); at < floats.length; at += words) {
      this.change += floats[at]!;
      this.#atBase += counts[at + 1]!;
    }
    await emit(encoded);
  }

  /** Counts over all tiles. */
  counts(): MergeCounts {
    return { atBase: this.task.plan.base ? this.#atBase : null, shared: [], lost: [] };
  }
}
