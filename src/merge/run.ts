/**
 * The run: a pure function of (input bytes, recipe). Tensors are computed one after the other in the order of the
 * output files; while one is computed, the next one's bytes are already being read. No model is ever resident.
 */
import type { ComputeEngine } from '../compute/engine';
import type { TensorReport } from '../engine/protocol';
import { AmalgamError } from '../errors';
import { computeTensor, openComputed, openWorkspaceFor } from './compute';
import type { WholeModel } from './delta-pipeline';
import type { MergeMethod } from './method';
import type { Plan, ShardPlan, TensorPlan } from './plan';
import type { Emit, TensorStatistics } from './tensor-outcome';
import type { ReadTensor, TensorTask } from './tensor-task';
import { measuredTensors, measureWholeModel } from './whole-model';
import type { Workspace } from './workspace';

/** Where a shard's bytes go; ShardWriter of the write room is one. */
export interface ShardSink<Written> {
  append(bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  finish(): Promise<Written>;
  abort(): void;
}

export interface RunOptions<Written> {
  plan: Plan;
  shards: readonly ShardPlan[];
  engine: ComputeEngine;
  methods: ReadonlyMap<string, MergeMethod>;
  read: ReadTensor;
  openShard(shard: ShardPlan): Promise<ShardSink<Written>>;
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
  const { plan, engine } = options;
  const byName = new Map(plan.tensors.map((t) => [t.name, t]));
  const swept = [
    ...plan.tensors.filter((t) => t.copy === undefined && t.elements > 0),
    ...measuredTensors(plan, options.methods),
  ];
  const work = openWorkspaceFor(swept, options.methods, engine, options.tileElements);
  if (options.onWait) work.onWait = options.onWait;
  const reports: TensorReport[] = [];
  const written: Written[] = [];
  const order = options.shards.flatMap((s) => s.tensors.map((t) => byName.get(t.name)!));
  const open = (t: TensorPlan | undefined): TensorTask | undefined =>
    t && t.copy === undefined && t.elements > 0
      ? openComputed(t, methodOf(t, options.methods), work, options.read)
      : undefined;
  let index = 0;
  let next: TensorTask | undefined;
  try {
    const wholeModel = await prepare(options, work);
    next = open(order[0]);
    next?.prefetch();
    for (const shard of options.shards) {
      const sink = await options.openShard(shard);
      try {
        for (const { name } of shard.tensors) {
          const tensor = byName.get(name)!;
          const task = next;
          next = open(order[++index]);
          next?.prefetch();
          const emit: Emit = async (bytes) => {
            throwIfCancelled(options.signal);
            await sink.append(bytes);
            options.onBytes?.(bytes.byteLength, name);
          };
          throwIfCancelled(options.signal);
          const statistics = await (task
            ? compute(task, options, wholeModel, emit)
            : copy(tensor, options.read, emit)
          ).finally(() => task?.close());
          const report = tensorReport(tensor, statistics);
          reports.push(report);
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
    work.close();
  }
  return { tensors: reports, shards: written };
}

function methodOf(tensor: TensorPlan, methods: ReadonlyMap<string, MergeMethod>): MergeMethod {
  const method = methods.get(tensor.method);
  if (!method) throw new Error(`no method ${tensor.method}`);
  return method;
}

/** What has to be known of whole models before the first tensor is merged; sweeps them where the method asks for it. */
function prepare(options: RunOptions<unknown>, work: Workspace): Promise<WholeModel | undefined> {
  const { plan, methods, engine, read, signal } = options;
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
  const settings = { seed, nonFinite, ...(wholeModel ? { wholeModel } : {}) };
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
    ...(statistics ?? { contributors: [], signConflict: 0, cosine: [], outputChange: 0, nonFinite: 0 }),
  };
}

function throwIfCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted) {
    throw new AmalgamError(
      'Cancelled',
      'The merge was cancelled.',
      'Nothing was saved. Start it again when you like.',
    );
  }
}
