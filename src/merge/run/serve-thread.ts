/** The worker's side of a thread of a run (remote-thread.ts). */
import * as Comlink from 'comlink';
import type { Backend } from '../../backend/backend';
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import { ggufEncoder } from '../../gguf/gguf-file';
import { reporting, rethrow } from '../../host/threads';
import { readingRows } from '../../inputs/row-reader';
import { inputName } from '../../inputs/stored-tensor';
import { sharedAccess } from '../../platform';
import type { SourceOrigin } from '../../sources/byte-source';
import { fileSource } from '../../sources/file-source';
import { pieceDigest } from '../../sources/piece-digest';
import { giveBack } from '../../sources/spare-arrays';
import { type HashedSource, hashedSource, type Leaf, TREE_PIECE_BYTES } from '../../sources/tree-hash';
import { type OpenSource, openBlob } from '../../store/blobs';
import type { FilePlace } from '../../write/destination';
import { writeAt } from '../../write/opfs-sink';
import { methodById } from '../methods';
import type { Prepared } from '../tensor/prepared';
import { type MergeThread, openMergeThread, type UnitOutput } from './merge-thread';
import type { OwnerCalls, PreparedOutline, RemoteCalls, ThreadJob } from './remote-thread';
import type { MeasuringProgress } from './whole-model';

/** Opens the files of this machine, where there are such. */
interface Disk {
  source(origin: Extract<SourceOrigin, { kind: 'disk' }>): OpenSource;
  /** For writing at places. */
  file(place: Extract<FilePlace, { kind: 'disk' }>): FileSystemSyncAccessHandle;
}

/** Pieces of an input that stay in memory: those of which a part was read. */
const HELD_PIECES = 3;

/** The calls of the thread, for its owner. */
export function serveMergeThread(disk?: Disk): RemoteCalls {
  let thread: MergeThread;
  let engine: Backend;
  let tensors: ThreadJob['plan']['tensors'];
  let measuring: MeasuringProgress;
  const spent = { read: 0, write: 0 };
  const hashed = new Map<string, HashedSource>();
  const told = new Map<string, Set<number>>();
  const outlines = new Map<string, PreparedOutline>();
  const outputs = new Map<string, FileSystemSyncAccessHandle>();
  /** Messages on their way to the owner. */
  const telling: Promise<void>[] = [];

  const openSource = async (origin: SourceOrigin): Promise<OpenSource> => {
    if (origin.kind === 'blob') return openBlob(origin.sha256);
    if (origin.kind === 'disk') return disk!.source(origin);
    return { ...fileSource(origin.file, origin.name), close: () => {} };
  };
  const openOutput = async ({ file, place }: UnitOutput) => {
    const open = outputs.get(file);
    if (open) return open;
    const handle = place!.kind === 'disk' ? disk!.file(place!) : (await sharedAccess(place!.file)).handle;
    outputs.set(file, handle);
    return handle;
  };
  const found = async () => {
    const leaves: [string, number, Leaf][] = [];
    for (const [name, source] of hashed) {
      for (const [piece, leaf] of source.leaves()) {
        if (told.get(name)!.has(piece)) continue;
        told.get(name)!.add(piece);
        leaves.push([name, piece, await leaf]);
      }
    }
    return leaves;
  };

  return reporting<RemoteCalls>({
    async open(job, remote) {
      const owner = remote as unknown as Comlink.Remote<OwnerCalls>;
      const sources = new Map<string, Pick<OpenSource, 'read'>>();
      for (const { name, byteLength, isHashed, origin } of job.inputs) {
        const source = origin
          ? await openSource(origin)
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
      tensors = job.plan.tensors;
      const { write, ...cpu } = createCpuBackend();
      engine = {
        ...cpu,
        ...job.share,
        write(buffer, byteOffset, data, handOver) {
          write(buffer, byteOffset, data);
          if (handOver) giveBack(data.buffer);
        },
      };
      const { gguf } = job;
      thread = openMergeThread({
        plan: job.plan,
        engine,
        methods: methodById,
        read: readingRows((ref, begin, end) =>
          sources.get(inputName(ref.folder, ref.file))!.read(ref.begin + begin, ref.begin + end),
        ),
        async write(output, bytes, at) {
          const begun = performance.now();
          if (output.place) writeAt(output.file, await openOutput(output), bytes, at);
          else await owner.write(output.file, Comlink.transfer(bytes, [bytes.buffer]), at).catch(rethrow);
          spent.write += (performance.now() - begun) / 1000;
        },
        ...(gguf && {
          encoder: (names, put) =>
            ggufEncoder({
              ...{ plan: gguf.plan, names, engines: [engine], write: put },
              ...(gguf.importance && { importance: gguf.importance }),
            }),
        }),
        ...(job.isPrepared && { prepared: preparedBy(owner, outlines, tensors) }),
        ...(job.tileElements === undefined ? {} : { tileElements: job.tileElements }),
        onWait(seconds) {
          spent.read += seconds;
        },
        onBytes: (bytes, tensor) => telling.push(owner.merged(bytes, tensor)),
      });
      measuring = {
        begin: (bytes, count) => telling.push(owner.measuring('begin', bytes, count)),
        advance: (tensor, bytes) => telling.push(owner.measuring('advance', tensor, bytes)),
        end: () => telling.push(owner.measuring('end')),
      };
    },
    async measure() {
      const measured = await thread.measure(measuring);
      await Promise.all(telling.splice(0));
      return measured;
    },
    async merge(unit, wholeModel, prepared) {
      for (const [file, handle] of outputs) {
        if (unit.outputs.some((output) => output.file === file)) continue;
        handle.close();
        outputs.delete(file);
      }
      outlines.clear();
      for (const [i, outline] of (prepared ?? []).entries()) outlines.set(unit.tensors[i]!, outline);
      const merged = await thread.merge(unit, wholeModel);
      await Promise.all(telling.splice(0));
      return { ...merged, found: await found(), seconds: { ...engine.seconds, ...spent } };
    },
    async hash(origin, pieces) {
      const source = await openSource(origin);
      try {
        const leaves: Leaf[] = [];
        for (const piece of pieces) {
          const begin = piece * TREE_PIECE_BYTES;
          const bytes = await source.read(begin, Math.min(begin + TREE_PIECE_BYTES, source.byteLength));
          leaves.push(await pieceDigest(bytes));
          giveBack(bytes.buffer);
        }
        return leaves;
      } finally {
        source.close();
      }
    },
  });
}

/** Results of calibration that are with the owner: it tells of a unit's tensors with the unit, and is asked for the values. */
function preparedBy(
  owner: Comlink.Remote<OwnerCalls>,
  outlines: ReadonlyMap<string, PreparedOutline>,
  tensors: ThreadJob['plan']['tensors'],
): Prepared {
  const byName = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  return {
    selection(tensor, model) {
      const index = byName.get(tensor)!.models.findIndex(({ id }) => id === model);
      const selection = outlines.get(tensor)?.selections[index];
      if (!selection) return undefined;
      const { kind, kept } = selection;
      const values = (begin: number, end: number) => owner.selected(tensor, model, begin, end).catch(rethrow);
      return kind === 'mask'
        ? { kind, kept, mask: (begin, end) => values(begin, end) as Promise<Uint32Array<ArrayBuffer>> }
        : { kind, kept, values: (begin, end) => values(begin, end) as Promise<Float32Array<ArrayBuffer>> };
    },
    solution(tensor) {
      const solution = outlines.get(tensor)?.solution;
      return (
        solution && {
          ...solution,
          values: (begin, end) => owner.solved(tensor, begin, end).catch(rethrow),
        }
      );
    },
    rowWeights: (tensor) => outlines.get(tensor)?.rowWeights,
  };
}
