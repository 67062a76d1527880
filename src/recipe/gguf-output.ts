/** The GGUF file of a merge, fed with every tensor as it is finished: beside the shards, or in their place. */
import type { Backend } from '../backend/backend';
import type { Imatrix } from '../calibration/imatrix';
import { type GgufEncoder, ggufEncoder } from '../gguf/gguf-file';
import type { GgufPlan } from '../gguf/gguf-plan';
import { openEncodingBackends } from '../host/backends';
import { finishGguf } from '../merge/plan/finished-gguf';
import type { Plan } from '../merge/plan/plan';
import type { ShardSink } from '../merge/run/run';
import type { DestinationSpec } from '../reports/job';
import type { WrittenShard } from '../write/destination';
import type { FilePlan, ShardPlan } from '../write/shard-plan';
import type { RunRecord } from './run-record';

export interface GgufOutput {
  file: FilePlan;
  /** No safetensors are written. */
  isAlone: boolean;
  /** A sink that also encodes, or encodes only. @param names the tensors that come to it, in order */
  sink(
    shard: ShardSink<WrittenShard>,
    names: readonly string[],
    record: RunRecord,
  ): Promise<ShardSink<WrittenShard>>;
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
    async sink(shard, names, record) {
      const beside = isAlone ? shard : await record.openBeside();
      engines ??= openEncodingBackends(elements);
      const encoder = ggufEncoder({
        plan: plan.gguf,
        names,
        engines,
        ...(imatrix ? { importance: imatrix.columns } : {}),
        write: (bytes) => beside.append(bytes),
      });
      return isAlone ? encoding(shard, encoder) : both(shard, encoder);
    },
    close() {
      for (const engine of engines ?? []) engine.close();
    },
  };
}

function encoding(shard: ShardSink<WrittenShard>, encoder: GgufEncoder): ShardSink<WrittenShard> {
  return {
    ...shard,
    append: (bytes) => encoder.append(bytes),
    async finishTensor(report) {
      await encoder.finishTensor();
      await shard.finishTensor?.(report);
    },
  };
}

/** The encoder reads the bytes first: the writer may take their memory. */
function both(shard: ShardSink<WrittenShard>, encoder: GgufEncoder): ShardSink<WrittenShard> {
  return {
    ...encoding(shard, encoder),
    async append(bytes) {
      await encoder.append(bytes);
      await shard.append(bytes);
    },
  };
}
