/**
 * The run: a pure function of (input bytes, recipe). Tensors are written one after the other in the order of the output
 * files. Each engine computes one at a time while the bytes of its next one are already being read; what is computed
 * before its turn waits (ordered-output.ts). No model is ever resident.
 */

import type { Backend } from '../../backend/backend';
import type { ReadTensor } from '../../inputs/stored-tensor';
import type { TensorReport } from '../../reports/job';
import { throwIfCanceled } from '../../sources/cancellation';
import type { FilePlan } from '../../write/shard-plan';
import type { MergeMethod } from '../method';
import { type Plan, type TensorPlan, tensorOutline } from '../plan/plan';
import type { WholeModel } from '../tensor/delta-pipeline';
import type { Prepared } from '../tensor/prepared';
import type { TensorStatistics } from '../tensor/tensor-outcome';
import { isComputed, openMergeThread } from './merge-thread';
import { type OrderedOutput, openOrderedOutput } from './ordered-output';
import type { Recover, RunWorkspace } from './run-workspace';
import { type MeasuringProgress, measuredTensors, measureWholeModel } from './whole-model';

/** Destination of a shard's bytes; ShardWriter of the write room is one. */
export interface ShardSink<Written> {
  append(bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  /** All bytes of a tensor have been appended. */
  finishTensor?(report: TensorReport): Promise<void>;
  finish(): Promise<Written>;
  abort(): void;
}

interface RunOptions<Written> {
  plan: Plan;
  shards: readonly FilePlan[];
  engine: Backend;
  /** More engines of the same kind: as many tensors more are computed at once. */
  threads?: readonly Backend[];
  methods: ReadonlyMap<string, MergeMethod>;
  read: ReadTensor;
  /** @param skipped tensors of the shard that are there already */
  openShard(shard: FilePlan, skipped: number): Promise<ShardSink<Written>>;
  /** Output of an interrupted run of this plan: whole shards, and the tensors already written, from the first on. */
  done?: { shards: readonly Written[]; tensors: readonly TensorReport[] };
  /** Another engine for one whose device failed: the tensor at work is then computed anew. Default: the run fails. */
  recover?: Recover;
  /** Results of calibration, for methods that merge by them. */
  prepared?: Prepared;
  /** Elements of one tile; the result does not depend on it. */
  tileElements?: number;
  signal?: AbortSignal;
  onTensor?(report: TensorReport): void;
  /** Progress of the passes over whole models that some semantics need before the first tensor is merged. */
  measuring?: MeasuringProgress;
  /** Seconds the run waited for stored bytes. */
  onWait?(seconds: number): void;
  /** Output bytes written since the last call, and the tensor they belong to. */
  onBytes?(bytes: number, tensor: string): void;
}

/**
 * Merges every tensor of a clean plan into its shards.
 * @throws AmalgamError `Canceled`, `NonFinite`, and whatever sources, engine and destination throw
 */
export async function runPlan<Written>(
  options: RunOptions<Written>,
): Promise<{ tensors: TensorReport[]; shards: Written[] }> {
  const { plan } = options;
  const byName = new Map(plan.tensors.map((t) => [t.name, t]));
  const swept = [...plan.tensors.filter(isComputed), ...measuredTensors(plan, options.methods)];
  const reports: TensorReport[] = [...(options.done?.tensors ?? [])];
  const written: Written[] = [...(options.done?.shards ?? [])];
  const order = options.shards.flatMap((s) => s.tensors.map((t) => byName.get(t.name)!));
  const threads = [options.engine, ...(options.threads ?? [])].map((engine) =>
    openMergeThread(swept, { ...options, engine }),
  );
  let output: OrderedOutput | undefined;
  try {
    const work = reports.length < order.length ? await prepare(options, threads[0]!.run) : undefined;
    output = openOrderedOutput(threads, order, reports.length, work);
    let first = written.reduce((sum, _, i) => sum + options.shards[i]!.tensors.length, 0);
    for (const shard of options.shards.slice(written.length)) {
      const skipped = reports.length - first;
      const sink = await options.openShard(shard, skipped);
      first += shard.tensors.length;
      try {
        for (const { name } of shard.tensors.slice(skipped)) {
          const tensor = byName.get(name)!;
          throwIfCanceled(options.signal);
          const statistics = await output.land(async (bytes) => {
            throwIfCanceled(options.signal);
            await sink.append(bytes);
            options.onBytes?.(bytes.byteLength, name);
          });
          const report = tensorReport(tensor, statistics);
          reports.push(report);
          await sink.finishTensor?.(report);
          options.onTensor?.(report);
        }
        written.push(await sink.finish());
      } catch (error) {
        sink.abort();
        throw error;
      }
    }
  } finally {
    await output?.cancel();
    for (const thread of threads) thread.close();
  }
  return { tensors: reports, shards: written };
}

/** Measurements of whole models before the first tensor is merged, for methods that need them. */
function prepare(options: RunOptions<unknown>, run: RunWorkspace): Promise<WholeModel | undefined> {
  const { plan, methods, read, signal } = options;
  const { seed = 0, nonFinite = 'stop' } = plan.recipe.amalgam;
  const onTensor = () => throwIfCanceled(signal);
  return run.retrying(() => {
    const { work } = run;
    return measureWholeModel({
      plan,
      methods,
      work,
      engine: work.engine,
      read,
      seed,
      nonFinite,
      onTensor,
      ...(options.measuring ? { progress: options.measuring } : {}),
    });
  });
}

function tensorReport(tensor: TensorPlan, statistics: TensorStatistics | undefined): TensorReport {
  return {
    ...tensorOutline(tensor),
    copied: statistics === undefined,
    ...(statistics ?? {
      contributors: [],
      signConflict: 0,
      cosine: [],
      baseNorm: 0,
      outputChange: 0,
      nonFinite: 0,
    }),
  };
}
