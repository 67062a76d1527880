/**
 * The run: a pure function of (input bytes, recipe). The output is cut into units of tensors that follow each other in a
 * file. Every thread takes the next unit that none has taken and writes it at its place; what it tells of it is taken in
 * the order of the files, so that a journal always knows a beginning. No model is ever resident.
 */

import { threadPool } from '../../host/threads';
import type { TensorReport } from '../../reports/job';
import { canceled, throwIfCanceled } from '../../sources/cancellation';
import type { FilePlace } from '../../write/destination';
import type { FilePlan } from '../../write/shard-plan';
import { type FilePart, joinParts } from '../../write/shard-writer';
import type { MergeMethod } from '../method';
import { type Plan, type TensorPlan, tensorOutline } from '../plan/plan';
import { type ComputeSettings, canBeCut, type TensorPart } from '../tensor/computation';
import type { WholeModel } from '../tensor/delta-pipeline';
import type { TensorStatistics } from '../tensor/tensor-outcome';
import {
  type MergedUnit,
  type MergeThread,
  type MergeThreadOptions,
  type MergeUnit,
  mergeRoom,
  type OpenEncoder,
  openMergeThread,
  settingsOf,
  type UnitOutput,
} from './merge-thread';
import { statisticsOf } from './tensor-parts';
import type { MeasuringProgress } from './whole-model';

/** Destination of a shard's bytes. */
export interface ShardSink<Written> {
  /** By what other threads write the file; absent where only this one can. */
  readonly place?: FilePlace | undefined;
  write(bytes: Uint8Array<ArrayBuffer>, at: number): Promise<void>;
  /**
   * The next tensors are written.
   * @param parts what they are of this file, and of the one beside it where there is one
   */
  finishTensors?(reports: readonly TensorReport[], parts: readonly FilePart[]): Promise<void>;
  finish(): Promise<Written>;
  abort(): void;
}

export interface RunOptions<Written>
  extends Omit<MergeThreadOptions, 'write' | 'encoder' | 'room' | 'measured'> {
  plan: Plan;
  shards: readonly FilePlan[];
  /** Does the work instead of the engine. */
  threads?: MergeThreads;
  /** Bytes of a unit where there are none; tests vary it. */
  unitBytes?: number;
  /** @param skipped tensors of the shard that are there already */
  openShard(shard: FilePlan, skipped: number): Promise<ShardSink<Written>>;
  /** Makes what is written of the merged bytes: to a file beside the shards, else to the shards themselves. */
  encoding?: { encoder: OpenEncoder; beside?: { plan: FilePlan; open(): Promise<BesideSink> } };
  /** Output of an interrupted run of this plan: whole shards, and the tensors already written, from the first on. */
  done?: { shards: readonly Written[]; tensors: readonly TensorReport[] };
  onTensor?(report: TensorReport): void;
  /** What whole models were measured to be where that is known, and what takes it where it is measured now. */
  measured?: { known: WholeModel | undefined; keep(measured: WholeModel): Promise<unknown> };
  /** Progress of the passes over whole models that some semantics need before the first tensor is merged. */
  measuring?: MeasuringProgress;
}

type BesideSink = Pick<ShardSink<unknown>, 'place' | 'write'>;

/** Threads of a run beside this one. */
export interface MergeThreads {
  /** Has the next one that is free do it. */
  run<T>(task: (thread: MergeThread) => Promise<T>): Promise<T>;
  /** Bytes of the output that one takes at a time. */
  readonly unitBytes: number;
  /** Has this thread write for those that cannot. */
  writeBy(write: UnitWrite): void;
}

export type UnitWrite = (
  output: Pick<UnitOutput, 'file'>,
  bytes: Uint8Array<ArrayBuffer>,
  at: number,
) => Promise<void>;

/** Units' worth of bytes that one part of a tensor has at most. */
const PART_UNITS = 4;

/** Bytes of a unit where there are no threads: of a few, a merge that is canceled or killed loses little, and shows how far it is. */
const UNIT_BYTES = 2 ** 16;

/** Units that may be finished before the one whose turn it is. */
const AHEAD = 32;

/**
 * Merges every tensor of a clean plan into its shards.
 * @throws AmalgamError `Canceled`, `NonFinite`, and whatever sources, engine and destination throw
 */
export async function runPlan<Written>(
  options: RunOptions<Written>,
): Promise<{ tensors: TensorReport[]; shards: Written[] }> {
  const { plan, shards, encoding, signal, methods } = options;
  const byName = new Map(plan.tensors.map((t) => [t.name, t]));
  const reports: TensorReport[] = [...(options.done?.tensors ?? [])];
  const written: Written[] = [...(options.done?.shards ?? [])];
  const sinks = new Map<string, BesideSink>();
  const write: UnitWrite = ({ file }, bytes, at) => sinks.get(file)!.write(bytes, at);
  const room = () => ({ room: mergeRoom(plan, methods), measured: plan.tensors });
  const own = options.threads ? undefined : openMergeThread({ ...options, ...encoding, ...room(), write });
  const threads = options.threads ?? { ...threadPool([own!]), unitBytes: options.unitBytes ?? UNIT_BYTES };
  options.threads?.writeBy(write);
  const partsOf = (tensor: TensorPlan, bytes: number) => {
    const isWhole = own || encoding || options.prepared || bytes <= PART_UNITS * threads.unitBytes;
    if (isWhole || !canBeCut(tensor, methods.get(tensor.method)!)) return 1;
    return Math.ceil(bytes / (PART_UNITS * threads.unitBytes));
  };
  const begun: Promise<MergedUnit>[] = [];
  const closing: Promise<Written>[] = [];
  const opened: ShardSink<Written>[] = [];
  let unclosed: { thrown: unknown } | undefined;
  let hasEnded = false;
  try {
    const whole = written.reduce((sum, _, i) => sum + shards[i]!.tensors.length, 0);
    const isDone = reports.length === shards.reduce((sum, { tensors }) => sum + tensors.length, 0);
    const { measured } = options;
    let wholeModel = measured?.known;
    if (!wholeModel && (measured || !isDone)) {
      wholeModel = await threads.run((thread) => thread.measure(options.measuring));
      if (wholeModel) await measured?.keep(wholeModel);
    }
    const beside = encoding?.beside;
    if (beside) sinks.set(beside.plan.file, await beside.open());
    const rest = shards.slice(written.length).map((shard, i) => {
      const skipped = i === 0 ? reports.length - whole : 0;
      return {
        shard,
        skipped,
        units: cutUnits(shard, skipped, byName, threads.unitBytes, partsOf, encoding),
      };
    });
    const units = rest.flatMap((each, shard) => each.units.map((unit) => ({ ...unit, shard })));
    const openUntil = async (last: number) => {
      for (const { shard, skipped } of rest.slice(opened.length, last + 1)) {
        const sink = await options.openShard(shard, skipped);
        sinks.set(shard.file, sink);
        opened.push(sink);
      }
    };
    const beginNext = async () => {
      const index = begun.length;
      const { shard, ...unit } = units[index]!;
      await openUntil(shard);
      const outputs = unit.outputs.map((output) => {
        const { place } = sinks.get(output.file)!;
        return place ? { ...output, place } : output;
      });
      const merged = threads.run((thread) => {
        if (hasEnded) throw canceled();
        return thread.merge({ ...unit, outputs }, wholeModel, own && units[index + 1]?.tensors[0]);
      });
      merged.catch(() => {}); // reported when its turn comes
      begun.push(merged);
    };
    const takeNext = unitTaker(options, wholeModel, reports);
    let index = 0;
    for (const [number, each] of rest.entries()) {
      await openUntil(number);
      const sink = opened[number]!;
      for (const unit of each.units) {
        while (begun.length < Math.min(units.length, index + AHEAD)) await beginNext();
        throwIfCanceled(signal);
        if (unclosed) throw unclosed.thrown;
        await takeNext(unit, await begun[index++]!, sink);
      }
      // a file may take long to close; the next ones are written meanwhile
      const closed = sink.finish();
      closed.catch((thrown: unknown) => {
        unclosed ??= { thrown };
      });
      closing.push(closed);
    }
    written.push(...(await Promise.all(closing)));
  } catch (error) {
    hasEnded = true;
    await Promise.allSettled(closing);
    for (const sink of opened.slice(closing.length)) sink.abort();
    throw error;
  } finally {
    hasEnded = true;
    await Promise.allSettled(begun);
    own?.close();
  }
  return { tensors: reports, shards: written };
}

/** Takes merged units in the order of the files: parts of a tensor wait for the last of them. */
function unitTaker<Written>(
  { plan, methods, onTensor }: RunOptions<Written>,
  wholeModel: WholeModel | undefined,
  reports: TensorReport[],
) {
  const cut: MergedUnit[] = [];
  return async ({ tensors, part }: MergeUnit, merged: MergedUnit, sink: ShardSink<Written>) => {
    let unit = merged;
    if (part) {
      cut.push(merged);
      if (part.index + 1 < part.of) return;
      const tensor = tensors[0]!;
      const settings = settingsOf(plan, wholeModel);
      unit = await joinUnits(tensor, methods.get(tensor.method)!, settings, cut.splice(0));
    }
    const finished = tensors.map((tensor, i) => tensorReport(tensor, unit.statistics[i]));
    reports.push(...finished);
    await sink.finishTensors?.(finished, unit.parts);
    for (const report of finished) onTensor?.(report);
  };
}

/** Tensors of a shard from number `skipped` on, neighbors together while they have no more than `unitBytes`. */
function cutUnits(
  shard: FilePlan,
  skipped: number,
  byName: ReadonlyMap<string, TensorPlan>,
  unitBytes: number,
  partsOf: (tensor: TensorPlan, bytes: number) => number,
  encoding: RunOptions<unknown>['encoding'],
): MergeUnit[] {
  const beside = encoding?.beside?.plan;
  const files = beside ? [shard, beside] : [shard];
  const places = files.map(beginnings);
  const units: { tensors: TensorPlan[]; outputs: UnitOutput[]; bytes: number; part?: TensorPart }[] = [];
  for (const { name, byteLength } of shard.tensors.slice(skipped)) {
    const last = units.at(-1);
    const tensor = byName.get(name)!;
    const of = partsOf(tensor, byteLength);
    if (of === 1 && last && !last.part && last.bytes + byteLength <= unitBytes) {
      last.tensors.push(tensor);
      last.bytes += byteLength;
      continue;
    }
    const outputs = files.map(({ file }, i): UnitOutput => {
      const isEncoded = encoding !== undefined && (file === beside?.file || !beside);
      return { file, at: places[i]!.get(name)!, isEncoded };
    });
    const unit = { tensors: [tensor], outputs, bytes: byteLength };
    if (of === 1) units.push(unit);
    else for (let index = 0; index < of; index++) units.push({ ...unit, part: { index, of } });
  }
  return units;
}

/** The parts of a tensor as one unit. */
async function joinUnits(
  tensor: TensorPlan,
  method: MergeMethod,
  settings: ComputeSettings,
  units: readonly MergedUnit[],
): Promise<MergedUnit> {
  const answers = units.map((unit) => unit.answers!);
  return {
    statistics: [await statisticsOf(tensor, method, settings, answers)],
    parts: await Promise.all(
      units[0]!.parts.map((_, file) => joinParts(units.map(({ parts }) => parts[file]!))),
    ),
  };
}

/** Where each tensor begins in a file. */
function beginnings({ header, tensors }: FilePlan): Map<string, number> {
  let at = header.byteLength;
  return new Map(
    tensors.map(({ name, byteLength }) => {
      at += byteLength;
      return [name, at - byteLength];
    }),
  );
}

const COPIED: TensorStatistics = {
  contributors: [],
  signConflict: 0,
  cosine: [],
  baseNorm: 0,
  outputChange: 0,
  nonFinite: 0,
};

function tensorReport(tensor: TensorPlan, statistics: TensorStatistics | undefined): TensorReport {
  const found = statistics ?? COPIED;
  return Object.assign(tensorOutline(tensor), { copied: statistics === undefined }, found);
}
