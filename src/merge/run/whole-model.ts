/**
 * Measurements of a whole model that some presets need before its first tensor: one threshold for all tensors of a contributor,
 * and the sign that wins most elements (TIES as its authors wrote it, Yadav et al. 2023, `merge_utils.py`). Every tensor is
 * read once; only histograms and counts are stored, so memory does not grow with the model.
 */
import type { Backend } from '../../backend/backend';
import { HISTOGRAM_BINS } from '../../backend/kernels/search';
import { isWeightDtype } from '../../formats/dtype';
import type { ReadTensor } from '../../inputs/stored-tensor';
import type { DeltaPreset, MergeMethod } from '../method';
import type { TensorPlan } from '../plan/plan';
import { storedInputs } from '../plan/plan-bytes';
import { openComputed } from '../tensor/computation';
import { countVotes, type WholeModel } from '../tensor/delta-pipeline';
import { densityOf, inclusiveThreshold } from '../tensor/delta-selectors';
import { countDigit, readDigit } from '../tensor/radix-search';
import {
  beginSearch,
  DIGITS,
  KEEP_NONE,
  type KeySearch,
  narrow,
  type Search,
  type Threshold,
} from '../tensor/radix-select';
import { requireFinite } from '../tensor/tile-encoding';
import type { Workspace } from '../tensor/workspace';

interface WholeModelOptions {
  plan: { tensors: readonly TensorPlan[] };
  methods: ReadonlyMap<string, MergeMethod>;
  work: Workspace;
  engine: Backend;
  read: ReadTensor;
  seed: number;
  nonFinite: 'stop' | 'carry';
  /** Called before each tensor of each pass; throws to stop. */
  onTensor?(name: string): void;
  /** Receives the progress of the passes. */
  progress?: MeasuringProgress;
}

export interface MeasuringProgress {
  /** All passes together: bytes to read, and tensors, each counted once for each pass. */
  begin(bytes: number, tensors: number): void;
  /** One more tensor of one pass, and the bytes read of it. */
  advance(tensor: string, bytes: number): void;
  /** The passes are over. */
  end(): void;
}

/** Measures the whole model where the recipe's preset asks for it; else undefined. @throws AmalgamError `NonFinite` */
export async function measureWholeModel(options: WholeModelOptions): Promise<WholeModel | undefined> {
  const { plan, methods } = options;
  const { trims, votes, passes } = needs(plan, methods);
  if (passes === 0) return undefined;
  options.progress?.begin(bytesToMeasure(plan, methods), passes * differing(plan).length);
  const measured = await measure(options, trims, votes);
  options.progress?.end();
  return measured;
}

/** Bytes read by all passes over the tensors that are measured; 0 where nothing asks for it. */
export function bytesToMeasure(
  plan: WholeModelOptions['plan'],
  methods: ReadonlyMap<string, MergeMethod>,
): number {
  const { passes } = needs(plan, methods);
  return passes * measuredTensors(plan, methods).reduce((sum, tensor) => sum + readBytes(tensor), 0);
}

async function measure(options: WholeModelOptions, trims: boolean, votes: boolean): Promise<WholeModel> {
  const thresholds = trims ? await modelThresholds(options) : new Map<string, Threshold>();
  const measured: WholeModel = { thresholds, majority: 0 };
  return votes ? { ...measured, majority: await majoritySign(options, measured) } : measured;
}

/** Bytes of everything stored that a tensor is made from. */
function readBytes(tensor: TensorPlan): number {
  const { copy: _, ...computed } = tensor;
  return storedInputs(computed).reduce((sum, { begin, end }) => sum + end - begin, 0);
}

/** The tensors that are read to measure the whole model, copies among them; none where nothing asks for it. */
export function measuredTensors(
  plan: WholeModelOptions['plan'],
  methods: ReadonlyMap<string, MergeMethod>,
): TensorPlan[] {
  return needs(plan, methods).passes > 0 ? differing(plan) : [];
}

/** Whether a threshold or the majority sign of whole models is asked for. */
function needs(
  plan: WholeModelOptions['plan'],
  methods: ReadonlyMap<string, MergeMethod>,
): { trims: boolean; votes: boolean; passes: number } {
  const presets = plan.tensors.flatMap((tensor) => {
    const compute = methods.get(tensor.method)?.compute;
    return compute?.kind === 'delta' ? [compute.preset(tensor.parameters)] : [];
  });
  const trims = presets.some(({ scope }) => scope === 'model');
  const votes = presets.some(({ zeroVote }) => zeroVote === 'majority');
  return { trims, votes, passes: (trims ? DIGITS.length : 0) + (votes ? 1 : 0) };
}

/** Tensors in which a contributor may differ from the base, whether they are computed or turn out to be copies. */
function differing(plan: WholeModelOptions['plan']): TensorPlan[] {
  return plan.tensors.filter(
    ({ base, models, elements }) =>
      base !== undefined &&
      elements > 0 &&
      isWeightDtype(base.origin.dtype) &&
      models.some(({ view }) => !view.onBase || view.lowRank || view.addend),
  );
}

/**
 * The threshold of every contributor: |τ| ≥ the (⌊ρN⌋ + 1)-th largest stays, N counting all elements of all its
 * tensors. That is one more than ⌊ρN⌋, and all that equal the last: the authors' `topk_values_mask`. Nothing stays for
 * ρ = 0.
 */
async function modelThresholds(options: WholeModelOptions): Promise<Map<string, Threshold>> {
  const { plan } = options;
  const searches = new Map<string, Search>();
  const thresholds = new Map<string, Threshold>();
  for (const id of new Set(plan.tensors.flatMap((tensor) => tensor.models.map((m) => m.id)))) {
    const own = plan.tensors.flatMap((tensor) =>
      tensor.models
        .filter((m) => m.id === id)
        .map((m) => ({ density: densityOf(m.parameters), n: tensor.elements })),
    );
    const total = own.reduce((sum, { n }) => sum + n, 0);
    const density = own[0]!.density;
    if (density <= 0) thresholds.set(id, KEEP_NONE);
    else searches.set(id, beginSearch(Math.min(total, Math.floor(density * total) + 1), total));
  }
  for (const digit of DIGITS.keys()) {
    const counts = await countModel(options, searches, digit);
    for (const [id, search] of searches) searches.set(id, narrow(search, digit, counts.get(id)!));
  }
  for (const [id, search] of searches) thresholds.set(id, inclusiveThreshold(search.prefix));
  return thresholds;
}

/** One digit's histogram of every contributor, over all tensors; elements that never differ count as zeros. */
async function countModel(
  options: WholeModelOptions,
  searches: ReadonlyMap<string, Search>,
  digit: number,
): Promise<Map<string, Float64Array>> {
  const { plan, work, engine } = options;
  const bins = new Map([...searches.keys()].map((id) => [id, new Float64Array(HISTOGRAM_BINS)]));
  const changed = new Set(differing(plan));
  for (const tensor of plan.tensors) {
    if (!changed.has(tensor)) {
      for (const { id } of tensor.models)
        if (searches.get(id)?.prefix === 0) bins.get(id)![0]! += tensor.elements;
      continue;
    }
    const task = open(options, tensor);
    const keys = tensor.models.flatMap(({ id }, i): (KeySearch & { id: string })[] => {
      const search = searches.get(id);
      return search ? [{ id, search, buffer: work.values, offset: (i + 1) * work.stride }] : [];
    });
    try {
      engine.clear(work.bins);
      await task.pass(async (_, elements) => {
        countDigit(work, keys, digit, elements);
        const [status] = await engine.read([{ buffer: work.status, byteLength: work.status.byteLength }]);
        requireFinite(task, new Uint32Array(status!.buffer), options.nonFinite);
      });
      for (const [i, counts] of (await readDigit(work, keys.length)).entries()) {
        const total = bins.get(keys[i]!.id)!;
        for (const [b, n] of counts.entries()) total[b]! += n;
      }
    } finally {
      task.close();
    }
    options.progress?.advance(tensor.name, readBytes(tensor));
  }
  return bins;
}

/** The sign of (elements that elect +) − (elements that elect −) over all tensors. */
async function majoritySign(options: WholeModelOptions, wholeModel: WholeModel): Promise<number> {
  let balance = 0;
  for (const tensor of differing(options.plan)) {
    const task = open(options, tensor);
    try {
      const preset = presetOf(options, tensor);
      const { seed, nonFinite } = options;
      const { positive, negative } = await countVotes(task, { preset, seed, nonFinite, wholeModel });
      balance += positive - negative;
    } finally {
      task.close();
    }
    options.progress?.advance(tensor.name, readBytes(tensor));
  }
  return Math.sign(balance);
}

function open(options: WholeModelOptions, tensor: TensorPlan) {
  options.onTensor?.(tensor.name);
  return openComputed(
    tensor,
    options.methods.get(tensor.method)!,
    options.work,
    options.read,
    undefined,
    true,
  );
}

function presetOf({ methods }: WholeModelOptions, tensor: TensorPlan): DeltaPreset {
  const { compute } = methods.get(tensor.method)!;
  if (compute.kind !== 'delta') throw new Error(`${tensor.method} works on no differences`);
  return compute.preset(tensor.parameters);
}
