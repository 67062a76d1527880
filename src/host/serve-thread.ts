/** A thread's side of threads.ts: the files it opens, its engine, and what it has to tell. */

import type * as Comlink from 'comlink';
import type { Backend } from '../backend/backend';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { readingRows } from '../inputs/row-reader';
import { inputName, type ReadTensor } from '../inputs/stored-tensor';
import type { TensorRef } from '../inputs/tensor-view';
import { reporting, rethrow } from '../platform';
import type { WorkSeconds } from '../reports/job';
import type { SourceOrigin } from '../sources/byte-source';
import { fileSource } from '../sources/file-source';
import { giveBack, limitSpares } from '../sources/spare-arrays';
import { type HashedSource, hashedSource, type Leaf } from '../sources/tree-hash';
import { type OpenSource, openBlob } from '../store/blobs';
import type { FilePlace } from '../write/destination';
import type { OpenMember, PassCalls, PassKind, PassMember, PassOwner, ReadCalls, ThreadJob } from './threads';

/** Opens the files of this machine, where there are such. */
export interface Disk {
  source(origin: Extract<SourceOrigin, { kind: 'disk' }>): OpenSource;
  /** For writing at places. */
  file(place: Extract<FilePlace, { kind: 'disk' }>): FileSystemSyncAccessHandle;
}

/** Pieces of an input that stay in memory: of the last one a part was read, and the rest comes next. */
const HELD_PIECES = 1;

/** Hash of a piece of an input. */
export type FoundLeaf = readonly [input: string, piece: number, leaf: Leaf];

/** What a thread works with. */
export interface OpenJob<Work> {
  work: Work;
  engine: Backend;
  read: ReadTensor;
  /** Adds to the time that this thread has waited for stored bytes, or written. */
  spend(what: 'read' | 'write', seconds: number): void;
  seconds(): WorkSeconds;
  /** Hashes of pieces of inputs since the last call. */
  found(): Promise<FoundLeaf[]>;
}

/** Opens a file that the owner has told of. */
export async function openOrigin(origin: SourceOrigin, disk: Disk | undefined): Promise<OpenSource> {
  if (origin.kind === 'blob') return openBlob(origin.sha256);
  if (origin.kind === 'disk') return disk!.source(origin);
  return { ...fileSource(origin.file, origin.name), close: () => {} };
}

/** Bytes of unused arrays: what is read goes to where kernels want it, and few others come and go. */
const SPARE_BYTES = 16 * 2 ** 20;

/** Opens the files of a job, and an engine for it. @throws what opening throws */
export async function openJob<Work>(
  job: ThreadJob<Work>,
  owner: Comlink.Remote<ReadCalls>,
  disk: Disk | undefined,
): Promise<OpenJob<Work>> {
  limitSpares(SPARE_BYTES);
  const hashed = new Map<string, HashedSource>();
  const told = new Map<string, Set<number>>();
  const sources = new Map<string, Pick<OpenSource, 'read' | 'readNow'>>();
  const spent = { read: 0, write: 0 };
  for (const { name, byteLength, isHashed, origin } of job.inputs) {
    const source = origin
      ? await openOrigin(origin, disk)
      : { byteLength, read: (begin: number, end: number) => owner.read(name, begin, end).catch(rethrow) };
    if (!origin || !isHashed) sources.set(name, source);
    else {
      const reading = hashedSource(source, HELD_PIECES);
      sources.set(name, reading);
      hashed.set(name, reading);
      told.set(name, new Set());
    }
  }
  for (const [index, derived] of job.derived.entries()) {
    derived.open = async () => (begin, end) => owner.derived(index, begin, end).catch(rethrow);
  }
  const { write, ...cpu } = createCpuBackend();
  const engine: Backend = {
    ...cpu,
    ...job.share,
    write(buffer, byteOffset, data, handOver) {
      write(buffer, byteOffset, data);
      if (handOver) giveBack(data.buffer);
    },
  };
  const sourceOf = ({ folder, file }: TensorRef) => sources.get(inputName(folder, file))!;
  const stored: ReadTensor = (ref, begin, end) => sourceOf(ref).read(ref.begin + begin, ref.begin + end);
  stored.now = (ref, begin, end, into) =>
    sourceOf(ref).readNow?.(ref.begin + begin, ref.begin + end, into) === true;
  return {
    work: job.work,
    engine,
    read: readingRows(stored),
    spend(what, seconds) {
      spent[what] += seconds;
    },
    seconds: () => ({ ...engine.seconds, ...spent }),
    async found() {
      const leaves: FoundLeaf[] = [];
      for (const [name, source] of hashed) {
        for (const [piece, leaf] of source.leaves()) {
          if (told.get(name)!.has(piece)) continue;
          told.get(name)!.add(piece);
          leaves.push([name, piece, await leaf]);
        }
      }
      return leaves;
    },
  };
}

/** Milliseconds between two messages of how far a thread is. */
const TELL_MS = 50;

/** Tells the owner of amounts that are done, many at a time, and of whose. */
export function teller(tell: (amount: number, of: string) => Promise<void>) {
  /** Messages on their way. */
  const telling: Promise<void>[] = [];
  let [sum, of, told] = [0, '', 0];
  const send = () => {
    if (sum > 0) telling.push(tell(sum, of));
    [sum, told] = [0, performance.now()];
  };
  return {
    add(amount: number, next: string) {
      if (of !== next) send();
      of = next;
      sum += amount;
      if (performance.now() - told > TELL_MS) send();
    },
    /** Resolves once all is told. */
    async all() {
      send();
      await Promise.all(telling.splice(0));
    },
  };
}

/**
 * The calls of a thread of a pass, for its owner.
 * @param passes opens a member of each
 */
export function servePasses(
  passes: Readonly<Partial<Record<PassKind, OpenMember<never, unknown>>>>,
  disk?: Disk,
): PassCalls {
  let member: PassMember<unknown>;
  let seconds: () => WorkSeconds;
  let done: ReturnType<typeof teller>;
  return reporting<PassCalls>({
    async openPass(kind, given, members, remote) {
      const owner = remote as unknown as Comlink.Remote<PassOwner>;
      const job = await openJob(given, owner, disk);
      seconds = job.seconds;
      done = teller(owner.done);
      member = passes[kind]!(job.work as never, {
        ...{ engine: job.engine, read: job.read, members },
        onWait: (waited) => job.spend('read', waited),
        onDone: done.add,
      });
    },
    async take(index) {
      const result = await member.take(index);
      await done.all();
      return { result, seconds: seconds() };
    },
  });
}
