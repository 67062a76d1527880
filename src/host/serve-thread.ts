/** A thread's side of threads.ts: the files it opens, its engine, and what it has to tell. */

import * as Comlink from 'comlink';
import type { Backend } from '../backend/backend';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { scaledValues } from '../inputs/kind-updates';
import { openMade } from '../inputs/row-map';
import { readingFiles } from '../inputs/row-reader';
import type { MakeValues } from '../inputs/tensor-view';
import { reporting, rethrow } from '../platform';
import type { WorkSeconds } from '../reports/job';
import type { SourceOrigin } from '../sources/byte-source';
import { fileSource } from '../sources/file-source';
import { readingAhead } from '../sources/read-ahead';
import { giveBack, limitSpares } from '../sources/spare-arrays';
import { type HashedSource, hashedSource, type Leaf } from '../sources/tree-hash';
import { type OpenSource, openBlob } from '../store/blobs';
import type { FilePlace } from '../write/destination';
import type { FoundLeaf, PassTools, ThreadCalls, ThreadJob, ThreadOwner, WorkKind } from './threads';

/** Opens the files of this machine, where there are such. */
export interface Disk {
  source(origin: Extract<SourceOrigin, { kind: 'disk' }>): OpenSource;
  /** For writing at places. */
  file(place: Extract<FilePlace, { kind: 'disk' }>): FileSystemSyncAccessHandle;
}

/** What a thread works with. */
export interface ThreadTools extends PassTools {
  /** Opens files of the owner. */
  openOrigin(origin: SourceOrigin): Promise<OpenSource>;
  disk: Disk | undefined;
  /** Its owner, who may have more to offer to this kind of work. */
  owner: Comlink.Remote<ThreadOwner>;
  /** Takes a message that is on its way to the owner: it arrives before the answer. */
  tell(message: Promise<void>): void;
  /** Adds to the time that this thread has waited for stored bytes, or written. */
  spend(what: 'read' | 'write', seconds: number): void;
  /** Has memory go with the answer. */
  handOver(memory: readonly Transferable[]): void;
}

/** Makes derived values that plain data describe, by what their `made` names. */
export type Makers = Readonly<Record<string, MakeValues<never>>>;

/** Opens a kind of work. @returns its calls */
export type OpenWork = (work: never, tools: ThreadTools) => object;

/** Opens a file that the owner has told of. */
async function openOrigin(origin: SourceOrigin, disk: Disk | undefined): Promise<OpenSource> {
  if (origin.kind === 'blob') return openBlob(origin.sha256);
  if (origin.kind === 'disk') return disk!.source(origin);
  return { ...fileSource(origin.file, origin.name), close: () => {} };
}

/** Bytes of unused arrays: what is read goes to where kernels want it, and few others come and go. */
const SPARE_BYTES = 16 * 2 ** 20;

/** Opens the files of a job, and an engine for it. @throws what opening throws */
async function openJob(
  job: ThreadJob<unknown>,
  owner: Comlink.Remote<ThreadOwner>,
  disk: Disk | undefined,
  makers: Makers,
) {
  limitSpares(SPARE_BYTES);
  const hashed = new Map<string, HashedSource>();
  const told = new Set<Promise<Leaf>>();
  const sources = new Map<string, Pick<OpenSource, 'read' | 'readNow'>>();
  const spent = { read: 0, write: 0 };
  for (const { name, byteLength, isHashed, origin } of job.inputs) {
    const source: Pick<OpenSource, 'byteLength' | 'read' | 'readNow'> = origin
      ? await openOrigin(origin, disk)
      : { byteLength, read: (begin: number, end: number) => owner.read(name, begin, end).catch(rethrow) };
    const reading = origin && isHashed ? hashedSource(source) : undefined;
    if (reading) hashed.set(name, reading);
    sources.set(name, readingAhead(reading ?? source));
  }
  for (const [index, derived] of job.derived.entries()) {
    const { quantized, made, from } = derived;
    const make = made && makers[made.id];
    derived.open = quantized
      ? async (read) => {
          const { formats } = await import('../inputs/quantized/formats');
          return formats[quantized.id]!.open(from, quantized.params, read);
        }
      : make
        ? openMade(made.elements, (read) => make(from, made.params as never, read))
        : async () => (begin, end) => owner.derived(index, begin, end).catch(rethrow);
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
  return {
    engine,
    read: readingFiles((name) => sources.get(name)!),
    spend(what: 'read' | 'write', seconds: number) {
      spent[what] += seconds;
    },
    seconds: (): WorkSeconds => ({ ...engine.seconds, ...spent }),
    /** Hashes of pieces of inputs since the last call. */
    async found() {
      const leaves: FoundLeaf[] = [];
      for (const [name, source] of hashed) {
        for (const [piece, leaf] of await source.leaves()) {
          if (told.has(leaf)) continue;
          told.add(leaf);
          leaves.push([name, piece, await leaf]);
        }
      }
      return leaves;
    },
  };
}

/** Milliseconds between two messages of how far a thread is: there may be thousands of small tensors. */
const TELL_MS = 50;

/** Tells the owner of amounts that are done, many at a time. */
function teller(tell: ThreadOwner['done']) {
  const untold: [amount: number, item: string][] = [];
  let told = 0;
  const flush = () => {
    if (untold.length > 0) tell(untold.splice(0));
    told = performance.now();
  };
  return {
    add(amount: number, item: string) {
      const last = untold.at(-1);
      if (last?.[1] === item) last[0] += amount;
      else untold.push([amount, item]);
      if (performance.now() - told > TELL_MS) flush();
    },
    flush,
  };
}

/** The calls of a thread, for its owner. @param kinds opens each kind of work @param makers what makes derived values by their data */
export function serveThread(
  kinds: Readonly<Partial<Record<WorkKind, OpenWork>>>,
  disk?: Disk,
  makers: Makers = {},
): ThreadCalls {
  let job: Awaited<ReturnType<typeof openJob>>;
  let calls: Record<string, (...args: unknown[]) => Promise<unknown>>;
  let done: ReturnType<typeof teller>;
  const telling: Promise<void>[] = [];
  const moving: Transferable[] = [];
  return reporting<ThreadCalls>({
    async open(kind, given, remote) {
      const owner = remote as unknown as Comlink.Remote<ThreadOwner>;
      job = await openJob(given, owner, disk, { scaled: scaledValues, ...makers });
      done = teller((amounts) => telling.push(owner.done(amounts)));
      const { engine, read, spend } = job;
      const tools: ThreadTools = {
        ...{ engine, read, spend, disk, owner, members: given.threads },
        openOrigin: (origin) => openOrigin(origin, disk),
        tell: (message) => telling.push(message),
        handOver: (memory) => moving.push(...memory),
        onWait: (seconds) => spend('read', seconds),
        onDone: done.add,
      };
      calls = kinds[kind]!(given.work as never, tools) as typeof calls;
    },
    async call(name, args) {
      const result = await calls[name]!(...args);
      done.flush();
      await Promise.all(telling.splice(0));
      const answer = { result, found: await job.found(), seconds: job.seconds() };
      return Comlink.transfer(answer, moving.splice(0));
    },
  });
}
