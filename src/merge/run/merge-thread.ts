/**
 * A thread of a run: takes a unit of the output, reads what it is made of, computes, hashes and writes it at its place. This
 * one is where it is called; remote-thread.ts has them in workers.
 */
import { type WeightDtype, weightBytes } from '../../formats/dtype';
import type { ReadTensor } from '../../inputs/stored-tensor';
import { throwIfCanceled } from '../../sources/cancellation';
import { giveBack } from '../../sources/spare-arrays';
import type { FilePlace } from '../../write/destination';
import { type FilePart, partWriter } from '../../write/shard-writer';
import type { MergeMethod } from '../method';
import type { Plan, TensorPlan } from '../plan/plan';
import {
  type ComputeSettings,
  computeTensor,
  openComputed,
  roomFor,
  type TensorPart,
  type WorkspaceRoom,
} from '../tensor/computation';
import type { WholeModel } from '../tensor/delta-pipeline';
import type { Prepared } from '../tensor/prepared';
import type { Emit, TensorStatistics } from '../tensor/tensor-outcome';
import type { TensorTask } from '../tensor/tensor-task';
import { openRunWorkspace, type RunWorkspaceOptions } from './run-workspace';
import { type EngineAnswers, keepingAnswers } from './tensor-parts';
import { type MeasuringProgress, measuredTensors, measureWholeModel } from './whole-model';

/** Tensors that follow each other in a file, and where their bytes go. */
export interface MergeUnit {
  tensors: readonly TensorPlan[];
  outputs: readonly UnitOutput[];
  /** Of the one tensor only this is to be merged. */
  part?: TensorPart;
}

export interface UnitOutput {
  file: string;
  /** Where the first of the tensors begins in the file. */
  at: number;
  /** The file gets what the encoder makes of the merged bytes. */
  isEncoded: boolean;
  place?: FilePlace;
}

export interface MergedUnit {
  /** Of each tensor; of a copied one there are none. */
  statistics: (TensorStatistics | undefined)[];
  /** What was written, output by output. */
  parts: FilePart[];
  /** From what the statistics of a tensor follow of which only a part was merged. */
  answers?: EngineAnswers;
}

export interface MergeThread {
  /** Measures whole models where a method asks for it, before anything is merged. */
  measure(progress?: MeasuringProgress): Promise<WholeModel | undefined>;
  /** @param following the tensor that will probably come next, to be read ahead */
  merge(unit: MergeUnit, wholeModel: WholeModel | undefined, following?: TensorPlan): Promise<MergedUnit>;
  close(): void;
}

/** Takes merged bytes tensor by tensor and writes what becomes of them. */
interface TensorEncoder {
  append(bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  finishTensor(): Promise<void>;
}

/** Opens one for tensors in a row. */
export type OpenEncoder = (
  names: readonly string[],
  write: (bytes: Uint8Array<ArrayBuffer>) => Promise<void>,
) => TensorEncoder;

export interface MergeThreadOptions extends RunWorkspaceOptions {
  plan: Pick<Plan, 'recipe'>;
  /** Of all that will be merged and measured ({@link mergeRoom}). */
  room: WorkspaceRoom;
  /** What whole models are measured by, where a method asks for that. */
  measured: readonly TensorPlan[];
  methods: ReadonlyMap<string, MergeMethod>;
  read: ReadTensor;
  write(output: UnitOutput, bytes: Uint8Array<ArrayBuffer>, at: number): Promise<void>;
  encoder?: OpenEncoder;
  /** Results of calibration, for methods that merge by them. */
  prepared?: Prepared;
  signal?: AbortSignal;
  /** Merged bytes since the last call, and the tensor they belong to. */
  onBytes?(bytes: number, tensor: string): void;
}

/** Copied tensors move in pieces of this size, whose memory is still in the cache when it is used again. */
const COPY_BYTES = 2 * 1024 * 1024;

/** The next tensor is read from the start of one no larger than this, else from its first finished bytes. */
const SHORT_ELEMENTS = 2 ** 23;

export function openMergeThread(options: MergeThreadOptions): MergeThread {
  const { plan, methods, read, prepared, signal } = options;
  const run = openRunWorkspace(options.room, options);
  let ahead: { tensor: TensorPlan; task: TensorTask } | undefined;
  const open = (t: TensorPlan): TensorTask => openComputed(t, methodOf(t, methods), run.work, read, prepared);
  const lookAhead = (tensor: TensorPlan | undefined) => {
    if (tensor && ahead?.tensor === tensor) return;
    ahead?.task.close();
    ahead = tensor && isComputed(tensor) ? { tensor, task: open(tensor) } : undefined;
    ahead?.task.prefetch();
  };

  const mergeTensor = async (
    tensor: TensorPlan,
    wholeModel: WholeModel | undefined,
    next: TensorPlan | undefined,
    put: Emit,
  ): Promise<TensorStatistics | undefined> => {
    throwIfCanceled(signal);
    if (!isComputed(tensor)) return copy(tensor, read, put);
    let task = ahead?.tensor === tensor ? ahead.task : undefined;
    if (task) ahead = undefined;
    const replay = replayable(async (bytes) => {
      throwIfCanceled(signal);
      lookAhead(next);
      await put(bytes);
      // computed bytes were made for this alone
      giveBack(bytes.buffer);
    });
    if (tensor.elements <= SHORT_ELEMENTS) lookAhead(next);
    const settings = { ...settingsOf(plan, wholeModel), ...(prepared ? { prepared } : {}) };
    return run.retrying(
      () => {
        replay.restart();
        const attempt = task ?? open(tensor);
        task = undefined;
        return computeTensor(attempt, methodOf(tensor, methods), settings, replay.emit).finally(() =>
          attempt.close(),
        );
      },
      // what was read ahead belongs to the workspace that failed
      () => {
        ahead?.task.close();
        ahead = undefined;
      },
    );
  };

  const openPart = (tensor: TensorPlan, part: TensorPart) => {
    const { work, kept } = keepingAnswers(run.work);
    const task = openComputed(tensor, methodOf(tensor, methods), work, read, undefined, false, part);
    return { task, kept, first: (task.tiles[0]?.begin ?? 0) * weightBytes(tensor.dtype as WeightDtype) };
  };
  const mergePart = async (task: TensorTask, wholeModel: WholeModel | undefined, put: Emit) => {
    const settings = settingsOf(plan, wholeModel);
    try {
      return await computeTensor(task, methodOf(task.plan, methods), settings, async (bytes) => {
        throwIfCanceled(signal);
        await put(bytes);
        giveBack(bytes.buffer);
      });
    } finally {
      task.close();
    }
  };

  return {
    measure: (progress) =>
      run.retrying(() =>
        measureWholeModel({
          ...{ plan: { tensors: options.measured }, methods, read, ...settingsOf(plan) },
          work: run.work,
          engine: run.work.engine,
          onTensor: () => throwIfCanceled(signal),
          ...(progress ? { progress } : {}),
        }),
      ),
    async merge({ tensors, outputs, part }, wholeModel, following) {
      const opened = part && openPart(tensors[0]!, part);
      const writers = outputs.map((output) =>
        partWriter(output.at + (opened?.first ?? 0), (bytes, at) => options.write(output, bytes, at)),
      );
      const names = tensors.map(({ name }) => name);
      const sinks = outputs.map(({ isEncoded }, i): TensorEncoder => {
        const { append } = writers[i]!;
        return isEncoded ? options.encoder!(names, append) : { append, finishTensor: async () => {} };
      });
      const statistics: MergedUnit['statistics'] = [];
      for (const [i, tensor] of tensors.entries()) {
        const next = tensors[i + 1] ?? following;
        const put: Emit = async (bytes) => {
          for (const sink of sinks) await sink.append(bytes);
          options.onBytes?.(bytes.byteLength, tensor.name);
        };
        const merged = opened
          ? await mergePart(opened.task, wholeModel, put)
          : await mergeTensor(tensor, wholeModel, next, put);
        for (const sink of sinks) await sink.finishTensor();
        statistics.push(merged);
      }
      const parts = await Promise.all(writers.map((writer) => writer.finish()));
      return { statistics, parts, ...(opened && { answers: opened.kept }) };
    },
    close() {
      ahead?.task.close();
      run.close();
    },
  };
}

/** The room that the threads of a run need. */
export function mergeRoom(
  { tensors }: Pick<Plan, 'tensors'>,
  methods: ReadonlyMap<string, MergeMethod>,
): WorkspaceRoom {
  return roomFor(new Set([...tensors.filter(isComputed), ...measuredTensors({ tensors }, methods)]), methods);
}

/** How the tensors of a plan are computed. */
export function settingsOf({ recipe }: Pick<Plan, 'recipe'>, wholeModel?: WholeModel): ComputeSettings {
  const { seed = 0, nonFinite = 'stop' } = recipe.amalgam;
  return { seed, nonFinite, ...(wholeModel && { wholeModel }) };
}

/** Whether a tensor is computed with: a copy is not, nor is one without elements. */
export function isComputed(tensor: TensorPlan): boolean {
  return tensor.copy === undefined && tensor.elements > 0;
}

function methodOf(tensor: TensorPlan, methods: ReadonlyMap<string, MergeMethod>): MergeMethod {
  const method = methods.get(tensor.method);
  if (!method) throw new Error(`no method ${tensor.method}`);
  return method;
}

/** Byte for byte, never through floats. */
async function copy(tensor: TensorPlan, read: ReadTensor, emit: Emit): Promise<undefined> {
  const ref = tensor.copy;
  if (!ref) return undefined; // an empty tensor has no bytes
  const length = ref.end - ref.begin;
  for (let begin = 0; begin < length; begin += COPY_BYTES) {
    const bytes = await read(ref, begin, Math.min(begin + COPY_BYTES, length));
    await emit(bytes);
    giveBack(bytes.buffer);
  }
  return undefined;
}

/**
 * An emit that may be fed anew from the start: bytes that went out already are left out. A tensor's bytes do not
 * depend on how often, or in which tiles, it is computed.
 */
function replayable(emit: Emit): { emit: Emit; restart(): void } {
  let sent = 0;
  let at = 0;
  return {
    async emit(bytes) {
      const fresh = bytes.subarray(Math.min(bytes.byteLength, Math.max(0, sent - at)));
      at += bytes.byteLength;
      if (fresh.byteLength === 0) return;
      sent = at;
      await emit(fresh);
    },
    restart() {
      at = 0;
    },
  };
}
