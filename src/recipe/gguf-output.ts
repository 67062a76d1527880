/** The GGUF file of a merge, fed with every tensor as it is finished: beside the shards, or in their place. */
import { type GgufEncoder, ggufEncoder } from '../gguf/gguf-file';
import type { GgufPlan } from '../gguf/gguf-plan';
import type { Plan } from '../merge/plan/plan';
import { finishGguf } from '../merge/plan/plan-gguf';
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
}

export function openGguf(
  plan: Pick<Plan, 'recipe' | 'inputs'> & { gguf: GgufPlan },
  shards: readonly ShardPlan[],
  destination: DestinationSpec,
  hashes: ReadonlyMap<string, string>,
): GgufOutput {
  const isAlone = shards.length === 0;
  const name = 'name' in destination ? destination.name : plan.recipe.name;
  const file = finishGguf(plan, shards, name, hashes);
  return {
    file,
    isAlone,
    async sink(shard, names, record) {
      const beside = isAlone ? shard : await record.openBeside();
      const encoder = ggufEncoder(plan.gguf, names, (bytes) => beside.append(bytes));
      return isAlone ? encoding(shard, encoder) : both(shard, encoder);
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

/** The encoder reads the bytes first: whoever writes them may take their memory. */
function both(shard: ShardSink<WrittenShard>, encoder: GgufEncoder): ShardSink<WrittenShard> {
  return {
    ...encoding(shard, encoder),
    async append(bytes) {
      await encoder.append(bytes);
      await shard.append(bytes);
    },
  };
}
