/**
 * Threads of a run in workers, which share nothing: each opens the files itself, reads into its own memory, computes and
 * writes. Only what is small crosses, and what a thread cannot reach: values computed by code of the thread that has the
 * plan, results of calibration, files that another thread cannot open.
 */
import * as Comlink from 'comlink';
import type { ColumnImportance } from '../../gguf/gguf-file';
import type { GgufPlan } from '../../gguf/gguf-plan';
import { openThread, reporting } from '../../host/threads';
import type { HashedInputs } from '../../host/weight-inputs';
import { inputName } from '../../inputs/stored-tensor';
import type { Derived } from '../../inputs/tensor-view';
import type { ContributorReport } from '../../reports/job';
import type { SourceOrigin } from '../../sources/byte-source';
import type { Leaf } from '../../sources/tree-hash';
import type { HashPieces } from '../../write/destination';
import type { Plan } from '../plan/plan';
import type { WholeModel } from '../tensor/delta-pipeline';
import type { Prepared } from '../tensor/prepared';
import type { MergedUnit, MergeThread, MergeUnit } from './merge-thread';
import { type MergeThreads, threadPool, type UnitWrite } from './run';
import type { MeasuringProgress } from './whole-model';

/** What a thread is told at its beginning: plain data. */
export interface ThreadJob {
  plan: Pick<Plan, 'tensors' | 'recipe'>;
  /** By {@link inputName}; one without origin is read by the owner. */
  inputs: { name: string; byteLength: number; isHashed: boolean; origin?: SourceOrigin }[];
  /** The derived values in the plan, which the owner computes. */
  derived: Derived[];
  gguf?: { plan: GgufPlan; importance?: ColumnImportance };
  isPrepared: boolean;
  /** Bytes that its tiles may take, and stored bytes between the passes over a tensor. */
  share: { tileBytes: number; keptBytes: number };
  tileElements?: number;
}

/** What calibration has for a tensor, its values aside: by the contributors in order. */
export interface PreparedOutline {
  selections: ({ kind: 'mask' | 'values'; kept: number } | undefined)[];
  solution?: { contributors: ContributorReport[]; cosine: number[][] };
  rowWeights?: readonly Float64Array[];
}

/** A merged unit with what the thread has read for it. */
interface RemoteUnit extends MergedUnit {
  /** Hashes of pieces of inputs since the unit before. */
  found: (readonly [input: string, piece: number, leaf: Leaf])[];
  seconds: ThreadSeconds;
}

/** Since the thread was started. */
interface ThreadSeconds {
  read: number;
  upload: number;
  compute: number;
  readback: number;
  write: number;
}

/** The thread, as its owner calls it. */
export interface RemoteCalls {
  open(job: ThreadJob, owner: OwnerCalls): Promise<void>;
  measure(): Promise<WholeModel | undefined>;
  merge(
    unit: MergeUnit,
    wholeModel: WholeModel | undefined,
    prepared: PreparedOutline[] | undefined,
  ): Promise<RemoteUnit>;
  hash: HashPieces;
}

/** The owner, as its threads call it. */
export interface OwnerCalls {
  read(input: string, begin: number, end: number): Promise<Uint8Array<ArrayBuffer>>;
  derived(index: number, begin: number, end: number): Promise<Float32Array<ArrayBuffer>>;
  selected(
    tensor: string,
    model: string,
    begin: number,
    end: number,
  ): Promise<Uint32Array<ArrayBuffer> | Float32Array<ArrayBuffer>>;
  solved(tensor: string, begin: number, end: number): Promise<Float32Array<ArrayBuffer>>;
  write(file: string, bytes: Uint8Array<ArrayBuffer>, at: number): Promise<void>;
  merged(bytes: number, tensor: string): void;
  measuring(call: keyof MeasuringProgress, ...args: (string | number)[]): void;
}

/** Bytes that all threads together may take: for tiles, and for stored bytes that stay between the passes over a tensor. */
const SHARED = { tiles: 64 * 2 ** 20, kept: 128 * 2 ** 20 };
/** Bytes of a unit: many make the end even, few let neighbors of a file be read together. */
const UNIT = { most: 32 * 2 ** 20, least: 4 * 2 ** 20, perThread: 16 };

interface MergeThreadsOptions {
  plan: Plan;
  inputs: HashedInputs;
  count: number;
  gguf?: ThreadJob['gguf'];
  prepared?: Prepared;
  tileElements?: number;
  measuring?: MeasuringProgress;
  onBytes(bytes: number, tensor: string): void;
}

/** Seconds of all threads together are more than the time passed. */
export interface OpenMergeThreads extends MergeThreads {
  readonly seconds: ThreadSeconds;
  hash: HashPieces;
  close(): void;
}

/** @throws AmalgamError `WorkerDied` */
export async function openMergeThreads(options: MergeThreadsOptions): Promise<OpenMergeThreads> {
  const { inputs, count, prepared, plan } = options;
  const values: Derived[] = [];
  const standIns: Derived[] = [];
  const { tensors, recipe } = portable({ tensors: plan.tensors, recipe: plan.recipe }, values, standIns);
  const job: ThreadJob = {
    plan: { tensors, recipe },
    inputs: await Promise.all(
      plan.inputs.map(async ({ folder, file }) => {
        const name = inputName(folder, file);
        const { byteLength, origin } = inputs.stored(name);
        const isHashed = inputs.pieces().has(name);
        return { name, byteLength, isHashed, ...(origin && { origin: await origin() }) };
      }),
    ),
    derived: standIns,
    ...(options.gguf && { gguf: options.gguf }),
    isPrepared: prepared !== undefined,
    share: { tileBytes: SHARED.tiles / count, keptBytes: SHARED.kept / count },
    ...(options.tileElements === undefined ? {} : { tileElements: options.tileElements }),
  };
  const readers = values.map((derived) => derived.open(inputs.read));
  for (const reader of readers) reader.catch(() => {}); // reported to who asks for it
  let write: UnitWrite | undefined;
  const owner: OwnerCalls = {
    read: async (input, begin, end) => moved(await inputs.source(input).read(begin, end)),
    derived: async (index, begin, end) => moved(Float32Array.from(await (await readers[index]!)(begin, end))),
    async selected(tensor, model, begin, end) {
      const selection = prepared!.selection(tensor, model)!;
      return moved(
        await (selection.kind === 'mask' ? selection.mask(begin, end) : selection.values(begin, end)),
      );
    },
    solved: async (tensor, begin, end) => moved(await prepared!.solution(tensor)!.values(begin, end)),
    write: (file, bytes, at) => write!({ file }, bytes, at),
    merged: (bytes, tensor) => options.onBytes(bytes, tensor),
    measuring(call, ...args) {
      const act = options.measuring?.[call] as ((...args: (string | number)[]) => void) | undefined;
      act?.(...args);
    },
  };
  const threads = Array.from({ length: count }, () => openThread<RemoteCalls>());
  const close = () => {
    for (const { terminate } of threads) terminate();
  };
  try {
    await Promise.all(
      threads.map(({ ask }) => ask((calls) => calls.open(job, Comlink.proxy(reporting(owner))))),
    );
  } catch (thrown) {
    close();
    throw thrown;
  }
  const seconds: ThreadSeconds[] = [];
  const members = threads.map(({ ask }, index): MergeThread & { hash: HashPieces } => ({
    measure: () => ask((calls) => calls.measure()),
    async merge(unit, wholeModel) {
      const outlines = prepared && unit.tensors.map((name) => outlineOf(prepared, plan, name));
      const merged = await ask((calls) => calls.merge(unit, wholeModel, outlines));
      seconds[index] = merged.seconds;
      for (const [input, piece, leaf] of merged.found) await inputs.take(input, piece, leaf);
      return merged;
    },
    hash: (file, pieces) => ask((calls) => calls.hash(file, pieces)),
    close: () => {},
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
      const sum = (work: keyof ThreadSeconds) => seconds.reduce((all, one) => all + (one?.[work] ?? 0), 0);
      return {
        ...{ read: sum('read'), upload: sum('upload'), compute: sum('compute') },
        ...{ readback: sum('readback'), write: sum('write') },
      };
    },
    hash: (file, pieces) => run((thread) => thread.hash(file, pieces)),
    close,
  };
}

function moved<T extends Uint8Array | Uint32Array | Float32Array>(array: T): T {
  return Comlink.transfer(array, [array.buffer]);
}

function outlineOf(prepared: Prepared, { tensors }: Plan, name: string): PreparedOutline {
  const { models } = tensors.find((tensor) => tensor.name === name)!;
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

/**
 * A copy of plain data in which derived values have lost their code, for it does not cross.
 * @param found gets the derived values @param standIns and what stands for each in the copy
 */
function portable<T>(value: T, found: Derived[], standIns: Derived[], seen = new Map<unknown, unknown>()): T {
  if (typeof value !== 'object' || value === null) return value;
  if (!Array.isArray(value) && Object.getPrototypeOf(value) !== Object.prototype) return value;
  const known = seen.get(value);
  if (known) return known as T;
  const copy: Record<string, unknown> | unknown[] = Array.isArray(value) ? [] : {};
  seen.set(value, copy);
  for (const [key, part] of Object.entries(value)) {
    if (typeof part !== 'function')
      (copy as Record<string, unknown>)[key] = portable(part, found, standIns, seen);
  }
  if ('open' in value && 'from' in value) {
    found.push(value as unknown as Derived);
    standIns.push(copy as unknown as Derived);
  }
  return copy as T;
}
