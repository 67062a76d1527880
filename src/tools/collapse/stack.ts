/**
 * The one operation of depth pruning: a layer takes the layers behind it in. A stack defines every layer of the
 * result is, as combinations of the layers of the original; collapsing what was collapsed before combines further, and
 * nothing is rounded in between.
 */

import { AmalgamError } from '../../errors';
import { isWeightDtype } from '../../formats/dtype';
import type { ModelConfig } from '../../formats/model-config';
import { displayName } from '../../formats/names';
import { nameSome } from '../../inputs/problems';
import { mappedTensor } from '../../inputs/row-map';
import type { TensorView } from '../../inputs/tensor-view';
import type { Plan, TensorPlan } from '../../merge/plan/plan';
import { peakBytes, planInputs } from '../../merge/plan/plan-bytes';
import { MAX_CONTRIBUTORS } from '../../merge/plan/recipe-slices';
import { type Architecture, type Block, partOf } from '../../models/architecture';
import { claimTensors, tensorsIn } from '../../models/claim';
import { type DepthConfig, depthConfig, linearNames, withExperts } from '../../models/depth';
import { inTensorOrder, isBuffer, splitLayer, tensorRole } from '../../models/tensor-role';
import type { ModelFile } from '../../sources/model-folder';
import { configOf, withoutRecipe } from '../write-plan';
import type { CollapseVariant } from './options';
import type { CollapsedExpert, CollapsedLayer, LayerTerm } from './report';

export type Stack = readonly CollapsedLayer[];

/** The original: every layer is itself. */
export function wholeStack(layers: number): Stack {
  return Array.from({ length: layers }, (_, layer) => ({
    origin: layer,
    terms: [{ layer, coefficient: 1 }],
  }));
}

/** Layer `layer` takes in the `count` layers behind it, or they are dropped; the others move up. */
export function collapseAt(stack: Stack, layer: number, count: number, variant: CollapseVariant): Stack {
  const block = stack.slice(layer, layer + count + 1);
  const kept = block[0]!;
  const merged = variant === 'drop' ? kept : { ...kept, terms: sumOfDifferences(block) };
  return [...stack.slice(0, layer), merged, ...stack.slice(layer + count + 1)];
}

/**
 * Removes layers of the original; each run of them is taken in by the layer before it.
 * @param removed ascending; layers of the original, not all, and not the first unless it is dropped
 */
export function removeLayers(layers: number, removed: readonly number[], variant: CollapseVariant): Stack {
  const gone = new Set(removed);
  let stack = wholeStack(layers);
  for (let end = layers; end > 0; ) {
    if (!gone.has(end - 1)) {
      end--;
      continue;
    }
    let begin = end - 1;
    while (begin > 0 && gone.has(begin - 1)) begin--;
    stack = begin === 0 ? stack.slice(end) : collapseAt(stack, begin - 1, end - begin, variant);
    end = begin;
  }
  return stack;
}

/** Layers of the original without a place of their own. */
export function removedLayers(stack: Stack, layers: number): number[] {
  const kept = new Set(stack.map(({ origin }) => origin));
  return Array.from({ length: layers }, (_, layer) => layer).filter((layer) => !kept.has(layer));
}

/** First layer of the result that is not the original's layer of the same index; the length where none is. */
export function firstChange(stack: Stack): number {
  const changed = stack.findIndex((layer, i) => layer.origin !== i || !isUntouched(layer));
  return changed < 0 ? stack.length : changed;
}

/** Whether a layer of the result is an unchanged one of the original. */
export function isUntouched({ origin, terms, experts }: CollapsedLayer): boolean {
  return !experts && terms.length === 1 && terms[0]!.layer === origin && terms[0]!.coefficient === 1;
}

/**
 * Yang et al. 2024 (LaCo), equation 2: θ_l + Σ_{k=1..m} (θ_{l+k} − θ_l) = Σ θ_{l+k} − (m − 1) θ_l, applied to what those
 * layers are themselves.
 */
function sumOfDifferences(block: Stack): LayerTerm[] {
  const sums = new Map<number, number>();
  for (const [i, { terms }] of block.entries()) {
    const factor = i === 0 ? 2 - block.length : 1;
    for (const { layer, coefficient } of terms)
      sums.set(layer, (sums.get(layer) ?? 0) + factor * coefficient);
  }
  return [...sums]
    .filter(([, coefficient]) => coefficient !== 0)
    .sort(([a], [b]) => a - b)
    .map(([layer, coefficient]) => ({ layer, coefficient }));
}

// ---------------------------------------------------------------- from a stack to a plan

/** A whole model, planned as its own copy, and what is known of its blocks. */
export interface DepthModel {
  plan: Plan;
  config: ModelConfig;
  architecture: Architecture;
  /** Names within a block of linear layers and their biases. */
  linears: ReadonlySet<string>;
  fileOf(folder: string, file: string): ModelFile;
}

export interface CollapsePlan {
  plan: Plan;
  config: DepthConfig;
}

/**
 * Looks at a model before anything is downloaded.
 *
 * @param plan clean plan of copying the model (`passthrough`), adapter included
 * @throws AmalgamError `ArchitectureUnsupported` (unknown by name, no config.json, or a stored tensor with no place),
 *   `TensorMissing`, `ShapeMismatch`, `ConfigInvalid`
 */
export function depthModel(plan: Plan, fileOf: DepthModel['fileOf']): DepthModel {
  const config = configOf(plan, plan.contributors[0] ?? 'The model', 'layers');
  const { architecture } = depthConfig(config, layerIndices(config));
  claimTensors(architecture, new Map(plan.tensors.map((tensor) => [tensor.name, tensor])));
  return { plan, config, architecture, linears: linearNames(architecture.blocks[0]!), fileOf };
}

function layerIndices(config: ModelConfig): number[] {
  return Array.from({ length: config.layers ?? 0 }, (_, i) => i);
}

/**
 * The plan of a stack. It has no shards yet; its config is the shallower model's.
 * @throws AmalgamError `ArchitectureUnsupported` where a layer cannot move, `DtypeUnsupported` as `PlanHasErrors`,
 *   `LimitExceeded` when too many layers become one
 */
export function collapsePlan(model: DepthModel, stack: Stack): CollapsePlan {
  const { plan: whole } = model;
  const deep = depthConfig(
    model.config,
    stack.map(({ origin }) => origin),
  );
  const experts = stack.find((layer) => layer.experts)?.experts;
  const config = experts ? withExperts(deep, experts.length) : deep;
  const tensors = inTensorOrder([
    ...whole.tensors.filter((tensor) => tensor.role.layer === null),
    ...stackTensors(model, stack),
  ]);
  const inputs = planInputs(tensors, model.fileOf);
  const extras = withoutRecipe(whole.extras).map((extra) =>
    extra.path === 'config.json' ? { ...extra, content: { text: config.text } } : extra,
  );
  return {
    config,
    plan: {
      ...whole,
      tensors,
      extras,
      inputs,
      shards: [],
      layers: stack.length,
      bytesToRead: inputs.reduce((sum, input) => sum + input.readBytes, 0),
      peakBytes: peakBytes(tensors),
    },
  };
}

function stackTensors({ plan, linears, architecture }: DepthModel, stack: Stack): TensorPlan[] {
  const layers = new Map<number, Map<string, TensorPlan>>();
  for (const tensor of plan.tensors) {
    const name = splitLayer(tensor.name);
    if (!name) continue;
    const layer = layers.get(name.index) ?? new Map<string, TensorPlan>();
    layers.set(name.index, layer.set(name.rest, tensor));
  }
  return stack.flatMap((layer, index) => {
    const own = layers.get(layer.origin)!;
    const all = layer.experts
      ? collapsedExperts(architecture.blocks[layer.origin]!, layer.experts, own)
      : own;
    return [...all].map(([rest, tensor]) => {
      const name = `${splitLayer(tensor.name)!.stack}${index}.${rest}`;
      const role = tensorRole(name, tensor.shape);
      const terms = linears.has(rest) ? layer.terms : [{ layer: layer.origin, coefficient: 1 }];
      if (layer.experts || isBuffer(tensor.name)) return { ...tensor, name, role };
      const [only, ...more] = terms;
      if (more.length === 0 && only!.coefficient === 1) {
        return { ...layers.get(only!.layer)!.get(rest)!, name, role };
      }
      const parts = terms.map((term) => ({
        id: `layer ${term.layer}`,
        coefficient: term.coefficient,
        tensor: layers.get(term.layer)!.get(rest)!,
      }));
      return combined({ ...tensor, name, role }, parts);
    });
  });
}

/** The tensors of a layer by their names within it, with some of its experts or with means of them. */
function collapsedExperts(
  block: Block,
  experts: readonly CollapsedExpert[],
  own: ReadonlyMap<string, TensorPlan>,
): Map<string, TensorPlan> {
  const { router, experts: all } = partOf(block, 'experts')!;
  const namesIn = (part: unknown) => tensorsIn(part).map(({ name }) => splitLayer(name)!.rest);
  const made = new Map(own);
  const isStacked = all[0]!.output.stack !== undefined;
  // what has a row for each expert
  const stacked = [router.scores, router.bias, router.factors, ...(isStacked ? [all[0]] : [])];
  for (const rest of stacked.flatMap(namesIn)) made.set(rest, rowsOf(own.get(rest)!, all.length, experts));
  if (isStacked) return made;
  for (const rest of all.flatMap(namesIn)) made.delete(rest);
  for (const [to, { terms }] of experts.entries()) {
    const from = terms.map(({ expert }) => namesIn(all[expert]));
    for (const [i, rest] of namesIn(all[to]).entries()) {
      const parts = terms.map(({ expert, coefficient }, k) => ({
        id: `expert ${expert}`,
        coefficient,
        tensor: own.get(from[k]![i]!)!,
      }));
      const [{ tensor }] = parts as [ExpertPart];
      const named = { ...tensor, name: own.get(rest)!.name };
      made.set(rest, parts.length === 1 ? named : combined(named, parts));
    }
  }
  return made;
}

type ExpertPart = Parameters<typeof combined>[1][number];

/** Of a tensor with a row for each of `count` experts those of the ones that stay; of their values nothing changes. */
function rowsOf(tensor: TensorPlan, count: number, experts: readonly CollapsedExpert[]): TensorPlan {
  const { copy, shape, name, elements } = tensor;
  // some have dimensions of 1 in front
  const axis = shape.findIndex((extent) => extent !== 1);
  if (!copy || shape[axis] !== count || experts.some(({ terms }) => terms.length > 1 && shape.length > 2)) {
    throw new AmalgamError(
      'PlanHasErrors',
      `${displayName(name)} holds all experts in one tensor, ${copy ? 'of which no means are made' : 'and is computed'}.`,
      copy ? 'Drop experts (variant drop).' : 'Write the model first, and collapse that.',
    );
  }
  const row = Int32Array.from(experts, ({ terms }) => terms[0]!.expert);
  const origin = { ...copy, shape: [count, elements / count] };
  const source = new Int32Array(row.length);
  const map = { axis: 'rows', sources: [{ tensor: origin }], source, row, averages: new Map() } as const;
  return {
    ...tensor,
    copy: mappedTensor(origin, map),
    shape: shape.map((extent, i) => (i === axis ? row.length : extent)),
    elements: (elements / count) * row.length,
    models: [],
  };
}

/** Σ coefficient · tensor, in f32, rounded once to the dtype of the layer whose place it takes. */
function combined(
  { copy: _, base: __, ...tensor }: TensorPlan,
  terms: readonly { id: string; coefficient: number; tensor: TensorPlan }[],
): TensorPlan {
  if (terms.length > MAX_CONTRIBUTORS) {
    throw new AmalgamError(
      'LimitExceeded',
      `${tensor.name} would be made of ${terms.length} others; ${MAX_CONTRIBUTORS} can become one.`,
      'Collapse fewer layers into one: smaller blocks, a larger interval, or the variant drop.',
    );
  }
  const odd = terms.map((term) => term.tensor).filter(({ dtype }) => !isWeightDtype(dtype));
  if (odd.length > 0) {
    throw new AmalgamError(
      'PlanHasErrors',
      `${nameSome(odd.map(({ name }) => name))}: stored as ${odd[0]!.dtype}, which is not computed with.`,
      'Use a copy of the model in F32, F16 or BF16, or drop layers (variant drop).',
    );
  }
  return {
    ...tensor,
    method: 'linear',
    parameters: { normalize: false },
    models: terms.map(({ id, coefficient, tensor: part }) => ({
      id,
      view: viewOf(part),
      parameters: { weight: coefficient },
    })),
  };
}

function viewOf({ copy, models }: TensorPlan): TensorView {
  return copy ? { origin: copy, onBase: false } : models[0]!.view;
}
