/** From a stack to a plan: every tensor of the shallower model as a copy or a combination of stored ones. */

import { AmalgamError } from '../errors';
import { isWeightDtype } from '../formats/dtype';
import { type ModelConfig, parseModelConfig } from '../formats/model-config';
import { nameSome } from '../inputs/problems';
import type { TensorView } from '../inputs/tensor-view';
import type { Plan, TensorPlan } from '../merge/plan/plan';
import { peakBytes, planInputs } from '../merge/plan/plan-bytes';
import { MAX_CONTRIBUTORS } from '../merge/plan/recipe-slices';
import type { Architecture } from '../models/architecture';
import { claimTensors } from '../models/claim';
import { type BlockPart, blockParts, type DepthConfig, depthConfig } from '../models/depth';
import { inTensorOrder, isBuffer, splitLayer, tensorRole } from '../models/tensor-role';
import type { LayerTerm } from '../reports/collapse';
import type { ModelFile } from '../sources/model-folder';
import type { Stack } from './stack';

/** A whole model, planned as its own copy, and what is known of its blocks. */
export interface DepthModel {
  plan: Plan;
  config: ModelConfig;
  architecture: Architecture;
  parts: ReadonlyMap<string, BlockPart>;
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
  const content = plan.extras.find(({ path }) => path === 'config.json')?.content;
  if (!content || !('text' in content)) {
    throw new AmalgamError(
      'ArchitectureUnsupported',
      `${plan.contributors[0] ?? 'The model'} has no config.json, so it is not known which tensors are its layers.`,
      'Add the config.json of its architecture.',
    );
  }
  const config = parseModelConfig(content.text, 'config.json');
  const { architecture } = depthConfig(config, layerIndices(config));
  claimTensors(architecture, new Map(plan.tensors.map((tensor) => [tensor.name, tensor])));
  return { plan, config, architecture, parts: blockParts(architecture.blocks[0]!), fileOf };
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
  const config = depthConfig(
    model.config,
    stack.map(({ origin }) => origin),
  );
  const tensors = inTensorOrder([
    ...whole.tensors.filter((tensor) => tensor.role.layer === null),
    ...stackTensors(model, stack),
  ]);
  const inputs = planInputs(tensors, model.fileOf);
  const extras = whole.extras
    // they speak of a merge, and of the deeper model
    .filter(({ path }) => path !== 'mergekit_config.yml' && path !== 'README.md')
    .map((extra) => (extra.path === 'config.json' ? { ...extra, content: { text: config.text } } : extra));
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

function stackTensors({ plan, parts }: DepthModel, stack: Stack): TensorPlan[] {
  const layers = new Map<number, Map<string, TensorPlan>>();
  for (const tensor of plan.tensors) {
    const name = splitLayer(tensor.name);
    if (!name) continue;
    const layer = layers.get(name.index) ?? new Map<string, TensorPlan>();
    layers.set(name.index, layer.set(name.rest, tensor));
  }
  return stack.flatMap((layer, index) =>
    [...layers.get(layer.origin)!].map(([rest, tensor]) => {
      const name = `${splitLayer(tensor.name)!.stack}${index}.${rest}`;
      const role = tensorRole(name, tensor.shape);
      const terms = layer[parts.get(rest) ?? 'norm'];
      if (isBuffer(tensor.name)) return { ...tensor, name, role };
      const [only, ...more] = terms;
      if (more.length === 0 && only!.coefficient === 1) {
        return { ...layers.get(only!.layer)!.get(rest)!, name, role };
      }
      return combined({ ...tensor, name, role }, terms, (of) => layers.get(of)!.get(rest)!);
    }),
  );
}

/** Σ coefficient · tensor, in f32, rounded once to the dtype of the layer whose place it takes. */
function combined(
  { copy: _, base: __, ...tensor }: TensorPlan,
  terms: readonly LayerTerm[],
  tensorOf: (layer: number) => TensorPlan,
): TensorPlan {
  if (terms.length > MAX_CONTRIBUTORS) {
    throw new AmalgamError(
      'LimitExceeded',
      `${tensor.name} would be made of ${terms.length} layers; ${MAX_CONTRIBUTORS} can become one.`,
      'Collapse fewer layers into one: smaller blocks, a larger interval, or the variant replace-last or drop.',
    );
  }
  const odd = terms.map(({ layer }) => tensorOf(layer)).filter(({ dtype }) => !isWeightDtype(dtype));
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
    models: terms.map(({ layer, coefficient }) => ({
      id: `layer ${layer}`,
      view: viewOf(tensorOf(layer)),
      parameters: { weight: coefficient },
    })),
  };
}

function viewOf({ copy, models }: TensorPlan): TensorView {
  return copy ? { origin: copy, onBase: false } : models[0]!.view;
}
