/**
 * The run: a pure function of (input bytes, recipe). Tensors are computed one after the other in the order of the
 * output files; while one is computed, the next one's bytes are already being read. No model is ever resident.
 */
import type { ComputeEngine } from '../compute/engine';
import type { TensorReport } from '../engine/protocol';
import { AmalgamError } from '../errors';
import { computeTensor, openComputed } from './compute';
import type { WholeModel } from './delta-pipeline';
import type { MergeMethod } from './method';
import type { Plan, ShardPlan, TensorPlan } from './plan';
import type { Prepared } from './prepared';
import { replayable } from './replayable';
import { openRunWorkspace, type Recover, type RunWorkspace } from './run-workspace';
import type { Emit, TensorStatistics } from './tensor-outcome';
import type { ReadTensor, TensorTask } from './tensor-task';
import { measuredTensors, measureWholeModel } from './whole-model';

/** Where a shard's bytes go; ShardWriter of the write room is one. */
export interface ShardSink<Written> {
  append(bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  /** All bytes of a tensor have been appended. */
  finishTensor?(report: TensorReport): Promise<void>;
  finish(): Promise<Written>;
  abort(): void;
}

export interface RunOptions<Written> {
  plan: Plan;
  shards: readonly ShardPlan[];
  engine: ComputeEngine;
  methods: ReadonlyMap<string, MergeMethod>;
  read: ReadTensor;
  /** @param skipped tensors of the shard that are there already */
  openShard(shard: ShardPlan, skipped: number): Promise<ShardSink<Written>>;
  /** What an interrupted run of this plan has left: whole shards, and the tensors that are written, from the first on. */
  done?: { shards: readonly Written[]; tensors: readonly TensorReport[] };
  /** Another engine for one whose device failed: the tensor at work is then computed anew. Default: the run fails. */
  recover?: Recover;
  /** What was worked out ahead, for methods that need it (`needsPrepared`). */
  prepared?: Prepared;
  /** Elements of one tile; the result does not depend on it. */
  tileElements?: number;
  signal?: AbortSignal;
  onTensor?(report: TensorReport): void;
  /** Seconds the run stood still for stored bytes. */
  onWait?(seconds: number): void;
  /** Output bytes written since the last call, and the tensor they belong to. */
  onBytes?(bytes: number, tensor: string): void;
}

/** Copied tensors move in pieces of this size. */
const COPY_BYTES = 8 * 1024 * 1024;

/**
 * Merges every tensor of a clean plan into its shards.
 * @throws AmalgamError `Cancelled`, `NonFinite`, and whatever sources, engine and destination throw
 */
export async function runPlan<Written>(
  options: RunOptions<Written>,
): Promise<{ tensors: TensorReport[]; shards: Written[] }> {
  const { plan } = options;
  const byName = new Map(plan.tensors.map((t) => [t.name, t]));
  const swept = [
    ...plan.tensors.filter((t) => t.copy === undefined && t.elements > 0),
    ...measuredTensors(plan, options.methods),
  ];
  const run = openRunWorkspace(swept, options);
  const reports: TensorReport[] = [...(options.done?.tensors ?? [])];
  const written: Written[] = [...(options.done?.shards ?? [])];
  const order = options.shards.flatMap((s) => s.tensors.map((t) => byName.get(t.name)!));
  const open = (t: TensorPlan | undefined): TensorTask | undefined =>
    t && t.copy === undefined && t.elements > 0
      ? openComputed(t, methodOf(t, options.methods), run.work, options.read, options.prepared)
      : undefined;
  let index = reports.length;
  let next: TensorTask | undefined;
  /** Opens the tensor after the one at work, and begins to read it. */
  const lookAhead = () => {
    next?.close();
    next = open(order[index]);
    next?.prefetch();
  };
  try {
    const wholeModel = index < order.length ? await run.retrying(() => prepare(options, run)) : undefined;
    lookAhead();
    let first = written.reduce((sum, _, i) => sum + options.shards[i]!.tensors.length, 0);
    for (const shard of options.shards.slice(written.length)) {
      const skipped = index - first;
      const sink = await options.openShard(shard, skipped);
      first += shard.tensors.length;
      try {
        for (const { name } of shard.tensors.slice(skipped)) {
          const tensor = byName.get(name)!;
          const { emit, restart } = replayable(async (bytes) => {
            throwIfCancelled(options.signal);
            await sink.append(bytes);
            options.onBytes?.(bytes.byteLength, name);
          });
          let task = next;
          next = undefined;
          index++;
          lookAhead();
          throwIfCancelled(options.signal);
          const statistics = task
            ? await run.retrying(async () => {
                restart();
                const attempt = task ?? open(tensor)!;
                task = undefined;
                return compute(attempt, options, wholeModel, emit).finally(() => attempt.close());
              }, lookAhead)
            : await copy(tensor, options.read, emit);
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
    next?.close();
    run.close();
  }
  return { tensors: reports, shards: written };
}

function methodOf(tensor: TensorPlan, methods: ReadonlyMap<string, MergeMethod>): MergeMethod {
  const method = methods.get(tensor.method);
  if (!method) throw new Error(`no method ${tensor.method}`);
  return method;
}

/** What has to be known of whole models before the first tensor is merged; sweeps them where the method asks for it. */
function prepare(options: RunOptions<unknown>, run: RunWorkspace): Promise<WholeModel | undefined> {
  const { plan, methods, read, signal } = options;
  const { work } = run;
  const { engine } = work;
  const { seed = 0, nonFinite = 'stop' } = plan.recipe.amalgam;
  const onTensor = () => throwIfCancelled(signal);
  return measureWholeModel({ plan, methods, work, engine, read, seed, nonFinite, onTensor });
}

function compute(
  task: TensorTask,
  options: RunOptions<unknown>,
  wholeModel: WholeModel | undefined,
  emit: Emit,
): Promise<TensorStatistics> {
  const { seed = 0, nonFinite = 'stop' } = options.plan.recipe.amalgam;
  const { prepared } = options;
  const settings = {
    seed,
    nonFinite,
    ...(wholeModel ? { wholeModel } : {}),
    ...(prepared ? { prepared } : {}),
  };
  return computeTensor(task, methodOf(task.plan, options.methods), settings, emit);
}

/** Byte for byte, never through floats. */
async function copy(tensor: TensorPlan, read: ReadTensor, emit: Emit): Promise<undefined> {
  const ref = tensor.copy;
  if (!ref) return undefined; // an empty tensor has no bytes
  const length = ref.end - ref.begin;
  for (let begin = 0; begin < length; begin += COPY_BYTES) {
    await emit(await read(ref, begin, Math.min(begin + COPY_BYTES, length)));
  }
  return undefined;
}

function tensorReport(tensor: TensorPlan, statistics: TensorStatistics | undefined): TensorReport {
  return {
    name: tensor.name,
    layer: tensor.role.layer,
    module: tensor.role.module,
    shape: [...tensor.shape],
    dtype: tensor.dtype,
    elements: tensor.elements,
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

function throwIfCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted) {
    throw new AmalgamError('Cancelled', 'The merge was cancelled.', 'Start it again when you like.');
  }
}
