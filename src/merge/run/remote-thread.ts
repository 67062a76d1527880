/** Threads of a run in workers (src/host/threads.ts), which write at places: results of calibration cross too. */

import type { ColumnImportance } from '../../gguf/gguf-file';
import type { GgufPlan } from '../../gguf/gguf-plan';
import { moved, openThreads, type ThreadOwner, threadPool } from '../../host/threads';
import type { HashedInputs } from '../../host/weight-inputs';
import type { ContributorReport, WorkSeconds } from '../../reports/job';
import { takeSpares } from '../../sources/spare-arrays';
import type { HashPieces } from '../../write/destination';
import { methodById } from '../methods';
import type { Plan, TensorPlan } from '../plan/plan';
import { isAsStored } from '../tensor/as-stored';
import type { WholeModel } from '../tensor/delta-pipeline';
import type { Prepared } from '../tensor/prepared';
import {
  type MergedUnit,
  type MergeThread,
  type MergeThreadOptions,
  type MergeUnit,
  mergeRoom,
} from './merge-thread';
import type { MergeThreads, RunOptions, UnitWrite } from './run';
import { type MeasuringProgress, measuredTensors } from './whole-model';

/** What a thread merges of. */
export interface MergeWork extends Pick<MergeThreadOptions, 'room' | 'measured'> {
  plan: Pick<Plan, 'recipe'>;
  /** Tensors that are more than a few words, or measured: a unit names them by their place here; the others come with it. */
  told: readonly TensorPlan[];
  gguf?: { plan: GgufPlan; importance?: ColumnImportance };
  isPrepared: boolean;
  tileElements?: number;
}

/** What calibration has for a tensor, its values aside: by the contributors in order. */
export interface PreparedOutline {
  selections: ({ kind: 'mask' | 'values'; kept: number } | undefined)[];
  solution?: { contributors: ContributorReport[]; cosine: number[][] };
  rowWeights?: readonly Float64Array[];
}

/** The thread, as its owner calls it. */
export interface MergeCalls {
  measure(): Promise<WholeModel | undefined>;
  merge(
    unit: Omit<MergeUnit, 'tensors'> & { tensors: (TensorPlan | number)[] },
    wholeModel: WholeModel | undefined,
    prepared: PreparedOutline[] | undefined,
    spares: readonly ArrayBuffer[],
  ): Promise<MergedUnit>;
  hash: HashPieces;
}

/** The owner, as its threads call it. */
export interface MergeOwner extends ThreadOwner {
  selected(
    tensor: string,
    model: string,
    begin: number,
    end: number,
  ): Promise<Uint32Array<ArrayBuffer> | Float32Array<ArrayBuffer>>;
  solved(tensor: string, begin: number, end: number): Promise<Float32Array<ArrayBuffer>>;
  /** @returns the array */
  write(file: string, bytes: Uint8Array<ArrayBuffer>, at: number): Promise<Uint8Array<ArrayBuffer>>;
  measuring(call: keyof MeasuringProgress, ...args: (string | number)[]): void;
}

/** Bytes of a unit: many make the end even, few let neighbors of a file be read together. */
const UNIT = { most: 32 * 2 ** 20, least: 4 * 2 ** 20, perThread: 16 };

interface MergeThreadsOptions
  extends Pick<RunOptions<unknown>, 'plan' | 'prepared' | 'tileElements' | 'measuring'> {
  inputs: HashedInputs;
  count: number;
  gguf?: MergeWork['gguf'];
  onBytes(bytes: number, tensor: string): void;
}

/** Seconds of all threads together are more than the time passed. */
export interface OpenMergeThreads extends MergeThreads {
  readonly seconds: WorkSeconds;
  hash: HashPieces;
  close(): void;
}

/** @throws AmalgamError `WorkerDied` */
export async function openMergeThreads(options: MergeThreadsOptions): Promise<OpenMergeThreads> {
  const { inputs, count, prepared, plan } = options;
  const measured = measuredTensors(plan, methodById).length > 0 ? plan.tensors : [];
  const told = measured.length > 0 ? measured : plan.tensors.filter((tensor) => !isAsStored(tensor));
  const places = new Map(told.map((tensor, place) => [tensor, place]));
  let write: UnitWrite | undefined;
  const owner: Omit<MergeOwner, keyof ThreadOwner> = {
    async selected(tensor, model, begin, end) {
      const selection = prepared!.selection(tensor, model)!;
      return moved(
        await (selection.kind === 'mask' ? selection.mask(begin, end) : selection.values(begin, end)),
      );
    },
    solved: async (tensor, begin, end) => moved(await prepared!.solution(tensor)!.values(begin, end)),
    async write(file, bytes, at) {
      await write!({ file }, bytes, at);
      return moved(bytes);
    },
    measuring(call, ...args) {
      const act = options.measuring?.[call] as ((...args: (string | number)[]) => void) | undefined;
      act?.(...args);
    },
  };
  let seconds: WorkSeconds = { read: 0, upload: 0, compute: 0, readback: 0, write: 0 };
  const threads = await openThreads<MergeCalls>({
    kind: 'merge',
    work: {
      ...{ plan: { recipe: plan.recipe }, told, measured, room: mergeRoom(plan, methodById) },
      ...(options.gguf && { gguf: options.gguf }),
      isPrepared: prepared !== undefined,
      ...(options.tileElements === undefined ? {} : { tileElements: options.tileElements }),
    } satisfies MergeWork,
    ...{ inputs, count, owner, files: plan.inputs },
    hashed: { isHashed: (name) => !inputs.known.has(name), take: inputs.take },
    onDone: options.onBytes,
    onSeconds: (spent) => {
      seconds = spent;
    },
  });
  const members = threads.map(({ ask, terminate }): MergeThread & Pick<MergeCalls, 'hash'> => ({
    measure: () => ask('measure', []),
    merge(unit, wholeModel) {
      const outlines = prepared && unit.tensors.map((tensor) => outlineOf(prepared, tensor));
      const tensors = unit.tensors.map((tensor) => places.get(tensor) ?? tensor);
      // memory that came with merged units, and is used again there alone
      const spares = takeSpares();
      return ask('merge', [{ ...unit, tensors }, wholeModel, outlines, spares], spares);
    },
    hash: (file, pieces) => ask('hash', [file, pieces]),
    close: terminate,
  }));
  const { run } = threadPool(members);
  const bytes = plan.bytesToWrite / (count * UNIT.perThread);
  return {
    run,
    unitBytes: Math.min(UNIT.most, Math.max(UNIT.least, bytes)),
    writeBy(given) {
      write = given;
    },
    get seconds() {
      return seconds;
    },
    hash: (file, pieces) => run((thread) => thread.hash(file, pieces)),
    close() {
      for (const { close } of members) close();
    },
  };
}

function outlineOf(prepared: Prepared, { name, models }: TensorPlan): PreparedOutline {
  const solution = prepared.solution(name);
  const rowWeights = prepared.rowWeights(name);
  return {
    selections: models.map(({ id }) => {
      const selection = prepared.selection(name, id);
      return selection && { kind: selection.kind, kept: selection.kept };
    }),
    ...(solution && { solution: { contributors: solution.contributors, cosine: solution.cosine } }),
    ...(rowWeights && { rowWeights }),
  };
}
