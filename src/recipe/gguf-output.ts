/** The GGUF file of a merge, made of every tensor as it is merged: beside the shards, or in their place. */
import type { Backend } from '../backend/backend';
import type { Imatrix } from '../calibration/imatrix';
import { ggufEncoder } from '../gguf/gguf-file';
import type { GgufPlan } from '../gguf/gguf-plan';
import { openEncodingBackends } from '../host/backends';
import { finishGguf } from '../merge/plan/finished-gguf';
import type { Plan } from '../merge/plan/plan';
import type { OpenEncoder } from '../merge/run/merge-thread';
import type { MergeWork } from '../merge/run/remote-thread';
import type { DestinationSpec } from '../reports/job';
import type { FilePlan, ShardPlan } from '../write/shard-plan';

export interface GgufOutput {
  file: FilePlan;
  /** No safetensors are written. */
  isAlone: boolean;
  encoder: OpenEncoder;
  /** What threads need to do the same. */
  forThreads: NonNullable<MergeWork['gguf']>;
  close(): void;
}

export function openGguf(
  plan: Pick<Plan, 'recipe' | 'inputs' | 'tensors'> & { gguf: GgufPlan },
  shards: readonly ShardPlan[],
  destination: DestinationSpec,
  hashes: ReadonlyMap<string, string>,
  imatrix: Imatrix | undefined,
): GgufOutput {
  const isAlone = shards.length === 0;
  const elements = plan.tensors.reduce((sum, tensor) => sum + tensor.elements, 0);
  const name = 'name' in destination ? destination.name : plan.recipe.name;
  const file = finishGguf(plan, shards, name, hashes, imatrix?.report.text);
  let engines: readonly [Backend, ...Backend[]] | undefined;
  return {
    file,
    isAlone,
    forThreads: { plan: plan.gguf, ...(imatrix && { importance: imatrix.columns }) },
    encoder(names, write) {
      engines ??= openEncodingBackends(elements);
      return ggufEncoder({
        plan: plan.gguf,
        names,
        engines,
        ...(imatrix ? { importance: imatrix.columns } : {}),
        write,
      });
    },
    close() {
      for (const engine of engines ?? []) engine.close();
    },
  };
}
