/** The linear layers of a plan: which of its tensors they are, and at which input of the model they stand. */
import type { Plan, TensorPlan } from '../merge/plan/plan';
import type { Architecture } from '../models/architecture';
import { claimTensors, type LinearSite, linearSites } from '../models/claim';

/** A linear layer that a merge computes. */
export interface LinearTensor {
  plan: TensorPlan;
  site: LinearSite;
  inputs: number;
  outputs: number;
  storage: 'out_in' | 'in_out';
}

/** Per block, the linear layers that are computed; a tensor that is copied has nothing to choose. */
export function linearTensors(architecture: Architecture, plan: Plan): LinearTensor[][] {
  const byName = new Map(plan.tensors.map((tensor) => [tensor.name, tensor]));
  const claimed = claimTensors(architecture, byName);
  return architecture.blocks.map((block) =>
    linearSites(block).flatMap(({ site, inputs, linears }) =>
      linears.flatMap(({ weight, outputs, storage }) => {
        const tensor = byName.get(claimed.get(weight)!)!;
        return tensor.copy ? [] : [{ plan: tensor, site, inputs, outputs, storage }];
      }),
    ),
  );
}

/** The tensor of the plan that holds the token embedding; undefined where it is copied. */
export function embeddingTensor(architecture: Architecture, plan: Plan): TensorPlan | undefined {
  const byName = new Map(plan.tensors.map((tensor) => [tensor.name, tensor]));
  const name = claimTensors(architecture, byName).get(architecture.embedding.token)!;
  const tensor = byName.get(name)!;
  return tensor.copy ? undefined : tensor;
}

/** Inputs of the widest linear layer. */
export function widestInput(architecture: Architecture): number {
  return Math.max(...architecture.blocks.flatMap((block) => linearSites(block).map((site) => site.inputs)));
}
