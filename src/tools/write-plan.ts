/** Writing a plan that is no recipe's: small files and card, then shards; the index last. */
import type { Backend } from '../backend/backend';
import { DEFAULT_SHARD_BYTES } from '../formats/recipe';
import { SHARD_INDEX } from '../formats/shard-index';
import type { OpenModels } from '../host/models';
import type { ProgressMeter } from '../host/progress-meter';
import type { Inputs } from '../host/weight-inputs';
import { inputName } from '../inputs/stored-tensor';
import { methodById } from '../merge/methods';
import type { Plan } from '../merge/plan/plan';
import { planShards } from '../merge/plan/shards';
import { dataBytes, writeIndex, writeSmallFiles } from '../merge/run/output-files';
import { runPlan } from '../merge/run/run';
import { AMALGAM_VERSION } from '../merge/version';
import type { TensorProgress } from '../reports/job';
import type { Destination, WrittenShard } from '../write/destination';
import { indexedFiles } from '../write/shard-plan';
import { ShardWriter } from '../write/shard-writer';

export interface WriteTools {
  engine: Backend;
  inputs: Inputs;
  destination: Destination;
  models: OpenModels;
  meter: ProgressMeter<TensorProgress & { phase: 'merging'; finished: never[] }>;
  signal: AbortSignal;
}

interface Written {
  shards: { file: string; bytes: number; hash: string }[];
  /** The other files: config, tokenizer, card, index. */
  files: string[];
}

/**
 * @param made what the file says it was made by, beside its inputs
 * @throws what sources, engine and destination throw
 */
export async function writePlan(
  plan: Plan,
  card: string,
  made: Readonly<Record<string, string>>,
  hashed: readonly { id: string; file: string; hash: string }[],
  { shardBytes = DEFAULT_SHARD_BYTES, tileElements }: { shardBytes?: number; tileElements?: number },
  { engine, inputs, destination, models, meter, signal }: WriteTools,
): Promise<Written> {
  const hashes = Object.fromEntries(hashed.map(({ id, file, hash }) => [inputName(id, file), hash]));
  const metadata = {
    ...{ format: 'pt', ...made },
    amalgam_version: AMALGAM_VERSION,
    amalgam_inputs: JSON.stringify(hashes),
  };
  const shardPlans = planShards(plan.tensors, metadata, shardBytes);
  const extras = [...plan.extras, { path: 'README.md', content: { text: card } }];
  await writeSmallFiles(extras, models, destination, signal);
  meter.begin('merging', dataBytes(shardPlans), plan.tensors.length);
  const { shards } = await runPlan<WrittenShard>({
    plan,
    shards: shardPlans,
    engine,
    methods: methodById,
    read: inputs.read,
    signal,
    ...(tileElements === undefined ? {} : { tileElements }),
    openShard: async (shard) => {
      const writer = await ShardWriter.open(destination, shard);
      return {
        write: (bytes, at) => meter.timed('write', () => writer.write(bytes, at)),
        finishTensors: (reports, [part]) => writer.take(part!, reports.length),
        finish: () => writer.finish(),
        abort: () => writer.abort(),
      };
    },
    onWait: (seconds) => meter.spend('read', seconds),
    onTensor: () => meter.finishTensor(),
    onBytes: (bytes, tensor) => meter.advance(bytes, tensor),
  });
  await writeIndex(destination, shardPlans);
  const files = extras.map(({ path }) => path);
  return {
    shards: shards.map(({ file, bytes, hash }) => ({ file, bytes, hash })),
    files: indexedFiles(shardPlans).length > 0 ? [...files, SHARD_INDEX] : files,
  };
}

/** Small files of a plan but those that speak of a merge; the card is written anew. */
export function withoutRecipe(extras: Plan['extras']): Plan['extras'] {
  return extras.filter(({ path }) => path !== 'mergekit_config.yml' && path !== 'README.md');
}
