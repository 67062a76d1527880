/** From a tensor of the plan to the code that computes it, by the kind of its method. */
import type { Backend } from '../../backend/backend';
import type { ReadTensor } from '../../inputs/stored-tensor';
import type { MergeMethod } from '../method';
import type { TensorPlan } from '../plan/plan';
import { mergeDelta, type WholeModel } from './delta-pipeline';
import { mergeElementwise } from './elementwise';
import { type Prepared, requirePrepared } from './prepared';
import { mergeByProducts, productsForm, productsGroups } from './products-merge';
import { mergeSolved, solvedPlan } from './solved-merge';
import { sumsStored } from './stored-sum';
import type { Emit, TensorStatistics } from './tensor-outcome';
import { doraUnit, openTask, type SlotForm, type TensorTask } from './tensor-task';
import { leastTile } from './tiles';
import { groupElements } from './vector-groups';
import { mergeWeights } from './weights-sum';
import { openWorkspace, tileElementsFor, type Workspace } from './workspace';

export interface ComputeSettings {
  seed: number;
  nonFinite: 'stop' | 'carry';
  wholeModel?: WholeModel;
  /** Results of calibration, for methods that merge by them. */
  prepared?: Prepared;
}

/** The workspace for a set of tensors: room for all contributors, and for whole rows where a method works on them. */
export function openWorkspaceFor(
  tensors: readonly TensorPlan[],
  methods: ReadonlyMap<string, MergeMethod>,
  engine: Backend,
  wanted?: number,
): Workspace {
  const most = (of: (tensor: TensorPlan) => number) =>
    tensors.reduce((peak, tensor) => Math.max(peak, of(tensor)), 1);
  const models = most((t) => t.models.length);
  const largest = most((t) => t.elements);
  const least = most((t) => leastTile(t.elements, tileUnit(t, methods.get(t.method)!), doraUnit(t)));
  return openWorkspace(engine, models, tileElementsFor(engine, models, largest, wanted, least));
}

/** Opens a tensor for its method: what its slots hold and where its tiles may be cut. */
export function openComputed(
  plan: TensorPlan,
  method: MergeMethod,
  work: Workspace,
  read: ReadTensor,
  prepared?: Prepared,
): TensorTask {
  if (method.compute.kind === 'solved' && prepared?.solution(plan.name)) {
    return openTask(solvedPlan(plan), 'delta', work, read);
  }
  const again = readsAgain(plan, method);
  return openTask(
    plan,
    slotForm(plan, method, work.engine),
    work,
    read,
    tileUnit(plan, method),
    undefined,
    again,
  );
}

/** Whether a tensor is swept more than once. */
function readsAgain(plan: TensorPlan, { compute }: MergeMethod): boolean {
  switch (compute.kind) {
    case 'delta': {
      const { select, scope, rescale, weights } = compute.preset(plan.parameters);
      const searches = select !== 'all' && select !== 'random' && select !== 'rank' && scope !== 'model';
      return searches || rescale === 'l1' || weights === 'energy';
    }
    case 'products':
      return productsGroups(compute, plan) !== 'rows';
    case 'elementwise':
      return compute.recount !== undefined;
    case 'weights':
    case 'solved':
      return false;
  }
}

function slotForm(plan: TensorPlan, { compute }: MergeMethod, engine: Backend): SlotForm {
  switch (compute.kind) {
    case 'delta':
      return 'delta';
    case 'weights':
      return sumsStored(plan, engine) ? 'stored' : 'weights';
    case 'products':
      return productsForm(compute, plan.base !== undefined);
    case 'elementwise':
      return compute.form;
    case 'solved':
      return 'delta';
  }
}

/** Elements that must not be cut apart: rows for what looks at rows. */
function tileUnit(plan: Pick<TensorPlan, 'shape' | 'parameters' | 'role'>, { compute }: MergeMethod): number {
  // the rows of an embedding may have weights of their own
  if (compute.kind === 'solved' && plan.role.kind === 'embedding') return groupElements('rows', plan.shape);
  if (compute.kind === 'products') return groupElements(productsGroups(compute, plan), plan.shape);
  if (compute.kind !== 'delta') return 1;
  const { select } = compute.preset(plan.parameters);
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
    case 'delta':
      return mergeDelta(task, { ...settings, preset: compute.preset(plan.parameters) }, emit);
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
  }
}
